"""Constraints with a price in place of a limit: trees that are best at a price, and bounds that hold at any.

At a price ``mu >= 0`` for every unit of a constrained sum (Lagrange multiplier), the tree that minimises ``loss + mu *
sum`` is an ordinary exact search, and ``min over trees (loss + mu * sum) - mu * limit`` is below the loss of every tree
that meets the limit. All is done in whole numbers: the search is handed ``floor(loss + mu * amount)`` for every row,
which is no more than the exact number, so that what it proves is a bound whatever the price was rounded to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from policytree.solvers.columns import preorder_splits
from policytree.solvers.constraints import Constraint
from policytree.solvers.fixed_point import to_fixed_point
from policytree.solvers.merge import merge_equal_rows
from policytree.solvers.node import Splits
from policytree.types import Problem, SearchLimits, Solution

PRICED_BITS = 50  # sums of priced losses stay below 2**50: exact in float64


@dataclass(frozen=True)
class Corner:
    """A tree, and what it comes to relative to "action 0 for all", in whole numbers.

    Attributes
    ----------
    splits : list of (column, cut)
        In preorder, (-1, 0) for a leaf.
    actions : list of int
        Of its leaves.
    loss : int
        With the prices of leaves and splits.
    sums : tuple of int
        One for every constraint.
    """

    splits: Splits
    actions: list[int]
    loss: int
    sums: tuple[int, ...]

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.actions)


@dataclass(frozen=True)
class Priced:
    """Losses with the constraints' prices, rounded down to whole multiples of ``2**shift``, and what they are for.

    Attributes
    ----------
    prices : tuple of float
        The multipliers, per unit of the constraints' sums.
    losses : ndarray of shape (n, K), int64
    leaf, splits : int, ndarray of shape (n_features,)
        Prices of a leaf, and of a split per unit of mass.
    """

    prices: tuple[float, ...]
    losses: np.ndarray
    leaf: int
    splits: np.ndarray
    shift: int


class Relaxation:
    """A problem and its constraints as whole numbers on merged rows.

    Parameters
    ----------
    problem : Problem
    constraints : sequence of Constraint
    solve : callable
        An exact solver, ``(Problem, SearchLimits) -> Solution``.

    Attributes
    ----------
    losses : ndarray of shape (n, K), int64
        Relative to action 0.
    amounts : ndarray of shape (M, n, K), int64
        Likewise.
    limits : tuple of int
        Of the relative sums.
    """

    def __init__(self, problem: Problem, constraints: Sequence[Constraint], solve):
        self.problem, self.constraints, self.solve = problem, tuple(constraints), solve
        n, K = problem.losses.shape
        most_leaves = n if problem.max_depth is None else min(n, 2 ** min(problem.max_depth, 60))
        most_leaves = min(most_leaves, problem.max_leaf_nodes or n)
        self.fixed = to_fixed_point(
            problem.losses, problem.leaf_penalty, most_leaves, problem.feature_costs, problem.weights, forced=True
        )
        amounts = [c.amounts[:, 1:] - c.amounts[:, :1] for c in self.constraints]
        self.limits = tuple(c.limit - int(c.amounts[:, 0].sum()) for c in self.constraints)
        mass = np.zeros(n, np.int64) if self.fixed.mass is None else self.fixed.mass
        planes = np.vstack([self.fixed.planes, *(part.T for part in amounts), mass[None, :]])
        self.data = problem.data
        self.counted = problem.min_leaf > 1 or problem.min_leaf_per_arm > 0
        if not self.counted:  # rows that are counted stay apart
            codes, planes = merge_equal_rows(np.require(problem.data.codes, np.uint16, ["C", "W"]), planes)
            self.data = replace(problem.data, codes=codes)
        self.mass = planes[-1]
        parts = planes[:-1].reshape(1 + len(amounts), K - 1, len(self.mass)).transpose(0, 2, 1)
        parts = np.concatenate([np.zeros((*parts.shape[:2], 1), np.int64), parts], axis=2)
        self.losses, self.amounts = parts[0], parts[1:]
        n_features = len(problem.data.features)
        self.split_prices = np.zeros(n_features, np.int64) if self.fixed.prices is None else self.fixed.prices
        self.extra = most_leaves * self.fixed.leaf_penalty  # what leaves and splits come to at most
        depth = n - 1 if problem.max_depth is None else problem.max_depth
        self.extra += int(self.split_prices.max(initial=0)) * int(self.mass.sum()) * depth
        self.largest = int(np.abs(self.losses).max(axis=1).sum()) + self.extra  # loss of any tree

    def priced(self, prices: Sequence[float], on_loss: int = 1) -> Priced:
        """Losses times ``on_loss`` (1, or 0 for the constraints alone) plus prices times amounts."""
        total = float(np.abs(self.losses).max(axis=1).sum() + self.extra) * on_loss
        for price, amounts in zip(prices, self.amounts, strict=True):
            total += price * float(np.abs(amounts).max(axis=1).sum())
        shift = max(0, math.ceil(math.log2(total)) + 1 - PRICED_BITS) if total > 0 else 0
        down = self._rounded_down(prices, on_loss, shift)
        leaf, splits = (on_loss * each // 2**shift for each in (self.fixed.leaf_penalty, self.split_prices))
        return Priced(tuple(map(float, prices)), down, leaf, splits, shift)

    def _rounded_down(self, prices: Sequence[float], on_loss: int, shift: int) -> np.ndarray:
        whole = [on_loss, *prices]
        if sum(each != 0 for each in whole) == 1 and max(whole) == 1:  # one of them alone
            return [self.losses, *self.amounts][whole.index(1)] >> shift
        x = on_loss * self.losses.astype(np.float64)
        size = np.abs(x)
        for price, amounts in zip(prices, self.amounts, strict=True):
            x += price * amounts
            size += np.abs(price * amounts)
        down = np.floor(np.ldexp(x - size * 2.0**-51, -shift)).astype(np.int64)  # below the exact number
        down[:, 0] = 0
        return down

    def best(self, priced: Priced, limits: SearchLimits) -> tuple[Corner, Fraction, Solution]:
        """The tree that is best at these prices, and the bound of what trees within the limits lose."""
        problem = self.problem
        costs = priced.splits.astype(np.float64)
        relaxed = replace(
            problem, data=self.data, losses=priced.losses.astype(np.float64), leaf_penalty=float(priced.leaf),
            feature_costs=costs if costs.any() else None, weights=self.mass.astype(np.float64) if costs.any() else None,
        )  # fmt: skip
        solution = self.solve(relaxed, limits)
        least = math.floor(solution.lower_bound - solution.resolution)
        return self.corner_of(solution), self.bound(priced, least), solution

    def bound(self, priced: Priced, least: int) -> Fraction:
        """What trees within the limits lose at least, from the least priced loss of any tree."""
        return Fraction(least * 2**priced.shift) - self.allowance(priced)

    def allowance(self, priced: Priced) -> Fraction:
        """What the limits come to at these prices."""
        return sum((Fraction(mu) * limit for mu, limit in zip(priced.prices, self.limits, strict=True)), Fraction(0))

    def corner_of(self, solution: Solution) -> Corner:
        """A solution's tree on the merged rows."""
        tree = solution.tree
        return self.corner(preorder_splits(tree, self.data), tree.action[tree.is_leaf].tolist())

    def corner(self, splits: Splits, actions: Sequence[int]) -> Corner:
        """What a tree comes to."""
        leaves, paid = self.leaves(splits)
        loss, sums = paid + len(leaves) * self.fixed.leaf_penalty, [0] * len(self.amounts)
        for rows, action in zip(leaves, actions, strict=True):
            loss += int(self.losses[rows, action].sum())
            sums = [s + int(a[rows, action].sum()) for s, a in zip(sums, self.amounts, strict=True)]
        return Corner(list(splits), list(actions), loss, tuple(sums))

    def leaves(self, splits: Splits) -> tuple[list[np.ndarray], int]:
        """The rows of every leaf, in preorder, and what the splits cost."""
        entries = iter(splits)
        out: list[np.ndarray] = []

        def walk(rows: np.ndarray) -> int:
            column, cut = next(entries)
            if column < 0:
                out.append(rows)
                return 0
            left = self.data.codes[column, rows] <= cut
            paid = int(self.split_prices[self.data.columns[column].feature]) * int(self.mass[rows].sum())
            return paid + walk(rows[left]) + walk(rows[~left])

        return out, walk(np.arange(self.data.n_rows))

    def feasible(self, corner: Corner) -> bool:
        """Whether a tree is within the limits."""
        return all(s <= limit for s, limit in zip(corner.sums, self.limits, strict=True))
