"""Whether a tree predicts what an ensemble predicts, everywhere; independent of the search.

Points are put into every cell of the grid of both, the tree's thresholds and the ensemble's, and predicted by both: on
and next to the thresholds. Where cells are too many, boxes are sent through the tree and through the ensemble instead:
a leaf of the tree is a box; the ensemble's trees cut it into boxes that each reach one leaf of every tree, and these
boxes leave nothing out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from policytree.born_again.ensembles import LARGEST, LEAF, TreeEnsemble
from policytree.data.views import Shown
from policytree.exceptions import InputError
from policytree.trees.tree import Tree

MOST_CELLS = 3_000_000  # beyond, boxes are sent through
MOST_BOXES = 2_000_000
CHUNK = 1 << 17
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, repr=False)
class FaithfulnessCheck(Shown):
    """Outcome of a faithfulness check.

    Attributes
    ----------
    faithful : bool
    method : {"every cell", "reachability"}
    checked : int
        Cells, or boxes.
    counterexample : ndarray of shape (p,) or None
        A point on which the tree and the ensemble differ.
    """

    faithful: bool
    method: str
    checked: int
    counterexample: np.ndarray | None = None

    def __str__(self) -> str:
        if self.faithful:
            return f"faithful: checked on {self.checked:,} {'cells' if self.method == 'every cell' else 'boxes'}"
        return f"not faithful: differs at {self.counterexample}"


def check_faithfulness(
    tree: Tree,
    ensemble: TreeEnsemble,
    predict: Callable[[np.ndarray], np.ndarray] | None = None,
    most_cells: int = MOST_CELLS,
) -> FaithfulnessCheck:
    """Compare a tree with an ensemble on the whole space.

    Parameters
    ----------
    tree : Tree
    ensemble : TreeEnsemble
    predict : callable, optional
        From rows, float64 (n, p), to positions in ``ensemble.classes``: the ensemble's own predictions, in place of
        those of the arrays. Used on cells only.
    most_cells : int
        Grids with more cells are checked by reachability.

    Raises
    ------
    InputError
        If there are too many cells, and too many boxes as well.
    """
    edges = [_edges(tree, ensemble, j) for j in range(ensemble.n_features)]
    cells = int(np.prod([len(each) for each in edges], dtype=object))
    if cells <= most_cells:
        return _every_cell(tree, predict or ensemble.predict_codes, edges, cells)
    return _reachability(tree, ensemble)


def _edges(tree: Tree, ensemble: TreeEnsemble, j: int) -> np.ndarray:
    """The last point of every cell of a feature: its thresholds, and a point beyond the last one."""
    found = [tree.threshold[tree.feature == j]]
    found += [each.threshold[each.feature == j] for each in ensemble.trees]
    thresholds = np.unique(np.concatenate(found))
    beyond = _next(thresholds[-1:]) if len(thresholds) else np.zeros(1)
    return np.concatenate([thresholds, beyond])


def _next(numbers: np.ndarray) -> np.ndarray:
    """The numbers that follow; infinity after the largest."""
    with np.errstate(over="ignore"):
        return np.nextafter(numbers, np.inf)


def _every_cell(tree: Tree, predict, edges: list[np.ndarray], cells: int) -> FaithfulnessCheck:
    shape = [len(each) for each in edges]
    for start in range(0, cells, CHUNK):
        places = np.unravel_index(np.arange(start, min(cells, start + CHUNK)), shape)
        for side in range(2):  # the last point of a cell, and the first
            X = np.empty((len(places[0]), len(edges)))
            for j, (each, at) in enumerate(zip(edges, places, strict=True)):
                X[:, j] = each[at] if side == 0 else np.where(at > 0, _next(each)[at - 1], each[0] - 1.0)
            wrong = np.flatnonzero(tree.action[tree.apply(X)] != predict(X))
            if len(wrong):
                return FaithfulnessCheck(False, "every cell", start + int(wrong[0]) + 1, X[wrong[0]])
    return FaithfulnessCheck(True, "every cell", cells)


def _reachability(tree: Tree, ensemble: TreeEnsemble) -> FaithfulnessCheck:
    p, checked = ensemble.n_features, 0
    boxes = [(0, np.full(p, -np.inf), np.full(p, np.inf))]  # of the tree: low < x <= high
    while boxes:
        node, low, high = boxes.pop()
        if not tree.is_leaf[node]:
            j, t = int(tree.feature[node]), float(tree.threshold[node])
            if low[j] < t:
                boxes.append((int(tree.children_left[node]), low, _with(high, j, min(t, high[j]))))
            if high[j] > t:
                boxes.append((int(tree.children_right[node]), _with(low, j, max(t, low[j])), high))
            continue
        count, point = _through_ensemble(ensemble, low, high, int(tree.action[node]), MOST_BOXES - checked)
        checked += count
        if point is not None:
            return FaithfulnessCheck(False, "reachability", checked, point)
    return FaithfulnessCheck(True, "reachability", checked)


def _with(bounds: np.ndarray, j: int, value: float) -> np.ndarray:
    bounds = bounds.copy()
    bounds[j] = value
    return bounds


def _through_ensemble(ensemble: TreeEnsemble, low, high, action: int, most: int) -> tuple[int, np.ndarray | None]:
    """Boxes that a box falls into, and a point of it that the ensemble does not give this class, if there is one."""
    todo, count = [(low, high, [0] * len(ensemble.trees))], 0
    while todo:
        low, high, at = todo.pop()
        at = [_descended(tree, node, low, high) for tree, node in zip(ensemble.trees, at, strict=True)]
        count += 1
        if count > most:
            raise InputError(
                f"Faithfulness could not be checked: there are more than {MOST_CELLS:,} cells, and more than "
                f"{MOST_BOXES:,} boxes of points that reach the same leaves."
            )
        open_trees = [t for t, tree in enumerate(ensemble.trees) if tree.feature[at[t]] != LEAF]
        if open_trees and _decided(ensemble, at, action):
            continue
        if not open_trees:
            point = np.where(np.isfinite(high), high, np.where(np.isfinite(low), _next(low), 0.0))
            if ensemble.predict_codes(point[None])[0] != action:
                return count, point
            continue
        tree = ensemble.trees[open_trees[0]]
        node = at[open_trees[0]]
        j, t = int(tree.feature[node]), float(tree.threshold[node])
        todo += [(low, _with(high, j, t), list(at)), (_with(low, j, t), high, list(at))]
    return count, None


def _descended(tree, node: int, low, high) -> int:
    """Where a box stands in a tree: the node that splits it, or a leaf."""
    while tree.feature[node] != LEAF:
        j, t = tree.feature[node], tree.threshold[node]
        if high[j] <= t:
            node = int(tree.left[node])
        elif low[j] >= t:
            node = int(tree.right[node])
        else:
            break
    return node


def _decided(ensemble: TreeEnsemble, at: list[int], action: int) -> bool:
    """Whether the class is this one whatever leaves below these nodes are reached."""
    low, high = np.array(ensemble.base, dtype=float), np.array(ensemble.base, dtype=float)
    for tree, node in zip(ensemble.trees, at, strict=True):
        values = tree.value[leaves_below(tree, node)]
        low += values.min(axis=0)
        high += values.max(axis=0)
    margin = ROUNDING * (1.0 + np.abs(low).max() + np.abs(high).max())
    if ensemble.decision != LARGEST:
        return bool(low[0] > margin) if action == 1 else bool(high[0] < -margin)
    return bool((np.delete(high, action) < low[action] - margin).all())


def leaves_below(tree, node: int) -> list[int]:
    """The leaves of an ensemble's tree that can be reached from a node."""
    found, todo = [], [node]
    while todo:
        at = todo.pop()
        if tree.feature[at] == LEAF:
            found.append(at)
        else:
            todo += [int(tree.left[at]), int(tree.right[at])]
    return found
