"""From a search's splits to a Tree with its sums, and the objective re-scored from the losses as given."""

from __future__ import annotations

import numpy as np

from policytree.features import CATEGORICAL, Feature
from policytree.solvers.fixed_point import FixedPoint
from policytree.tree import TREE_LEAF, TREE_UNDEFINED, Tree
from policytree.types import Problem, Solution, SplitColumn, Status


def leaf_only(problem: Problem, fixed: FixedPoint, status: Status, seconds: float) -> Solution:
    """The tree without a split, when nothing else can be said."""
    return finish(problem, fixed, [(-1, 0)], 0.0, status, seconds, {})


def finish(problem: Problem, fixed: FixedPoint, splits, gap: float, status: Status, seconds, counters) -> Solution:
    """Build the tree of preorder ``splits``, merge sibling leaves with the same action, and score it in float64."""
    tree, objective = scored_tree(problem, splits)
    return Solution(tree, objective, objective - gap, status, seconds, fixed.resolution, counters)


def scored_tree(
    problem: Problem, splits: list[tuple[int, int]], actions=None, *, merge: bool = True
) -> tuple[Tree, float]:
    """Tree of ``(column, cut)`` pairs in preorder, ``column`` -1 for a leaf, and its objective in float64.

    Rows are followed by their codes. Leaves take their best actions, or those of ``actions`` (one a leaf, in preorder);
    siblings of one action become one leaf if ``merge``.
    """
    builder = _Builder(problem, splits, actions, merge)
    builder.add(np.arange(problem.data.n_rows))
    columns = list(zip(*builder.nodes, strict=True))
    tree = Tree(
        children_left=np.array(columns[0], dtype=np.int32),
        children_right=np.array(columns[1], dtype=np.int32),
        feature=np.array(columns[2], dtype=np.int32),
        threshold=np.array(columns[3], dtype=np.float64),
        missing_go_to_left=np.array(columns[4], dtype=bool),
        action=np.array(columns[5], dtype=np.int32),
        n_node_samples=np.array(columns[6], dtype=np.int64),
        value=np.array(columns[7], dtype=np.float64).reshape(len(builder.nodes), -1),
        features=problem.data.features,
        actions=tuple(range(problem.losses.shape[1])),
    )
    leaves = np.flatnonzero(tree.is_leaf)
    loss = float(tree.value[leaves, tree.action[leaves]].sum())
    return tree, loss + problem.leaf_penalty * tree.n_leaves + float(np.sum(columns[8]))


def split_cost(problem: Problem, column: int, rows: np.ndarray, paid: frozenset = frozenset()) -> float:
    """What a split of these rows on a column costs where these groups of features were paid for."""
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
    """What it costs to split all rows once, on the dearest feature."""
    if problem.feature_costs is None:
        return 0.0
    mass = problem.data.n_rows if problem.weights is None else float(problem.weights.sum())
    return float(problem.feature_costs.max(initial=0.0)) * mass


class _Builder:
    """Consumes preorder splits and appends nodes in preorder; the last entry of a node is what its split costs."""

    def __init__(self, problem: Problem, splits, actions=None, merge: bool = True):
        self.problem = problem
        self.losses = np.ascontiguousarray(problem.losses.T)  # sums of its rows are quick
        self.merge = merge
        self.splits = iter(splits)
        self.actions = None if actions is None else iter(actions)
        self.nodes: list[list] = []

    def add(self, rows: np.ndarray, paid: frozenset = frozenset()) -> int:
        """Append the next subtree, below questions of these groups of features; returns its node id."""
        column, cut = next(self.splits)
        node = len(self.nodes)
        entry: list = [TREE_LEAF, TREE_LEAF, TREE_UNDEFINED, np.nan, False, 0, len(rows), np.zeros(0), 0.0]
        self.nodes.append(entry)
        if column < 0:
            entry[7] = np.take(self.losses, rows, axis=1).sum(axis=1)
            entry[5] = int(np.argmin(entry[7]) if self.actions is None else next(self.actions))
            return node
        data = self.problem.data
        left = np.take(data.codes[column], rows) <= cut
        below = paid_below(self.problem, column, paid)
        entry[0] = self.add(np.take(rows, np.flatnonzero(left)), below)
        entry[1] = self.add(np.take(rows, np.flatnonzero(~left)), below)
        entry[7] = self.nodes[entry[0]][7] + self.nodes[entry[1]][7]
        entry[5] = int(np.argmin(entry[7]))
        if self.merge and self._same_leaf(entry[0], entry[1]):
            entry[5] = self.nodes[node + 1][5]
            del self.nodes[node + 1 :]
            entry[:2] = [TREE_LEAF, TREE_LEAF]
            return node
        split = data.columns[column]
        entry[8] = split_cost(self.problem, column, rows, paid)
        entry[2], entry[3] = split.feature, float(split.thresholds[cut])
        entry[4] = missing_goes_left(data.features, data.columns, split, left.sum() / len(left))
        return node

    def _same_leaf(self, a: int, b: int) -> bool:
        first, second = self.nodes[a], self.nodes[b]
        return first[0] == second[0] == TREE_LEAF and first[5] == second[5]


def missing_goes_left(
    features: tuple[Feature, ...], columns: tuple[SplitColumn, ...], split: SplitColumn, share_left: float
) -> bool:
    """As learned; where training had no missing value, with the larger side (for one category: with the rest)."""
    if split.missing_left or features[split.feature].kind == CATEGORICAL:
        return split.missing_left
    learned = any(c.missing_left for c in columns if c.feature == split.feature)
    return False if learned or np.isposinf(split.thresholds[-1]) else share_left >= 0.5
