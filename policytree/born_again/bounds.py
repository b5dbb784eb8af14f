"""Lower bounds for grids that are too large for an exact search, from parts of them.

Take some slabs of every feature and leave out all others. A tree that is faithful on the grid is faithful on what is
left, after splits that separate nothing there are left out: so the part needs no more depth, and no more leaves. Parts
are chosen so that classes change as often as possible, and solved exactly, a small one first, then larger ones while
there is time.
"""

from __future__ import annotations

import math

import numpy as np

from policytree.born_again.ensembles import LEAF, EnsembleTree
from policytree.born_again.grid import Grid, essence
from policytree.born_again.regions import count_boxes
from policytree.born_again.search import GridSearch
from policytree.solvers.core.limits import Clock

SIZES = (1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10)  # boxes of the parts, at most
SAMPLE = 1000  # pairs of cells that say how often the class changes across a cut
TABLE = 1 << 20  # cells of a part whose classes are written out, if those of the grid are not


def bounds_of_parts(
    grid: Grid, classes: np.ndarray | None, objective: str, seconds: float, memory: float | None
) -> tuple[int, int]:
    """Depth and leaves that every faithful tree needs.

    Parameters
    ----------
    grid : Grid
    classes : ndarray, uint8, or None
        Class of every cell that matters, if that is known.
    objective : {"depth", "leaves", "depth_then_leaves"}
        The size that is bounded from parts; leaves bound the depth too.
    seconds : float
        Wall time, from the smallest part on.
    memory : float or None
        Bytes that may be used.
    """
    clock = Clock(seconds)
    if classes is None:
        classes = essence(grid.classes(_most_asked(grid, TABLE))).classes
    both = objective == "depth_then_leaves"
    depth, leaves = 0, 1
    for part in reversed(_parts(classes)):
        for each in ("depth", "leaves") if both else (objective,):
            search = _solve(part, each, Clock(max(0.0, seconds - clock.seconds()), memory_limit=memory))
            depth, leaves = max(depth, search.depth), max(leaves, search.leaves)
            if search.clock.stopped:
                return depth, leaves
    return depth, leaves


def _solve(part: np.ndarray, objective: str, clock: Clock) -> GridSearch:
    """A search that is over, or was stopped; its bounds hold."""
    search = GridSearch(essence(part).classes, objective, clock)

    def work() -> None:
        search.run()

    clock.watch(work)
    return search


def _parts(classes: np.ndarray) -> list[np.ndarray]:
    """Parts of a grid, the largest first: slabs are left out that lose few changes for the boxes that they save."""
    rng = np.random.default_rng(0)
    kept, parts = [np.arange(n) for n in classes.shape], []
    for size in sorted(SIZES, reverse=True):
        if count_boxes(classes.shape) <= size / 10:  # the whole, once
            continue
        while count_boxes(tuple(map(len, kept))) > size:
            at = [each[rng.integers(0, len(each), SAMPLE)] for each in kept]
            j, c = min(
                ((j, c) for j, each in enumerate(kept) if len(each) > 1 for c in range(len(each))),
                key=_Losses(classes, kept, at),
            )
            kept[j] = np.delete(kept[j], c)
        parts.append(np.ascontiguousarray(classes[np.ix_(*kept)]))
    return parts


class _Losses:
    """Changes of class that are lost with a slab, for the logarithm of the boxes that it saves."""

    def __init__(self, classes: np.ndarray, kept: list[np.ndarray], at: list[np.ndarray]):
        self.losses = []
        for j, each in enumerate(kept):
            rows = classes[(*at[:j], each[:, None], *at[j + 1 :])]  # (slabs, SAMPLE)
            changes = np.concatenate([[0], (rows[1:] != rows[:-1]).sum(axis=1), [0]])
            closed = np.concatenate([[0], (rows[2:] != rows[:-2]).sum(axis=1), [0]])[: len(each)]
            self.losses.append(
                (changes[1:] + changes[:-1] - closed) / math.log((len(each) + 1) / max(1, len(each) - 1))
            )

    def __call__(self, slab: tuple[int, int]) -> float:
        return float(self.losses[slab[0]][slab[1]])


def _most_asked(grid: Grid, most: int) -> list[np.ndarray]:
    """Cells of every feature between the cuts that come first in the ensemble's trees, ``most`` cells in all."""
    weight: dict[tuple[int, int], float] = {}
    for tree in grid.ensemble.trees:
        for node, share in _shares(tree):
            j = int(tree.feature[node])
            cut = j, int(np.searchsorted(grid.thresholds[j], tree.threshold[node]))
            weight[cut] = weight.get(cut, 0.0) + share
    chosen: list[list[int]] = [[] for _ in grid.shape]
    for j, t in sorted(weight, key=lambda cut: -weight[cut]):
        if math.prod(len(each) + 1 + (k == j) for k, each in enumerate(chosen)) <= most:
            chosen[j].append(t)
    return [np.array([*sorted(each), n - 1]) for each, n in zip(chosen, grid.shape, strict=True)]


def _shares(tree: EnsembleTree) -> list[tuple[int, float]]:
    """Inner nodes, and their share of the space if every split halves it."""
    found, todo = [], [(0, 1.0)]
    while todo:
        node, share = todo.pop()
        if tree.feature[node] != LEAF:
            found.append((node, share))
            todo += [(int(tree.left[node]), share / 2), (int(tree.right[node]), share / 2)]
    return found
