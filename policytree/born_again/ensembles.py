"""Ensembles of trees as arrays that compute what their own ``predict`` computes, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.common.validation import LARGEST as LARGEST_NUMBER
from policytree.common.validation import is_whole
from policytree.data.views import Shown
from policytree.exceptions import InputError, quoted

LARGEST, NONNEGATIVE, POSITIVE = "largest", "nonnegative", "positive"
MOST_CLASSES = 250
LEAF = -1


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleTree:
    """One tree of an ensemble; ``x[feature] <= threshold`` goes left, for x in float64.

    Attributes
    ----------
    feature : ndarray of shape (nodes,), int64
        -1 in leaves.
    threshold : ndarray of shape (nodes,), float64
    left, right : ndarray of shape (nodes,), int64
        -1 in leaves.
    value : ndarray of shape (nodes, K), float64
        Each leaf's addition to the scores.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    @property
    def leaves(self) -> np.ndarray:
        """Numbers of the leaves."""
        return np.flatnonzero(self.feature == LEAF)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """The leaf of every row, float64 (n, p)."""
        node = np.zeros(len(X), dtype=np.int64)
        going = np.flatnonzero(self.feature[node] != LEAF)
        while len(going):
            at = node[going]
            left = X[going, self.feature[at]] <= self.threshold[at]
            node[going] = np.where(left, self.left[at], self.right[at])
            going = going[self.feature[node[going]] != LEAF]
        return node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeEnsemble(Shown):
    """An ensemble of classification trees: scores that its trees add up, and the class that they decide for.

    Attributes
    ----------
    trees : tuple of EnsembleTree
    classes : tuple
        The labels.
    feature_names : tuple of str
    named : bool
        Whether tables are matched to these names.
    base : ndarray of shape (K,), float64
        Where the sum of scores begins. K is the number of classes, or 1.
    ends : tuple of int
        After which trees a partial sum ends; partial sums are added up at last. One, unless jobs share the work.
    divisor : float
        The sum is divided by it.
    decision : {"largest", "nonnegative", "positive"}
        The class of the largest score, the first of several; or the second class if the only score is >= 0, or > 0.
    additive : bool
        Whether a tree alone says nothing about classes, as in boosting.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from policytree.born_again.readers import read_ensemble
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> ensemble = read_ensemble(DecisionTreeClassifier().fit(X, y))
    >>> len(ensemble.trees), ensemble.feature_names
    (1, ('x0',))
    """

    trees: tuple[EnsembleTree, ...]
    classes: tuple
    feature_names: tuple[str, ...]
    named: bool
    base: np.ndarray
    ends: tuple[int, ...]
    divisor: float = 1.0
    decision: str = LARGEST
    additive: bool = False

    def __post_init__(self) -> None:
        if not 0 < len(self.classes) <= MOST_CLASSES:
            raise InputError(f"The ensemble has {len(self.classes)} classes; from 1 to {MOST_CLASSES} can be handled.")
        if not _distinct(self.classes):
            raise InputError("classes must be distinct labels.")
        thresholds = [t.threshold[t.feature != LEAF] for t in self.trees]
        if thresholds and not np.isfinite(np.concatenate(thresholds)).all():
            raise InputError("The ensemble has a threshold that is no finite number; a tree cannot ask for it.")

    @classmethod
    def from_arrays(
        cls,
        trees: Iterable[Mapping[str, Any]],
        *,
        n_features: int,
        classes: Sequence | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> TreeEnsemble:
        """Describe a forest by arrays.

        Parameters
        ----------
        trees : iterable of mappings
            For every tree: ``feature``, ``threshold``, ``left``, ``right`` of its nodes, the root first, with -1 for
            ``left`` and ``right`` in leaves; and either ``class``, the class (0, 1, ...) that a leaf votes for, or
            ``value``, (nodes, K) scores that its leaves add. ``x[feature] <= threshold`` goes left. None or NaN may
            stand where a node has nothing of the kind.
        n_features : int
        classes : sequence, optional
            Labels of the K classes; 0, 1, ... by default.
        feature_names : sequence of str, optional

        Returns
        -------
        TreeEnsemble
            The class with the largest sum is predicted, the first of several.

        Raises
        ------
        InputError
            If a tree is not well formed.
        """
        if not is_whole(n_features) or n_features < 1:
            raise InputError(f"n_features must be a whole number of at least 1; got {quoted(n_features)}.")
        given = _list_of_trees(trees)
        nodes = [_nodes_of(tree, t, n_features) for t, tree in enumerate(given)]
        K = len(classes) if classes is not None else max(each["scores"] for each in nodes)
        made = tuple(_tree_of(each, t, K) for t, each in enumerate(nodes))
        labels = tuple(range(K)) if classes is None else tuple(getattr(classes, "tolist", lambda: classes)())
        names = tuple(f"x{j}" for j in range(n_features)) if feature_names is None else tuple(feature_names)
        if len(set(names)) != n_features:
            raise InputError(f"feature_names must be {n_features} different names; got {len(set(names))}.")
        return cls(made, labels, names, feature_names is not None, np.zeros(K), (len(made),))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.feature_names)

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees together."""
        return sum(len(tree.leaves) for tree in self.trees)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows, added up in the order of the trees in the ensemble; shape (n, K)."""
        total, part, group = np.zeros((len(X), len(self.base))), np.tile(self.base, (len(X), 1)), 0
        for t, tree in enumerate(self.trees, start=1):
            part += tree.value[tree.apply(X)]
            if t == self.ends[group]:
                total, part, group = total + part, np.zeros_like(part), group + 1
        return total / self.divisor

    def predict_codes(self, X: np.ndarray) -> np.ndarray:
        """Class of rows as a position in ``classes``; X is float64 (n, p) without missing values."""
        scores = self.scores(X)
        if self.decision == LARGEST:
            return scores.argmax(axis=1)
        return (scores[:, 0] >= 0 if self.decision == NONNEGATIVE else scores[:, 0] > 0).astype(np.int64)

    def thresholds(self) -> list[np.ndarray]:
        """All thresholds of every feature, ascending."""
        feature = np.concatenate([tree.feature for tree in self.trees])
        threshold = np.concatenate([tree.threshold for tree in self.trees])
        return [np.unique(threshold[feature == j]) for j in range(self.n_features)]

    def with_hard_votes(self) -> TreeEnsemble:
        """Return the same trees, each with one vote for the leaf's largest class; ties go to the first."""
        if self.additive:
            raise InputError("voting='hard' needs trees that vote for classes; boosted trees add scores.")
        eye = np.eye(len(self.classes))
        trees = tuple(
            EnsembleTree(t.feature, t.threshold, t.left, t.right, eye[t.value.argmax(axis=1)]) for t in self.trees
        )
        names, named = self.feature_names, self.named
        return TreeEnsemble(trees, self.classes, names, named, np.zeros_like(self.base), (len(trees),))


