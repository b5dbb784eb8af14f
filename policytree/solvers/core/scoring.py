"""From the splits of a search to a Tree with its sums; the objective scored from the losses as given.

Sums are exact and rounded once, so that a tree has the same values, to the last bit, in whatever order its rows come
and wherever they stand: in memory, in files or on the workers of a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from policytree.data.features import CATEGORICAL, Feature
from policytree.problem.types import Problem, Solution, SplitColumn, Status
from policytree.solvers.core.columns import rows_of_splits
from policytree.solvers.core.exact_sums import ExactSums, exact_sums
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.trees.tree import TREE_LEAF, TREE_UNDEFINED, Tree


def leaf_only(problem: Problem, fixed: FixedPoint, status: Status, seconds: float) -> Solution:
    """The tree without a split, when nothing else can be said."""
    return finish(problem, fixed, [(-1, 0)], 0.0, status, seconds, {})


def finish(
    problem: Problem, fixed: FixedPoint, splits, gap: float, status: Status, seconds, counters, leaves=None
) -> Solution:
    """Build the tree of preorder ``splits``, merge sibling leaves with the same action, and score it in float64."""
    tree, objective = scored_tree(problem, splits, leaves=leaves)
    return Solution(tree, objective, objective - gap, status, seconds, fixed.resolution, counters)


def scored_tree(
    problem: Problem,
    splits: list[tuple[int, int]],
    actions=None,
    *,
    merge: bool = True,
    leaves: Iterable[np.ndarray] | None = None,
) -> tuple[Tree, float]:
    """Tree of ``(column, cut)`` pairs in preorder, ``column`` -1 for a leaf, and its objective in float64.

    Rows are followed by their codes, unless ``leaves`` has those of every leaf. Leaves take their best actions, or
    those of ``actions`` (one a leaf, in preorder); siblings of one action become one leaf if ``merge``.
    """
    data = problem.data
    if leaves is None:
        reached = rows_of_splits(data, splits)
        leaves = (rows for rows, (at, _) in zip(reached, splits, strict=True) if at < 0)
    of_row, n_leaves = np.empty(data.n_rows, dtype=np.int64), 0
    for rows in leaves:
        of_row[rows] = n_leaves
        n_leaves += 1
    sums = exact_sums(problem.losses.T, of_row, n_leaves)
    count = np.bincount(of_row, minlength=n_leaves)
    grown = tree_of_leaves(data.features, data.columns, splits, sums, count, actions, merge=merge)
    costs = _cost_of_splits(problem, splits, grown.asked)
    return grown.tree, grown.objective(problem.leaf_penalty, costs)


@dataclass(frozen=True, slots=True)
class GrownTree:
    """A tree, and where its nodes come from.

    Attributes
    ----------
    tree : Tree
    loss : Fraction
        Sum of what its leaves lose, exactly.
    kept, asked : ndarray of shape (nodes,), bool
        Which nodes of the splits it was made from are its nodes, and which of these are questions.
    """

    tree: Tree
    loss: Fraction
    kept: np.ndarray
    asked: np.ndarray

    def objective(self, leaf_penalty: float, costs: Iterable[float] = ()) -> float:
        """Losses, penalties and costs of questions, added up exactly and rounded once to the nearest float64."""
        total = self.loss + Fraction(leaf_penalty) * self.tree.n_leaves + sum(map(Fraction, costs), Fraction(0))
        try:
            return float(total)
        except OverflowError:  # losses are finite, but a penalty may be anything
            return math.inf if total > 0 else -math.inf


def tree_of_leaves(
    features: tuple[Feature, ...],
    columns: tuple[SplitColumn, ...],
    splits: list[tuple[int, int]],
    sums: ExactSums,
    rows: np.ndarray,
    actions=None,
    *,
    merge: bool = True,
) -> GrownTree:
    """The tree of splits whose leaves have these sums of losses (leaves, K) and numbers of rows (leaves,), in preorder.

    ``actions`` and ``merge``: see :func:`scored_tree`.
    """
    column, cut = np.array(splits, dtype=np.int64).reshape(-1, 2).T
    right = right_children(column.tolist())
    whole, count = sums_of_nodes(column, right, sums.whole), sums_of_nodes(column, right, rows)
    of_nodes = ExactSums(whole, sums.exponent)
    value = of_nodes.to_float()
    action = value.argmin(axis=1).astype(np.int32)
    if actions is not None:
        action[column < 0] = actions
    kept = np.ones(len(column), dtype=bool)
    if merge:
        _merge_siblings(column, right, action, kept)
    number = np.cumsum(kept, dtype=np.int32) - 1
    asked = kept & (column >= 0)
    inner = np.flatnonzero(asked)
    at = number[inner]
    left_child, right_child = np.full((2, int(kept.sum())), TREE_LEAF, dtype=np.int32)
    feature = np.full(len(left_child), TREE_UNDEFINED, dtype=np.int32)
    threshold, missing = np.full(len(feature), np.nan), np.zeros(len(feature), dtype=bool)
    left_child[at], right_child[at] = number[inner + 1], number[right[inner]]
    for node, i in zip(at.tolist(), inner.tolist(), strict=True):
        split = columns[column[i]]
        feature[node], threshold[node] = split.feature, split.thresholds[cut[i]]
        missing[node] = missing_goes_left(features, columns, split, count[i + 1] / max(count[i], 1))
    tree = Tree(
        left_child, right_child, feature, threshold, missing, action[kept], count[kept], value[kept], features,
        tuple(range(value.shape[1])),
    )  # fmt: skip
    ends = np.flatnonzero(kept & ~asked)
    return GrownTree(tree, of_nodes[ends, action[ends]].total(), kept, asked)


def right_children(column: list[int]) -> np.ndarray:
    """The right child of every node of a tree in preorder, whose left child follows it; -1 of leaves."""
    right, ends = np.full(len(column), -1), [0] * len(column)  # where a subtree ends
    for i in range(len(column) - 1, -1, -1):
        if column[i] < 0:
            ends[i] = i + 1
        else:
            right[i] = ends[i + 1]
            ends[i] = ends[ends[i + 1]]
    return right


def sums_of_nodes(column: np.ndarray, right: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """Sums by node (nodes, ...) from those by leaf (leaves, ...), of a tree in preorder.

    ``column`` (nodes,): negative in leaves; ``right`` (nodes,): right children.
    """
    out = np.empty((len(column), *of_leaves.shape[1:]), dtype=of_leaves.dtype)
    out[column < 0] = of_leaves
    for i in np.flatnonzero(column >= 0)[::-1].tolist():
        out[i] = out[i + 1] + out[right[i]]
    return out


def _merge_siblings(column: np.ndarray, right: np.ndarray, action: np.ndarray, kept: np.ndarray) -> None:
    """Make one leaf of two that have one action, again and again."""
    for i in np.flatnonzero(column >= 0)[::-1].tolist():
        one, other = i + 1, right[i]
        if column[one] < 0 and column[other] < 0 and action[one] == action[other]:
            column[i], action[i] = -1, action[one]
            kept[one] = kept[other] = False


def _cost_of_splits(problem: Problem, splits: list[tuple[int, int]], asked: np.ndarray) -> list[float]:
    """Return the cost of each question of a tree; zero where it is not asked."""
    if problem.feature_costs is None:
        return []
    costs: list[float] = []
    paid = [frozenset[int]()]
    for (column, _), rows, charged in zip(splits, rows_of_splits(problem.data, splits), asked, strict=True):
        known = paid.pop()
        if column >= 0:
            costs.append(split_cost(problem, column, rows, known) if charged else 0.0)
            paid += [paid_below(problem, column, known)] * 2
    return costs


def split_cost(problem: Problem, column: int, rows: np.ndarray, paid: frozenset = frozenset()) -> float:
    """Return the cost of a split of these rows on a column where these groups of features were paid for."""
    groups, feature = problem.feature_groups, problem.data.columns[column].feature
    if problem.feature_costs is None or (groups is not None and int(groups[feature]) in paid):
        return 0.0
    mass = len(rows) if problem.weights is None else float(problem.weights[rows].sum())
    return float(problem.feature_costs[feature]) * mass


def paid_below(problem: Problem, column: int, paid: frozenset = frozenset()) -> frozenset:
    """The groups of features that are paid for below a split on a column; none where every split is charged."""
    groups = problem.feature_groups
    return paid if groups is None else paid | {int(groups[problem.data.columns[column].feature])}


def dearest_level(problem: Problem) -> float:
    """Return the cost of splitting all rows once, on the dearest feature."""
    if problem.feature_costs is None:
        return 0.0
    mass = problem.data.n_rows if problem.weights is None else float(problem.weights.sum())
    return float(problem.feature_costs.max(initial=0.0)) * mass


def missing_goes_left(
    features: tuple[Feature, ...], columns: tuple[SplitColumn, ...], split: SplitColumn, share_left: float
) -> bool:
    """As learned; where training had no missing value, with the larger side (for one category: with the rest)."""
    if split.missing_left or features[split.feature].kind == CATEGORICAL:
        return split.missing_left
    learned = any(c.missing_left for c in columns if c.feature == split.feature)
    return False if learned or np.isposinf(split.thresholds[-1]) else share_left >= 0.5
