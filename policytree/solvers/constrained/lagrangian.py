"""The Lagrangian relaxation of constraints: trees that are best at given multipliers, and the bounds they prove.

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

from policytree.problem.types import BinnedData, Problem, SearchLimits, Solution
from policytree.solvers.core.columns import equal_rows, preorder_splits, rows_of_splits
from policytree.solvers.core.constraints import Constraint
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import Splits, counted_rows
from policytree.solvers.core.scoring import paid_below
from policytree.solvers.core.shared_costs import shared_groups
from policytree.solvers.kernels.base.merging import add_columns
from policytree.solvers.multi_objective.pareto_front import ParetoSearch, criteria_of

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
    leaf : int
        Price of a leaf.
    charges : ndarray of shape (n_prices, n), int64
        Charges of rows for splits, rounded down as well.
    on_loss : int
        1, or 0 without losses and prices of leaves and splits: for the constraints alone.
    """

    prices: tuple[float, ...]
    losses: np.ndarray
    leaf: int
    charges: np.ndarray
    shift: int
    on_loss: int


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
    charges : ndarray of shape (1 + M, n_prices, n), int64
        Charges of rows for a split of each price: in loss, and in every constraint's sum.
    price_of : ndarray of shape (n_features,), int64
        Which of the prices a split on a feature has.
    """

    def __init__(self, problem: Problem, constraints: Sequence[Constraint], solve):
        self.problem, self.constraints, self.solve = problem, tuple(constraints), solve
        n, K = problem.losses.shape
        most_leaves, costs = problem.most_leaves, (problem.feature_costs, problem.weights)
        self.fixed = to_fixed_point(problem.losses, problem.leaf_penalty, most_leaves, *costs, all_trees=True)
        amounts = [c.amounts[:, 1:] - c.amounts[:, :1] for c in self.constraints]
        self.limits = tuple(c.limit - int(c.amounts[:, 0].sum()) for c in self.constraints)
        charges, self.price_of = self._charges()
        self.n_prices = charges.shape[1]
        charges = charges.reshape(-1, n)
        planes = np.vstack([self.fixed.planes, *(part.T for part in amounts), charges])
        self.data, self.weights, self.most_merged = problem.data, problem.weights, 1
        self.counted = problem.min_leaf > 1 or problem.min_leaf_per_arm > 0
        if not self.counted:  # rows that are counted stay apart
            self.data, planes, self.weights = self._merged(planes)
        self.charges = planes[len(planes) - len(charges) :].reshape(1 + len(amounts), self.n_prices, planes.shape[1])
        parts = planes[: len(planes) - len(charges)].reshape(1 + len(amounts), K - 1, planes.shape[1])
        parts = parts.transpose(0, 2, 1)
        parts = np.concatenate([np.zeros((*parts.shape[:2], 1), np.int64), parts], axis=2)
        self.losses, self.amounts = parts[0], parts[1:]
        self.extra = most_leaves * self.fixed.leaf_penalty  # what leaves and splits come to at most
        self.depth = n if problem.max_depth is None else problem.max_depth
        self.extra += int(self.charges[0].sum(axis=1).max(initial=0)) * self.depth
        self.rounding = 8 * n * self.depth + 64 if len(charges) else 0  # what the solver rounds in charges, at most
        self.largest = int(np.abs(self.losses).max(axis=1).sum()) + self.extra  # loss of any tree

    def _charges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the charges of rows for splits, (1 + M, n_prices, n), and the position of each feature's price."""
        (n, _), p = self.problem.losses.shape, len(self.problem.data.features)
        tables = [(self.fixed.charges, self.fixed.groups)]
        questions = [c.questions for c in self.constraints]
        tables += [(None, None) if q is None else (q.charges, q.price_of) for q in questions]
        which = [np.zeros(p, np.int64) if of is None else of for _, of in tables]
        if all(charges is None for charges, _ in tables):
            return np.zeros((len(tables), 0, n), np.int64), which[0]
        prices, price_of = np.unique(np.column_stack(which), axis=0, return_inverse=True)
        nothing = np.zeros((len(prices), n), np.int64)
        each = [nothing if part is None else part[of] for (part, _), of in zip(tables, prices.T, strict=True)]
        return np.stack(each), price_of.reshape(-1).astype(np.int64)

    def _merged(self, planes: np.ndarray) -> tuple[BinnedData, np.ndarray, np.ndarray | None]:
        """Data, planes and weights with equal rows as one."""
        problem = self.problem
        first, group = equal_rows(problem.data)
        self.most_merged = int(np.bincount(group).max())
        if len(first) == problem.data.n_rows:
            return problem.data, planes, problem.weights
        data = replace(problem.data, codes=np.ascontiguousarray(problem.data.codes[:, first]))
        weights = np.ones(problem.data.n_rows) if problem.weights is None else problem.weights
        return data, add_columns(planes, group, len(first)), np.bincount(group, weights=weights)

    @property
    def opposite(self) -> bool:
        """Whether there are two constraints, and the sum of one is that of the other with the other sign."""
        if len(self.amounts) != 2 or self.charges[1:].any():
            return False
        return bool((self.amounts[0] == -self.amounts[1]).all())

    @property
    def is_priced(self) -> np.ndarray:
        """Whether a split on each feature costs something, in loss or in a constraint's sum; (n_features,)."""
        if not self.n_prices:
            return np.zeros(len(self.price_of), dtype=bool)
        dearest = self.charges.max(axis=(0, 2))
        return dearest[self.price_of] > 0

    def priced(self, prices: Sequence[float], on_loss: int = 1) -> Priced:
        """Losses times ``on_loss`` (1, or 0 for the constraints alone) plus prices times amounts."""
        total = float(np.abs(self.losses).max(axis=1).sum() + self.extra) * on_loss
        for price, amounts in zip(prices, self.amounts, strict=True):
            total += price * float(np.abs(amounts).max(axis=1).sum())
        for price, charges in zip(prices, self.charges[1:], strict=True):
            total += price * float(charges.sum(axis=1).max(initial=0)) * self.depth
        shift = max(0, math.ceil(math.log2(total)) + 1 - PRICED_BITS) if total > 0 else 0
        down = _rounded_down([self.losses, *self.amounts], [on_loss, *prices], shift)
        down[:, 0] = 0
        charges = _rounded_down(list(self.charges), [on_loss, *prices], shift)
        return Priced(
            tuple(map(float, prices)), down, on_loss * self.fixed.leaf_penalty >> shift, charges, shift, on_loss
        )

    def best(self, priced: Priced, limits: SearchLimits) -> tuple[Corner, Fraction, Solution]:
        """The tree that is best at these prices, and the bound of what trees within the limits lose."""
        problem, costs = self.problem, self._question_costs(priced)
        relaxed = replace(
            problem, data=self.data, losses=priced.losses.astype(np.float64), leaf_penalty=float(priced.leaf),
            feature_costs=costs, weights=self.weights,
        )  # fmt: skip
        solution = self.solve(relaxed, limits)
        least = math.floor(solution.lower_bound - solution.resolution)
        rounding = priced.on_loss * self.rounding if costs is not None else 0
        return self.corner_of(solution), self.bound(priced, least) - rounding, solution

    def _question_costs(self, priced: Priced) -> np.ndarray | None:
        """Bound above what a split on each feature costs per unit of weight at these prices; None if nothing."""
        costs = np.zeros(len(self.problem.data.features))
        if self.problem.feature_costs is not None and priced.on_loss:
            costs += np.ldexp(self.problem.feature_costs, self.fixed.exponent - priced.shift)
        for price, constraint in zip(priced.prices, self.constraints, strict=True):
            if constraint.questions is not None:
                down = 1.0 - (self.most_merged + 16) * 2.0**-52  # below the exact product with summed weights
                costs += np.ldexp(price * constraint.questions.unit_costs * down, -priced.shift)
        return costs if costs.any() else None

    def bound(self, priced: Priced, least: int) -> Fraction:
        """Bound below the loss of trees within the limits, from the least priced loss of any tree."""
        return Fraction(least * 2**priced.shift) - self.allowance(priced)

    def allowance(self, priced: Priced) -> Fraction:
        """Add up the limits at these prices."""
        return sum((Fraction(mu) * limit for mu, limit in zip(priced.prices, self.limits, strict=True)), Fraction(0))

    def corner_of(self, solution: Solution) -> Corner:
        """A solution's tree on the merged rows."""
        tree = solution.tree
        return self.corner(preorder_splits(tree, self.data), tree.action[tree.is_leaf].tolist())

    def corner(self, splits: Splits, actions: Sequence[int]) -> Corner:
        """Compute the loss and the constraints' sums of a tree."""
        leaves, paid = self.leaves(splits)
        loss, sums = paid[0] + len(leaves) * self.fixed.leaf_penalty, paid[1:]
        for rows, action in zip(leaves, actions, strict=True):
            loss += int(self.losses[rows, action].sum())
            sums = [s + int(a[rows, action].sum()) for s, a in zip(sums, self.amounts, strict=True)]
        return Corner(list(splits), list(actions), loss, tuple(sums))

    def leaves(self, splits: Splits) -> tuple[list[np.ndarray], list[int]]:
        """The rows of every leaf, in preorder, and what the splits cost: in loss, and in every constraint's sum."""
        out, paid = [], np.zeros(len(self.charges), np.int64)
        before: list[frozenset] = [frozenset()]  # groups of features that were paid for
        for (column, _), rows in zip(splits, rows_of_splits(self.data, splits), strict=True):
            known = before.pop()
            if column < 0:
                out.append(rows)
                continue
            feature = self.data.columns[column].feature
            groups = self.problem.feature_groups
            if self.n_prices and (groups is None or int(groups[feature]) not in known):
                paid += self.charges[:, self.price_of[feature]][:, rows].sum(axis=1)
            before += [paid_below(self.problem, column, known)] * 2
        return out, paid.tolist()

    def feasible(self, corner: Corner) -> bool:
        """Whether a tree is within the limits."""
        return all(s <= limit for s, limit in zip(corner.sums, self.limits, strict=True))


