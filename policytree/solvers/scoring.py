"""From a search's splits to a Tree with its sums, and the objective re-scored from the losses as given."""

from __future__ import annotations

import numpy as np

from policytree.features import CATEGORICAL
from policytree.solvers.fixed_point import FixedPoint
from policytree.tree import TREE_LEAF, TREE_UNDEFINED, Tree
from policytree.types import Problem, Solution, Status


def leaf_only(problem: Problem, fixed: FixedPoint, status: Status, seconds: float) -> Solution:
    """The tree without a split, when nothing else can be said."""
    return finish(problem, fixed, [(-1, 0)], 0.0, status, seconds, {})


def finish(problem: Problem, fixed: FixedPoint, splits, gap: float, status: Status, seconds, counters) -> Solution:
    """Build the tree of preorder ``splits``, merge sibling leaves with the same action, and score it in float64."""
    tree, objective = scored_tree(problem, splits)
    return Solution(tree, objective, objective - gap, status, seconds, fixed.resolution, counters)


def scored_tree(problem: Problem, splits: list[tuple[int, int]], actions=None) -> tuple[Tree, float]:
    """Tree of ``(column, cut)`` pairs in preorder, ``column`` -1 for a leaf, and its objective in float64.

    Rows are followed by their codes. Leaves take their best actions, or those of ``actions`` (one a leaf, in preorder).
    """
    builder = _Builder(problem, splits, actions)
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


def split_cost(problem: Problem, column: int, rows: np.ndarray) -> float:
    """What a split of these rows on a column costs."""
    if problem.feature_costs is None:
        return 0.0
    mass = len(rows) if problem.weights is None else float(problem.weights[rows].sum())
    return float(problem.feature_costs[problem.data.columns[column].feature]) * mass


def dearest_level(problem: Problem) -> float:
    """What it costs to split all rows once, on the dearest feature."""
    if problem.feature_costs is None:
        return 0.0
    mass = problem.data.n_rows if problem.weights is None else float(problem.weights.sum())
    return float(problem.feature_costs.max(initial=0.0)) * mass


class _Builder:
    """Consumes preorder splits and appends nodes in preorder; the last entry of a node is what its split costs."""

    def __init__(self, problem: Problem, splits, actions=None):
        self.problem = problem
        self.splits = iter(splits)
        self.actions = None if actions is None else iter(actions)
        self.nodes: list[list] = []

    def add(self, rows: np.ndarray) -> int:
        """Append the next subtree; returns its node id."""
        column, cut = next(self.splits)
        value = self.problem.losses[rows].sum(axis=0)
        node = len(self.nodes)
        entry = [TREE_LEAF, TREE_LEAF, TREE_UNDEFINED, np.nan, False, int(np.argmin(value)), len(rows), value, 0.0]
        self.nodes.append(entry)
        if column < 0:
            if self.actions is not None:
                entry[5] = int(next(self.actions))
            return node
        data = self.problem.data
        left = data.codes[column, rows] <= cut
        entry[0] = self.add(rows[left])
        entry[1] = self.add(rows[~left])
        if self._same_leaf(entry[0], entry[1]):
            entry[5] = self.nodes[node + 1][5]
            del self.nodes[node + 1 :]
            entry[:2] = [TREE_LEAF, TREE_LEAF]
            return node
        split = data.columns[column]
        entry[8] = split_cost(self.problem, column, rows)
        entry[2], entry[3] = split.feature, float(split.thresholds[cut])
        entry[4] = self._missing_left(split, left)
        return node

    def _same_leaf(self, a: int, b: int) -> bool:
        first, second = self.nodes[a], self.nodes[b]
        return first[0] == second[0] == TREE_LEAF and first[5] == second[5]

    def _missing_left(self, split, left: np.ndarray) -> bool:
        """As learned; where training had no missing value, with the larger side (for one category: with the rest)."""
        data = self.problem.data
        if split.missing_left or data.features[split.feature].kind == CATEGORICAL:
            return split.missing_left
        learned = any(c.missing_left for c in data.columns if c.feature == split.feature)
        return False if learned or np.isposinf(split.thresholds[-1]) else bool(2 * left.sum() >= len(left))