def _distinct(labels: tuple) -> bool:
    try:
        return len(set(labels)) == len(labels)
    except TypeError:  # lists, say
        return False


def _list_of_trees(trees: Any) -> list[Mapping[str, Any]]:
    found: list[Any] = list(trees) if isinstance(trees, Iterable) and not hasattr(trees, "keys") else [None]
    if not all(hasattr(tree, "keys") for tree in found):
        raise InputError("trees must be a list with a mapping for every tree, from names of arrays to arrays.")
    if not found:
        raise InputError("trees holds no tree; give at least one.")
    return found


def _whole_numbers(tree: Mapping[str, Any], name: str, t: int) -> np.ndarray:
    """One whole number a node; -1 where nothing is said."""
    numbers = _numbers(tree[name])
    whole = None if numbers is None else np.where(np.isnan(numbers), LEAF, numbers)
    if whole is None or whole.ndim != 1 or (whole % 1 != 0).any():
        raise InputError(f"{name} of tree {t} must be whole numbers, one for every node, or None for no number.")
    return whole.astype(np.int64)


def _numbers(given: Any) -> np.ndarray | None:
    """Numbers, NaN for None; None if there is something else."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _nodes_of(tree: Mapping[str, Any], t: int, n_features: int) -> dict[str, Any]:
    """Arrays of a tree that are known to belong together, and how many scores its leaves have at least."""
    lacking = [name for name in ("feature", "threshold", "left", "right") if name not in tree]
    if lacking or ("class" in tree) == ("value" in tree):
        has = ", ".join(map(str, tree))
        raise InputError(f"Tree {t} must have feature, threshold, left, right and either class or value; it has {has}.")
    left, right = _whole_numbers(tree, "left", t), _whole_numbers(tree, "right", t)
    n, leaf = len(left), left < 0
    feature, threshold = _whole_numbers(tree, "feature", t), _numbers(tree["threshold"])
    if threshold is None:
        raise InputError(f"threshold of tree {t} must be numbers; None in leaves.")
    children = np.sort(np.concatenate([left[~leaf], right[right >= 0]]))
    well_formed = n > 0 and right.shape == feature.shape == threshold.shape == (n,) and (leaf == (right < 0)).all()
    if not well_formed or not np.array_equal(children, np.arange(1, n)) or _has_circle(left, right):
        raise InputError(f"The nodes of tree {t} form no tree: each but the first must be one node's child.")
    if ((feature[~leaf] < 0) | (feature[~leaf] >= n_features)).any():
        raise InputError(f"Tree {t} asks for a feature that is not among 0 to {n_features - 1}.")
    nodes = {"feature": np.where(leaf, LEAF, feature), "threshold": threshold, "left": left, "right": right}
    if "value" in tree:
        value = _numbers(tree["value"])
        return nodes | {"value": value, "scores": 1 if value is None or value.ndim != 2 else value.shape[1]}
    votes = _whole_numbers(tree, "class", t)
    if len(votes) != n:
        raise InputError(f"class of tree {t} must have {n} numbers, one for every node; got {len(votes)}.")
    votes = np.where(leaf, votes, 0)
    return nodes | {"votes": votes, "scores": int(votes.max()) + 1}


def _tree_of(nodes: dict[str, Any], t: int, K: int) -> EnsembleTree:
    """A tree of an ensemble with K scores."""
    leaf, n = nodes["feature"] == LEAF, len(nodes["feature"])
    if "votes" in nodes:
        votes = nodes["votes"]
        if ((votes < 0) | (votes >= K)).any():
            raise InputError(f"Tree {t} votes for a class that is not among 0 to {K - 1}.")
        value = np.eye(K)[votes]
    else:
        value = nodes["value"]
        if value is None or value.shape != (n, K) or not (np.abs(value[leaf]) <= LARGEST_NUMBER).all():
            shape = "other things" if value is None else f"shape {value.shape}"
            raise InputError(
                f"value of tree {t} must be finite numbers of shape ({n}, {K}), in leaves none beyond "
                f"{LARGEST_NUMBER:g}; got {shape}."
            )
    return EnsembleTree(nodes["feature"], nodes["threshold"], nodes["left"], nodes["right"], value)


def _has_circle(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether not all nodes can be reached from the first."""
    reached, todo = 0, [0]
    while todo and reached <= len(left):
        node = todo.pop()
        reached += 1
        if left[node] >= 0:
            todo += [int(left[node]), int(right[node])]
    return reached != len(left)