def pareto_search(relaxation: Relaxation, data: BinnedData, priced: Priced | None, flag: np.ndarray) -> ParetoSearch:
    """A search of trees of some cuts of the relaxation's rows, by loss, sums and the number of limited leaves.

    They are bound by the priced loss, or by nothing. Where splits have prices, one more of zero comes first.
    """
    problem = relaxation.problem
    sums = [relaxation.losses, *relaxation.amounts]
    leaf = [0 if priced is None else priced.leaf, relaxation.fixed.leaf_penalty, *[0] * len(relaxation.amounts)]
    if problem.max_leaf_nodes is not None:
        sums.append(np.zeros_like(relaxation.losses))
        leaf.append(1)
    charges = groups = None
    if relaxation.n_prices:
        charges = np.zeros((len(leaf), relaxation.n_prices + 1, data.n_rows), np.int64)
        if priced is not None:
            charges[0, 1:] = priced.charges
        charges[1 : 1 + len(relaxation.charges), 1:] = relaxation.charges
        groups = 1 + relaxation.price_of[[c.feature for c in data.columns]]
    counts, minima = counted_rows(problem)  # such rows are not merged
    criteria = criteria_of(
        data, np.stack(sums), bound=None if priced is None else priced.losses, leaf=leaf, charges=charges,
        groups=groups, counts=np.stack(counts) if counts else None, minima=minima,
    )  # fmt: skip
    roots = np.flatnonzero(data.columns_of(problem.root_features)).tolist()
    return ParetoSearch(criteria, flag, roots, shared_groups(problem, relaxation.is_priced, data))


def _rounded_down(parts: Sequence[np.ndarray], prices: Sequence[float], shift: int) -> np.ndarray:
    """Whole numbers times prices, added up, in units of ``2**shift``: rounded down."""
    if sum(each != 0 for each in prices) == 1 and max(prices) == 1:  # one of them alone
        return parts[list(prices).index(1)] >> shift
    x = prices[0] * parts[0].astype(np.float64)
    size = np.abs(x)
    for price, part in zip(prices[1:], parts[1:], strict=True):
        x += price * part
        size += np.abs(price * part)
    return np.floor(np.ldexp(x - size * 2.0**-51, -shift)).astype(np.int64)  # below the exact number
