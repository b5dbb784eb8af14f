"""Exact searches on a grid of cells: least depth, least leaves, and least leaves among trees of least depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.born_again.kernels.layers import fill_layers
from policytree.born_again.kernels.layout import NO_LEAVES, Blocks, Layers, Order
from policytree.born_again.kernels.trees import BOTH, DEPTH, FULL, LEAVES, Values, read_tree
from policytree.born_again.kernels.values import least_depths, least_leaves
from policytree.born_again.kernels.vectors import LANES
from policytree.born_again.regions import Discovery, Space, count_boxes, make_space
from policytree.problem.types import Status
from policytree.solvers.core.limits import Clock

OBJECTIVES = {"depth": DEPTH, "leaves": LEAVES, "depth_then_leaves": BOTH}
FIRST_NODES = 4096


@dataclass(frozen=True, slots=True)
class Found:
    """Tree and bounds found by a search on a grid.

    Attributes
    ----------
    nodes : ndarray of shape (nodes, 5) or None
        The tree in preorder: feature of the grid (-1 in leaves), cut, left child, right child, class (-1 in inner
        nodes); None if the search was stopped.
    depth_bound, leaves_bound : int
        No faithful tree has less depth, or fewer leaves.
    blocks, boxes : int
        How many blocks there are, and boxes in them.
    """

    nodes: np.ndarray | None
    depth_bound: int
    leaves_bound: int
    blocks: int = 0
    boxes: int = 0


class GridSearch:
    """One search on one grid.

    Parameters
    ----------
    classes : ndarray, uint8
        Class of every cell, one dimension a feature; no cut without a change of class anywhere.
    objective : {"depth", "leaves", "depth_then_leaves"}
    clock : Clock
        Its flag stops the search; its memory limit is asked before large arrays are made.
    most_boxes : float
        Grids with more boxes are not searched.
    """

    def __init__(self, classes: np.ndarray, objective: str, clock: Clock, most_boxes: float = np.inf):
        self.objective, self.clock, self.most_boxes = OBJECTIVES[objective], clock, most_boxes
        self.classes = classes
        self._batches, self._state, self._phase = 1, np.zeros(1, np.int64), 0
        self.cuts = sum(n - 1 for n in classes.shape)
        self.depth, self.leaves = int(np.ceil(np.log2(self.cuts + 1))), self.cuts + 1  # bounds
        self.boxes = self.n_blocks = 0

    def run(self) -> Found:
        """Search; the bounds of what is found hold whether or not the search was stopped."""
        nodes = self._search()
        return Found(nodes, self.depth, self.leaves, self.n_blocks, self.boxes)

    @property
    def counts_leaves(self) -> bool:
        """Whether leaves are what is wanted; else depth."""
        return self.objective == LEAVES

    def share(self) -> float:
        """How much of the work is done, roughly; may be asked while the search runs in another thread."""
        phases = {DEPTH: 2, LEAVES: 2, BOTH: 4}[self.objective]
        return min(1.0, (self._phase + int(self._state[0]) / self._batches) / phases)

    def _search(self) -> np.ndarray | None:
        if count_boxes(self.classes.shape) > self.most_boxes:
            return None
        space = make_space(self.classes)
        discovery = Discovery(space)
        if not discovery.run(self.clock.flag, self._fits):
            return None
        blocks, order = discovery.found()
        self.n_blocks, self.boxes = len(blocks.lo), len(blocks.lo) * space.core_boxes
        job = _Job(space, blocks, order)
        values = self._values(job)
        return None if values is None else _read(job, values, self.depth)

    def _values(self, job: _Job) -> Values | None:
        depths, leaves, layers = np.empty(0, np.uint8), np.empty(0, np.uint16), no_layers()
        if self.objective in (DEPTH, BOTH):
            found = self._fill(least_depths, job, np.uint8)
            if found is None:
                return None
            self.depth = max(self.depth, int(found[0]))
            depths = found if self.objective == DEPTH else depths
            del found
        if self.objective in (LEAVES, BOTH):
            counted = self._fill(least_leaves, job, np.uint16)
            if counted is None:
                return None
            leaves = counted
            self.leaves = max(self.leaves, int(leaves[0]))
            if leaves[0] >= NO_LEAVES:  # more than are counted
                return None
        if self.objective == BOTH:
            found_layers = self._layers(job, leaves)
            if found_layers is None:
                return None
            layers = found_layers
        return Values(self.objective, depths, leaves, layers)

    def _fits(self, size: float) -> bool:
        """Whether so many bytes are within the limit; if not, the search stops."""
        if not self.clock.fits_memory(size):
            self.clock.stop(Status.MEMORY_LIMIT)
        return not self.clock.stopped

    def _fill(self, kernel, job: _Job, dtype) -> np.ndarray | None:
        """Values of all boxes; what was done before a stop still bounds the whole from below."""
        M, n = job.space.core.classes.shape[1], len(job.blocks.lo)
        size = np.dtype(dtype).itemsize
        if not self._fits(M * (n + LANES) * size):
            return None
        values, lanes, state = np.empty(n * M, dtype), np.empty(M * LANES, dtype), np.zeros(1 + LANES, np.int64)
        self._begin(job, state)
        kernel(job.blocks, job.space.core, job.order, values, lanes, state, self.clock.flag)
        if not self.clock.stopped:
            return values
        done = job.order.blocks[: job.order.batches[state[0]]]
        if len(done):  # a tree of the whole space is a tree of every box: none has more than the whole
            most = int(values.reshape(n, M)[done[-1000:], 0].max())
            if dtype == np.uint8:
                self.depth = max(self.depth, most)
            else:
                self.leaves = max(self.leaves, most)
        return None

    def _begin(self, job: _Job, state: np.ndarray) -> None:
        """Another pass over all blocks."""
        self._batches, self._state = max(1, len(job.order.batches) - 1), state
        self._phase += 1

    def _layers(self, job: _Job, leaves: np.ndarray) -> Layers | None:
        M, n, D = job.space.core.classes.shape[1], len(job.blocks.lo), self.depth
        widths = np.searchsorted(job.space.core_splits, np.arange(D + 1), side="right")
        widths = -(-widths // LANES) * LANES
        ends = np.concatenate([[0], np.cumsum(widths)])
        slack = np.maximum(0, D - job.blocks.depth.astype(np.int64))
        # Pages of the pool are used as they are filled: the limit is watched, not asked beforehand.
        pool = np.empty(int(ends[slack].sum()) + M, np.uint16)
        layers = Layers(D, widths, np.empty((n, D + 1), np.int64), pool)
        work, state = np.empty(3 * LANES * M + 2 * LANES, np.uint16), np.zeros(2 + 2 * LANES, np.int64)
        self._begin(job, state)
        fill_layers(job.blocks, job.space.core, job.order, layers, leaves, work, state, self.clock.flag)
        place = layers.place[0, D]
        if self.clock.stopped or (place >= 0 and pool[place] >= NO_LEAVES):  # more than are counted
            return None
        return layers


@dataclass(frozen=True, slots=True)
class _Job:
    space: Space
    blocks: Blocks
    order: Order


def no_layers() -> Layers:
    """Layers of a search that needs none."""
    short, long = np.zeros(1, np.uint16), np.zeros(1, np.int64)
    return Layers(0, long, long[None], short)


def _read(job: _Job, values: Values, depth: int) -> np.ndarray:
    """The tree, with features as the grid numbers them."""
    most = FIRST_NODES
    while True:
        nodes, stack = np.empty((most, 5), np.int64), np.empty((most, 5), np.int64)
        start = depth if values.objective != LEAVES else 0
        count = read_tree(
            job.space.frame, job.blocks, job.space.core, values, start, nodes, stack, np.empty(6, np.int64)
        )
        if count != FULL:
            break
        most *= 4
    nodes = nodes[:count].copy()
    inner = nodes[:, 0] >= 0
    features = np.array(job.space.frame_features + job.space.core_features)
    nodes[inner, 0] = features[nodes[inner, 0]]
    return nodes
