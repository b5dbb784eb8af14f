"""Faithful trees for ensembles that are too large for an exact search.

The space is split until a region is small enough to be solved exactly. A region's class is never guessed: it is a leaf
only if bounds of the scores show one class, or if all its cells have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from policytree.born_again.ensembles import LARGEST
from policytree.born_again.grid import Grid, essence
from policytree.born_again.regions import count_boxes
from policytree.born_again.search import GridSearch
from policytree.exceptions import InputError
from policytree.solvers.core.limits import Clock

TABLE = 1 << 18  # cells of a region whose classes are written out
EXACT = 2e7  # boxes of a region that is solved exactly
MARGIN = 1e-9  # of the size of scores: sums are rounded


@dataclass
class Growing:
    """A tree that grows, and what was learnt on the way.

    Attributes
    ----------
    nodes : list of lists
        Preorder: feature of the ensemble (-1 in leaves), cut of the full grid, left, right, class.
    depth_bound, leaves_bound : int
        Of the regions that were solved exactly: the whole space needs no less than any of them.
    regions : int
        How many were solved exactly.
    """

    nodes: list[list[int]] = field(default_factory=list)
    depth_bound: int = 0
    leaves_bound: int = 1
    regions: int = 0


def grow(
    grid: Grid,
    objective: str,
    clock: Clock,
    limit: float = np.inf,
    exact: bool = True,
    report: Callable[[float, Growing], None] | None = None,
) -> Growing:
    """A faithful tree of the whole space.

    Parameters
    ----------
    grid : Grid
    objective : {"depth", "leaves", "depth_then_leaves"}
        The size that small regions are solved for.
    clock : Clock
        Says how long the search has run.
    limit : float
        Seconds after which small regions are split greedily as well.
    exact : bool
        False: split greedily throughout.
    report : callable, optional
        Is told now and then what share of the space is done, every split being taken as halving, and the tree so far.

    Raises
    ------
    InputError
        If the tree is not complete after twice the limit.
    """
    tree, done = Growing(), 0.0
    todo = [(grid.whole(), -1, 0, 1.0)]
    while todo:
        cells, parent, side, share = todo.pop()
        if clock.seconds() > 2 * limit:
            raise InputError(
                f"No faithful tree was complete after {clock.seconds():.0f} s ({len(tree.nodes):,} nodes so far); "
                "raise time_limit, or fit fewer or smaller trees, or fit them to fewer columns, or to fewer values."
            )
        node = len(tree.nodes)
        if parent >= 0:
            tree.nodes[parent][2 + side] = node
        region = _Region(grid, cells)
        if region.winner is not None:
            tree.nodes.append([-1, -1, -1, -1, region.winner])
        elif region.size <= TABLE:
            classes = grid.classes(region.cells)
            _grow_on_table(tree, region.cells, classes, objective, exact and clock.seconds() < limit)
        else:
            j, t = region.best_cut()
            tree.nodes.append([j, t, -1, -1, -1])
            sides = _above(region.cells, j, t), _below(region.cells, j, t)
            todo += [(sides[0], node, 1, share / 2), (sides[1], node, 0, share / 2)]
            continue
        done += share
        if report is not None:
            report(done, tree)
    return tree


def _below(cells: list[np.ndarray], j: int, t: int) -> list[np.ndarray]:
    return [*cells[:j], cells[j][cells[j] <= t], *cells[j + 1 :]]


def _above(cells: list[np.ndarray], j: int, t: int) -> list[np.ndarray]:
    return [*cells[:j], cells[j][cells[j] > t], *cells[j + 1 :]]


class _Region:
    """A box of cells: which leaves of the trees can be reached there, and which cuts they are asked about.

    Attributes
    ----------
    cells : list of ndarray
        The last cell of every slab between cuts that some tree asks about there; one stands for all of its slab.
    size : int
        Number of such cells.
    winner : int or None
        The class of the whole region, where bounds of the scores show it.
    """

    def __init__(self, grid: Grid, cells: list[np.ndarray]):
        self.grid = grid
        T = grid.reach.shape[1]
        alive = np.full(grid.reach.shape[1:], -1, dtype=np.int64)
        for start, each in zip(grid.offset, cells, strict=True):
            alive &= np.bitwise_or.reduce(grid.reach[start + each], axis=0)
        self.weight: dict[tuple[int, int], int] = {}
        self.cells = []
        for j, each in enumerate(cells):
            rows = grid.reach[grid.offset[j] + each]
            asked = ((rows[1:] ^ rows[:-1]) & alive).any(axis=2)  # (cuts, trees)
            live = asked.any(axis=1)
            self.weight.update({(j, int(each[k])): int(asked[k].sum()) for k in np.flatnonzero(live)})
            self.cells.append(np.concatenate([each[:-1][live], each[-1:]]))
        self.size = int(np.prod([len(each) for each in self.cells], dtype=object))
        bits = np.unpackbits(np.ascontiguousarray(alive).view(np.uint8), axis=1, bitorder="little").astype(bool)
        self.values = [
            grid.values[grid.first_leaf[t] + np.flatnonzero(bits[t])] for t in range(T)
        ]  # scores of leaves within reach
        self.winner = self._winner()

    def _winner(self) -> int | None:
        ensemble, K = self.grid.ensemble, self.grid.values.shape[1]
        scale = MARGIN * (1.0 + sum(float(np.abs(v).max()) for v in self.values) + float(np.abs(ensemble.base).max()))
        if ensemble.decision != LARGEST:
            low = float(ensemble.base[0]) + sum(float(v.min()) for v in self.values)
            high = float(ensemble.base[0]) + sum(float(v.max()) for v in self.values)
            return 1 if low > scale else 0 if high < -scale else None
        for a in range(K):
            leads = [
                float(ensemble.base[a] - ensemble.base[b]) + sum(float((v[:, a] - v[:, b]).min()) for v in self.values)
                for b in range(K)
                if b != a
            ]
            if all(lead > scale for lead in leads):
                return a
        return None

    def best_cut(self) -> tuple[int, int]:
        """The cut that most trees ask about; the one nearer to the middle, of several."""
        return max(self.weight, key=lambda cut: (self.weight[cut], -self._distance(cut)))

    def _distance(self, cut: tuple[int, int]) -> float:
        cells = self.cells[cut[0]]
        return abs(np.searchsorted(cells, cut[1]) + 1 - len(cells) / 2)


def _grow_on_table(tree: Growing, cells: list[np.ndarray], classes: np.ndarray, objective: str, exact: bool) -> None:
    """Append the tree of a region whose cells have known classes; ``cells[j][c]`` is the last cell of slab c."""
    todo = [(classes, cells, -1, 0)]
    while todo:
        classes, cells, parent, side = todo.pop()
        node = len(tree.nodes)
        if parent >= 0:
            tree.nodes[parent][2 + side] = node
        small = essence(classes)
        cuts = {j: cells[j][kept] for j, kept in zip(small.features, small.cuts, strict=True)}  # on the full grid
        if not small.features:
            tree.nodes.append([-1, -1, -1, -1, int(classes.flat[0])])
        elif exact and count_boxes(small.classes.shape) <= EXACT:
            found = GridSearch(small.classes, objective, Clock(None)).run()
            tree.depth_bound = max(tree.depth_bound, found.depth_bound)
            tree.leaves_bound = max(tree.leaves_bound, found.leaves_bound)
            tree.regions += 1
            tree.nodes += on_full_grid(np.asarray(found.nodes), small.features, cuts, node)
        else:
            k, t = _most_informative(small.classes)
            j = small.features[k]
            tree.nodes.append([j, int(cuts[j][t]), -1, -1, -1])
            slabs = [np.append(cuts[f], cells[f][-1]) if f in cuts else cells[f][-1:] for f in range(len(cells))]
            full = small.classes.reshape([len(each) for each in slabs])
            for s, part in ((1, slice(t + 1, None)), (0, slice(t + 1))):
                chosen = [*slabs[:j], slabs[j][part], *slabs[j + 1 :]]
                todo.append((np.ascontiguousarray(full[(slice(None),) * j + (part,)]), chosen, node, s))


def on_full_grid(nodes: np.ndarray, features: list[int], cuts: dict[int, np.ndarray], first: int) -> list[list[int]]:
    """Nodes of a tree on an essence, with features and cuts of the full grid; children are counted from ``first``."""
    out = np.array(nodes, dtype=np.int64)
    for k, j in enumerate(features):
        here = nodes[:, 0] == k
        out[here, 0], out[here, 1] = j, cuts[j][nodes[here, 1]]
    out[:, 2:4] += np.where(out[:, 2:4] >= 0, first, 0)
    return out.tolist()


def _most_informative(classes: np.ndarray) -> tuple[int, int]:
    """The cut after which the classes of cells are least mixed (entropy)."""
    K = int(classes.max()) + 1
    best = (np.inf, 0, 0)
    for j in range(classes.ndim):
        rows = np.moveaxis(classes, j, 0).reshape(classes.shape[j], -1)
        counts = np.stack([(rows == k).sum(axis=1) for k in range(K)], axis=1).cumsum(axis=0).astype(float)
        for t in range(len(counts) - 1):
            mixed = _entropy(counts[t]) + _entropy(counts[-1] - counts[t])
            best = min(best, (mixed, j, t))
    return best[1], best[2]


def _entropy(counts: np.ndarray) -> float:
    """Bits to tell the classes of so many cells."""
    some = counts[counts > 0]
    return float((some * np.log2(some.sum() / some)).sum())
