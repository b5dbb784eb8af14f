"""A decision tree as parallel arrays, with scikit-learn's array names."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from policytree.data.features import CATEGORICAL, Feature
from policytree.data.views import Shown
from policytree.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

    from policytree.plotting.trees import PolicyTreeDisplay

TREE_LEAF = -1
TREE_UNDEFINED = -2
IS_KNOWN, IS_MISSING = "is known", "is missing"


@dataclass(frozen=True, slots=True, repr=False)
class Tree(Shown):
    """A tree whose leaves carry actions. Nodes stand in preorder: node 0 is the root, a left child follows its parent.

    Attributes
    ----------
    children_left, children_right : ndarray of shape (node_count,), int32
        Child ids; ``TREE_LEAF`` (-1) in leaves.
    feature : ndarray of shape (node_count,), int32
        Index into ``features``; ``TREE_UNDEFINED`` (-2) in leaves.
    threshold : ndarray of shape (node_count,), float64
        Numeric features: ``x <= threshold`` goes left. Categorical ones: the categories at the positions
        ``Feature.levels_at(threshold)`` go left; the threshold of a single category is its position in
        ``Feature.categories``. NaN in leaves.
    missing_go_to_left : ndarray of shape (node_count,), bool
        Where missing values (NaN, and categories not seen at fit) go.
    action : ndarray of shape (node_count,), int32
        The action a leaf gives, an index into ``actions``; in inner nodes the best single action there.
    n_node_samples : ndarray of shape (node_count,), int64
        Training rows (not weights) in the node.
    value : ndarray of shape (node_count, K), float64
        Summed training loss of each action in the node.
    features : tuple of Feature
    actions : tuple
        The user's labels of the K actions.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards)
    >>> tree.tree_.node_count, tree.tree_.max_depth, tree.tree_.actions
    (3, 1, (np.int64(0), np.int64(1)))
    >>> print(tree.export_text())
    x0 ≤ 2.5?
    ├─ yes: 0  (2 rows, 50.0%)
    └─ no:  1  (2 rows, 50.0%)
    """

    children_left: np.ndarray
    children_right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_go_to_left: np.ndarray
    action: np.ndarray
    n_node_samples: np.ndarray
    value: np.ndarray
    features: tuple[Feature, ...]
    actions: tuple

    def __str__(self) -> str:
        return _texts().export_text(self)

    def _repr_html_(self) -> str:
        return _texts().export_html(self)

    def plot(self, ax: Any = None, *, leaf_summary: pd.DataFrame | None = None, **options: Any) -> PolicyTreeDisplay:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of the right size.
        leaf_summary : DataFrame, optional
            From :func:`policytree.leaf_summary` or :func:`policytree.honest_leaf_summary`: the values that the leaves
            show, with intervals where they are held out.
        **options
            ``labels``, ``title``, ``treatment_colors``, ``fontsize``, ``unit``, ``value_name``, ``limits`` and
            ``width``, as in :meth:`policytree.plotting.trees.PolicyTreeDisplay.plot`.
        """
        from policytree.plotting.trees import PolicyTreeDisplay

        return PolicyTreeDisplay.from_tree(self, leaf_summary=leaf_summary, ax=ax, **options)

    @property
    def node_count(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @property
    def is_leaf(self) -> np.ndarray:
        """Mask of leaves, shape (node_count,)."""
        return self.children_left == TREE_LEAF

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def used_features(self) -> np.ndarray:
        """Positions in ``features`` of those that the tree splits on, ascending; int64."""
        return np.unique(self.feature[~self.is_leaf]).astype(np.int64)

    def node_depths(self) -> np.ndarray:
        """Depth of every node, the root at 0; shape (node_count,), int64."""
        depths, level, depth = np.zeros(self.node_count, dtype=np.int64), np.zeros(1, dtype=np.int64), 0
        leaf = self.is_leaf
        while len(level):
            depths[level] = depth
            inner = level[~leaf[level]]
            level = np.concatenate([self.children_left[inner], self.children_right[inner]])
            depth += 1
        return depths

    @property
    def max_depth(self) -> int:
        """Largest number of splits on a path."""
        return int(self.node_depths().max())

    def asks_for_missing(self, node: int) -> str | None:
        """``IS_KNOWN`` or ``IS_MISSING`` if an inner node asks just that of its feature, else None."""
        threshold = self.threshold[node]
        if self.features[self.feature[node]].kind == CATEGORICAL:
            return IS_MISSING if threshold == -1 else None
        if np.isneginf(threshold) and self.missing_go_to_left[node]:
            return IS_MISSING
        return IS_KNOWN if np.isposinf(threshold) else None

    def goes_left(self, node: int, x: np.ndarray) -> np.ndarray:
        """Mark the rows that go left at an inner node, by the encoded values of its feature; shape (n,), bool."""
        if self.features[self.feature[node]].kind == CATEGORICAL:
            levels = self.features[self.feature[node]].levels_at(self.threshold[node])
            left = x == levels[0] if len(levels) == 1 else np.isin(x, levels)
        else:
            left = x <= self.threshold[node]
        return left | np.isnan(x) if self.missing_go_to_left[node] else left

    def rows_of_nodes(self, X: np.ndarray) -> list[np.ndarray]:
        """Row indices that reach each node."""
        if X.ndim != 2 or X.shape[1] != len(self.features):
            raise InputError(f"X must have {len(self.features)} columns; got shape {X.shape}.")
        rows: list[np.ndarray] = [np.arange(len(X))] + [np.empty(0, np.intp)] * (self.node_count - 1)
        for node in np.flatnonzero(~self.is_leaf):
            left = self.goes_left(int(node), np.take(X[:, self.feature[node]], rows[node]))
            rows[self.children_left[node]] = np.take(rows[node], np.flatnonzero(left))  # half the time of a mask
            rows[self.children_right[node]] = np.take(rows[node], np.flatnonzero(~left))
        return rows

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Leaf id of every row of the encoded float64 matrix ``X`` (n, p); shape (n,), int64."""
        leaves = np.zeros(len(X), dtype=np.int64)
        rows = self.rows_of_nodes(X)
        for node in np.flatnonzero(self.is_leaf):
            leaves[rows[node]] = node
        return leaves

    def decision_path(self, X: np.ndarray) -> csr_matrix:
        """Sparse indicator of the nodes each row passes, CSR of shape (n, node_count)."""
        from scipy.sparse import csr_matrix

        rows = self.rows_of_nodes(X)
        i = np.concatenate(rows)
        j = np.repeat(np.arange(self.node_count), [len(r) for r in rows])
        return csr_matrix((np.ones(len(i), dtype=np.int8), (i, j)), shape=(len(X), self.node_count))


def _texts() -> Any:
    """The module that puts trees into words; it imports this one."""
    return import_module("policytree.trees.text")
