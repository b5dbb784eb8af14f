"""From the classes of cells to blocks of boxes: the arrays that the kernels take (words: ``kernels/layout.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from policytree.born_again.kernels.blocks import find_blocks, rehash
from policytree.born_again.kernels.layout import CHILDREN, FOUND, MIXED, NEXT, Blocks, Core, Frame, Order
from policytree.born_again.kernels.vectors import LANES

ROWS = 1 << 21  # of the table of live cuts at most
# Boxes of the core at most, by the number of all boxes: large ones save work, but a small problem does not pay for
# them.
CORE = ((1e5, 128), (5e5, 512), (1e9, 4000), (np.inf, 3000))
FIRST_BLOCKS, FIRST_SLOTS = 1 << 12, 1 << 13


@dataclass(frozen=True, slots=True)
class Space:
    """A grid of cells, its features parted into frame and core.

    Attributes
    ----------
    frame_features, core_features : tuple of int
        Positions of the features in the grid.
    frame : Frame
    core : Core
    core_boxes : int
        M, the number of boxes of the core; the first of them is the whole core.
    core_splits : ndarray of shape (M,)
        How many splits of the core lead to each of them at least, ascending.
    """

    frame_features: tuple[int, ...]
    core_features: tuple[int, ...]
    frame: Frame
    core: Core
    core_boxes: int
    core_splits: np.ndarray


def make_space(classes: np.ndarray) -> Space:
    """Lay out a grid.

    Parameters
    ----------
    classes : ndarray of shape (cells of feature 0, cells of feature 1, ...), uint8
        The class of every cell, below ``MIXED``.
    """
    frame_features, core_features = _parted(classes.shape)
    if not frame_features:  # a frame of one cell
        classes, frame_features = classes[..., None], (classes.ndim,)
    table = classes.transpose(frame_features + core_features)
    q = len(frame_features)
    layout = _core_layout(table.shape[q:])
    core = Core(_core_classes(table, q, layout), *layout.splits)
    return Space(frame_features, core_features, _frame(table, q), core, len(layout.steps), layout.steps)


def count_boxes(shape: tuple[int, ...]) -> int:
    """How many boxes a grid has."""
    return int(np.prod([n * (n + 1) // 2 for n in shape], dtype=object))


def _parted(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Features of the frame, and of the core: those with fewest cells, as many as fit. Both by falling size."""
    order = sorted(range(len(shape)), key=lambda j: (shape[j], -j))
    total, boxes, k = count_boxes(shape), 1, 0
    most = next(core for limit, core in CORE if total <= limit)
    while k < len(order) and boxes * count_boxes((shape[order[k]],)) <= most:
        boxes *= count_boxes((shape[order[k]],))
        k += 1
    return tuple(order[k:][::-1]), tuple(order[:k][::-1])


@dataclass(frozen=True, slots=True)
class _CoreLayout:
    """Boxes of the core by ``steps``, the splits that lead there at least; ``cells`` are the boxes that are cells."""

    steps: np.ndarray
    cells: np.ndarray
    size: np.ndarray
    splits: tuple[np.ndarray, ...]  # the fields of Core after ``classes``


@cache
def _core_layout(shape: tuple[int, ...]) -> _CoreLayout:
    ranges = [np.array([(a, a + k) for k in range(n) for a in range(n - k)]) for n in shape]
    grid = np.arange(count_boxes(shape)).reshape([len(r) for r in ranges])
    steps, size = np.zeros(grid.shape, np.int64), np.zeros(grid.shape, np.int64)
    for k, (n, each) in enumerate(zip(shape, ranges, strict=True)):
        along = [-1 if j == k else 1 for j in range(len(shape))]
        steps += ((each[:, 0] > 0).astype(int) + (each[:, 1] < n - 1)).reshape(along)
        size += (each[:, 1] - each[:, 0]).reshape(along)
    by_steps = np.argsort(steps.ravel(), kind="stable")
    place = np.empty_like(by_steps)
    place[by_steps] = np.arange(len(by_steps))
    grid = place.reshape(grid.shape)
    size = size.ravel()[by_steps]
    splits = _core_splits(grid, ranges, size)
    by_target = np.argsort(splits[0], kind="stable")
    first = np.searchsorted(splits[0][by_target], np.arange(len(size) + 1))
    cells = grid[tuple(slice(n) for n in shape)].ravel()  # ranges of one cell come first
    fields = [part.astype(np.int32) for part in (*splits, by_target)] + [first.astype(np.int64)]
    return _CoreLayout(steps.ravel()[by_steps], cells, size, tuple(fields))


