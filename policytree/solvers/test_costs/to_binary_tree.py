"""A greedy tree as the binary Tree that all views, exports and files read.

A multi-way test becomes a chain of questions on its column, one category after the other; the price stands at its first
question. The heaviest branch comes last, so that a category that was never seen goes there; missing values are asked
for first where training had some.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policytree.solvers.core.scoring import missing_goes_left
from policytree.solvers.kernels.test_costs.layout import MULTIWAY
from policytree.solvers.test_costs.grow import LEAF, CostTests, GreedyTree
from policytree.trees.tree import TREE_LEAF, TREE_UNDEFINED, Tree


@dataclass(frozen=True, slots=True)
class BinaryView:
    """A greedy tree with binary questions.

    Attributes
    ----------
    tree : Tree
        A loss is the weight of the rows of other classes.
    node_costs : ndarray of shape (node_count,)
        Cost of every node's question for those who reach it.
    class_shares : ndarray of shape (node_count, K)
        Weighted share of every class in every node.
    places : ndarray of shape (greedy nodes,), int64
        Where the nodes of the greedy tree stand; -1 for nodes that pruning cut off.
    """

    tree: Tree
    node_costs: np.ndarray
    class_shares: np.ndarray
    places: np.ndarray


Step = tuple[int, list[int], int, bool]  # a node of the greedy tree, branches left to ask for, parent, whether left


def binary_tree(
    greedy: GreedyTree, tests: CostTests, X: np.ndarray, labels: np.ndarray, weights: np.ndarray, actions: tuple
) -> BinaryView:
    """The tree, with the counts and summed losses of the rows given.

    Parameters
    ----------
    greedy : GreedyTree
    tests : CostTests
    X : ndarray of shape (n, p)
        Encoded rows.
    labels, weights : ndarray of shape (n,)
    actions : tuple of K labels
    """
    parts = _Chains(greedy, tests).build()
    n, K = len(parts.feature), len(actions)
    tree = Tree(
        children_left=np.array(parts.left, dtype=np.int32),
        children_right=np.array(parts.right, dtype=np.int32),
        feature=np.array(parts.feature, dtype=np.int32),
        threshold=np.array(parts.threshold, dtype=np.float64),
        missing_go_to_left=np.array(parts.missing, dtype=bool),
        action=np.zeros(n, dtype=np.int32),
        n_node_samples=np.zeros(n, dtype=np.int64),
        value=np.zeros((n, K)),
        features=tests.data.features,
        actions=actions,
    )
    shares = np.zeros((n, K))
    for node, rows in enumerate(tree.rows_of_nodes(X)):
        by_class = np.bincount(labels[rows], weights=weights[rows], minlength=K)
        tree.value[node] = by_class.sum() - by_class
        shares[node] = by_class / by_class.sum()
        tree.action[node] = by_class.argmax()
        tree.n_node_samples[node] = len(rows)
    return BinaryView(tree, np.array(parts.price), shares, parts.places)


@dataclass
class _Chains:
    """Columns of the binary tree, while its nodes are appended in preorder."""

    greedy: GreedyTree
    tests: CostTests
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)
    price: list[float] = field(default_factory=list)
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def build(self) -> _Chains:
        """Append all nodes."""
        self.places = np.full(len(self.greedy.column), -1, dtype=np.int64)
        stack: list[Step] = [(0, [], -1, False)]
        while stack:
            node, branches, parent, is_left = stack.pop()
            at = self._append(parent, is_left)
            if not branches:
                self.places[node] = at
            if self.greedy.column[node] == LEAF:
                continue
            if not branches:
                branches = self._branches(node)
                self.price[at] = float(self.greedy.price[node])
            self._ask(at, node, branches[0])
            rest = branches[1:]
            right: Step = (node, rest, at, False) if len(rest) > 1 else (self._child(node, rest[0]), [], at, False)
            stack += [right, (self._child(node, branches[0]), [], at, True)]
        return self

    def _append(self, parent: int, is_left: bool) -> int:
        at = len(self.feature)
        if parent >= 0:
            (self.left if is_left else self.right)[parent] = at
        self.left.append(TREE_LEAF)
        self.right.append(TREE_LEAF)
        self.feature.append(TREE_UNDEFINED)
        self.threshold.append(np.nan)
        self.missing.append(False)
        self.price.append(0.0)
        return at

    def _child(self, node: int, branch: int) -> int:
        return self.greedy.children[node][branch]

    def _weight(self, node: int, branch: int) -> float:
        return float(self.greedy.weights[self._child(node, branch)].sum())

    def _branches(self, node: int) -> list[int]:
        """Branches in the order in which they are asked for."""
        taken = [v for v, child in enumerate(self.greedy.children[node]) if child >= 0]
        if self.greedy.cut[node] != MULTIWAY:
            return taken
        thresholds = self.tests.data.columns[self.greedy.column[node]].thresholds
        return sorted(taken, key=lambda v: (thresholds[v] >= 0, self._weight(node, v)))

    def _ask(self, at: int, node: int, branch: int) -> None:
        column, cut = self.greedy.column[node], self.greedy.cut[node]
        split = self.tests.data.columns[column]
        self.feature[at] = split.feature
        if cut == MULTIWAY:
            self.threshold[at] = float(split.thresholds[branch])
            self.missing[at] = bool(split.thresholds[branch] < 0)
        else:
            self.threshold[at] = float(split.thresholds[cut])
            share = self._weight(node, 0) / float(self.greedy.weights[node].sum())
            self.missing[at] = missing_goes_left(self.tests.data.features, self.tests.data.columns, split, share)