def _core_splits(grid: np.ndarray, ranges: list[np.ndarray], size: np.ndarray) -> list[np.ndarray]:
    """Splits of all boxes by the size of what is split: target, left, right, feature, cut."""
    parts = [np.empty((5, 0), np.int64)]
    for k, each in enumerate(ranges):
        at = {tuple(map(int, r)): i for i, r in enumerate(each)}
        for (a, b), i in at.items():
            for t in range(a, b):
                boxes = [grid.take(x, axis=k).ravel() for x in (i, at[a, t], at[t + 1, b])]
                parts.append(np.stack([*boxes, np.full_like(boxes[0], k), np.full_like(boxes[0], t)]))
    splits = np.concatenate(parts, axis=1)
    return list(np.ascontiguousarray(splits[:, np.argsort(size[splits[0]], kind="stable")]))


def _core_classes(table: np.ndarray, q: int, layout: _CoreLayout) -> np.ndarray:
    """Class of every box of the core in every cell of the frame, or MIXED; (cells of the frame, M), M filled up."""
    F, M = int(np.prod(table.shape[:q])), len(layout.size)
    out = np.empty((M, F), dtype=np.uint8)
    out[layout.cells] = table.reshape(F, -1).T
    target, left, right = layout.splits[:3]
    target, chosen = np.unique(target, return_index=True)  # one split of each box
    left, right = left[chosen], right[chosen]
    for size in range(1, int(layout.size.max()) + 1):
        now = layout.size[target] == size
        a, b = out[left[now]], out[right[now]]
        out[target[now]] = np.where(a == b, a, np.uint8(MIXED))
    filled = np.full((F, -(-M // LANES) * LANES), MIXED, dtype=np.uint8)
    filled[:, :M] = out.T
    return filled


def _frame(table: np.ndarray, q: int) -> Frame:
    """The frame, and a table of live cuts by ranges of its first features and cells of the others."""
    cells = np.array(table.shape[:q], dtype=np.int64)
    bit = np.concatenate([[0], np.cumsum(cells - 1)[:-1]]).astype(np.int64)
    words = max(1, -(-int((cells - 1).sum()) // 64))
    stride = np.concatenate([np.cumprod(cells[::-1])[::-1][1:], [1]]).astype(np.int64)
    boxes = cells * (cells + 1) // 2
    radix = np.concatenate([np.cumprod(boxes[::-1])[::-1][1:], [1]]).astype(np.int64)
    live = np.zeros((*cells, words), dtype=np.int64)
    flat = table.reshape(*cells, -1)
    for j in range(q):
        lower, upper = np.moveaxis(flat, j, 0)[:-1], np.moveaxis(flat, j, 0)[1:]
        changes = (lower != upper).any(axis=-1)
        rows = np.moveaxis(live, j, 0)
        for t in range(cells[j] - 1):
            word, place = divmod(int(bit[j]) + t, 64)
            rows[t, ..., word] |= changes[t].astype(np.int64) << place
    ranged = 0
    while ranged < q and np.prod(boxes[: ranged + 1]) * np.prod(cells[ranged + 1 :]) <= ROWS:
        live = _over_ranges(live, ranged)
        ranged += 1
    rows = np.array(live.shape[:q], dtype=np.int64)
    row = np.concatenate([np.cumprod(rows[::-1])[::-1][1:], [1]]).astype(np.int64)
    return Frame(cells, bit, stride, radix, ranged, row, np.ascontiguousarray(live.reshape(-1, words)))


def _over_ranges(live: np.ndarray, axis: int) -> np.ndarray:
    """Unions over all ranges along an axis, by first and last cell."""
    rows = np.moveaxis(live, axis, 0)
    n = len(rows)
    out = np.empty((n * (n + 1) // 2, *rows.shape[1:]), dtype=np.int64)
    k = 0
    for a in range(n):
        out[k] = rows[a]
        for b in range(a + 1, n):
            np.bitwise_or(out[k], rows[b], out=out[k + 1])
            k += 1
        k += 1
    return np.moveaxis(out, 0, axis)


class Discovery:
    """Finds the blocks of a space; arrays grow as needed."""

    def __init__(self, space: Space):
        self.space = space
        q, W = len(space.frame.cells), space.frame.live.shape[1]
        most = 2 + 2 * int((space.frame.cells - 1).sum())
        self.state = np.zeros(3, dtype=np.int64)
        self._work = np.zeros((4, max(q, W)), dtype=np.int64)
        self.blocks = _empty_blocks(q, W, FIRST_BLOCKS + most, 8 * (FIRST_BLOCKS + most), FIRST_SLOTS)

    def run(self, flag: np.ndarray, fits) -> bool:
        """Find all blocks; False if the flag was raised or arrays would not fit."""
        most = 2 + 2 * int((self.space.frame.cells - 1).sum())
        while True:
            find_blocks(self.space.frame, self.blocks, self.state, self._work, flag)
            if self.state[NEXT] == self.state[FOUND]:
                return True
            if flag[0]:
                return False
            old = self.blocks
            blocks, children, slots = len(old.lo), len(old.children), len(old.slots)
            if blocks - self.state[FOUND] < most:
                blocks *= 2
            if children - self.state[CHILDREN] < most:
                children *= 2
            if slots // 2 - self.state[FOUND] < most:
                slots *= 4
            q, W = old.lo.shape[1], old.live.shape[1]
            if not fits(blocks * (4 * q + 8 * W + 14) + 4 * children + 12 * slots):
                return False
            self._grow(blocks, children, slots)

    def _grow(self, blocks: int, children: int, slots: int) -> None:
        old, used = self.blocks, self.state
        grown = {}
        for name, rows, size in (
            ("lo", used[FOUND], blocks), ("hi", used[FOUND], blocks), ("live", used[FOUND], blocks),
            ("corner", used[FOUND], blocks), ("depth", used[FOUND], blocks), ("first", used[NEXT] + 1, blocks + 1),
            ("children", used[CHILDREN], children),
        ):  # fmt: skip
            array = getattr(old, name)
            if len(array) < size:
                grown[name] = np.empty((size, *array.shape[1:]), dtype=array.dtype)
                grown[name][:rows] = array[:rows]
        if slots > len(old.slots):
            grown["slots"], grown["keys"] = np.zeros(slots, np.int32), np.empty(slots, np.int64)
        self.blocks = old._replace(**grown)
        if slots > len(old.slots):
            rehash(old, self.blocks)

    def found(self) -> tuple[Blocks, Order]:
        """The blocks, without spare room, and an order in which children precede."""
        n = int(self.state[FOUND])
        b = self.blocks
        blocks = b._replace(
            lo=b.lo[:n], hi=b.hi[:n], live=b.live[:n], corner=b.corner[:n], depth=b.depth[:n], first=b.first[: n + 1],
            children=b.children[: self.state[CHILDREN]], slots=np.zeros(1, np.int32), keys=np.zeros(1, np.int64),
        )  # fmt: skip
        cuts = (blocks.hi - blocks.lo).sum(axis=1, dtype=np.int64).astype(np.uint16)
        return blocks, _ordered(cuts)


def _ordered(cuts: np.ndarray) -> Order:
    """Blocks by their number of cuts, in batches of as many."""
    sizes = np.bincount(cuts)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    batches = [np.arange(a, b, LANES) for a, b in pairwise(ends)]
    return Order(np.argsort(cuts, kind="stable").astype(np.int32), np.concatenate([*batches, ends[-1:]]))


def _empty_blocks(q: int, W: int, blocks: int, children: int, slots: int) -> Blocks:
    return Blocks(
        np.empty((blocks, q), np.uint16), np.empty((blocks, q), np.uint16), np.empty((blocks, W), np.int64),
        np.empty(blocks, np.int32), np.empty(blocks, np.uint16), np.zeros(blocks + 1, np.int64),
        np.empty(children, np.int32), np.zeros(slots, np.int32), np.empty(slots, np.int64),
    )  # fmt: skip
