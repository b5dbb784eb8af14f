"""Dual fitting: row duals under the constraints of the boxes that violate them most, found in turn."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import GATES, SizeGates
from policytree.solvers.core import work_units
from policytree.solvers.core.limits import Clock
from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.pricing.dual_projection import (
    FittedRows,
    KnownBoxes,
    add_boxes,
    drop_idle,
    find_runs,
    project,
)
from policytree.solvers.kernels.pricing.layout import (
    INSIDE_SUM,
    KEPT,
    LARGEST_SUM,
    N_INSIDE,
    N_NUMBERS,
    N_STATE,
    NOWHERE,
    SEEN,
    TOP,
    BestBoxes,
    BoxRows,
    BoxScratch,
    BoxStack,
)
from policytree.solvers.kernels.pricing.max_box import price_boxes
from policytree.solvers.kernels.pricing.max_rectangle import stride_of

MOST_ADDED = 60  # boxes that one pricing adds per action
HIGHER = 0.3  # of the last violation: boxes with a smaller violation are not priced
MOST_INDEX = 1 << 26  # rows in boxes
PASSES, GRADIENT_STEPS, PASSES_ALONE = (
    30,
    200,
    200,
)  # of a fit with gradients; without
TOLERANCE, ROUGHLY = 0.0005, 0.2  # of a fit: in leaf penalties, and as a share of the violation
MOST_STACK = 1 << 28  # bytes
SAMPLE = 10_000  # rows that the table's features are chosen by


class DualFitting:
    """Row duals that sum up to a target while no box exceeds its loss by much more than the allowance.

    Rows are sorted by their codes, so that those of a box are few runs of rows; all attributes are in that order.

    Rounds of maximum-box pricing, which finds the most violated constraints u(L) - loss_k(L) <= allowance, and of a
    projection of u onto all constraints found so far (cutting planes for the dual).

    Parameters
    ----------
    codes : ndarray of shape (p, n), uint16
        Codes of every row.
    keys : ndarray of shape (2, n), int64
        Random keys, whose sums identify a set of rows.
    losses : ndarray of shape (K, n), int64
        Of every action, nowhere negative.
    scale : ndarray of shape (n,)
        Metric of the projection: how far the dual of a row moves relative to others.
    penalty : int
        Leaf penalty, the unit of ``u`` and ``target``.
    clock : Clock
    gates : SizeGates, optional

    Attributes
    ----------
    place : ndarray of shape (n,), int64
        Where each row of the arguments stands.
    u : ndarray of shape (n,)
        The duals as they are fitted.
    numbers : ndarray of shape (n,), int64
        ``u`` times the penalty, rounded down, as they were priced last.
    largest : int
        The largest excess u(L) - loss_k(L) of any box, if ``exact``.
    over : int
        ``largest`` less the allowance.
    hopeless : bool
        Whether memory is short.
    diverged : bool
        Whether fits to an infeasible target have made the duals too large to continue.
    effort : float
        Seconds of a usual machine that were spent.
    """

    def __init__(
        self,
        codes: np.ndarray, keys: np.ndarray, losses: np.ndarray, scale: np.ndarray, penalty: int, clock: Clock,
        gates: SizeGates = GATES,
    ):  # fmt: skip
        self.gates, self.penalty, self.clock = gates, penalty, clock
        self.n_rows = len(scale)
        codes = codes if len(codes) > 1 else np.vstack([np.zeros((1, self.n_rows), np.uint16), codes])
        codes = codes[_table_last(codes)]
        order = np.lexsort(codes[::-1])  # the longest feature varies fastest
        self.place = np.empty(self.n_rows, np.int64)
        self.place[order] = np.arange(self.n_rows)
        self.codes, self.keys, self.losses = (np.take(x, order, axis=1) for x in (codes, keys, losses))
        self.scale = scale[order]
        self.u = np.zeros(self.n_rows)
        self.allowance, self.target = 0, 0.0
        self.n_known, self.largest, self.violation = 0, 0, 0
        self.exact = self.diverged = False
        self.effort = 0.0
        self.action = -1  # that is being priced
        self._allocate()

    def _allocate(self) -> None:
        """Lay out rows for pricing, and allocate arrays."""
        n = self.n_rows
        sizes = self.codes.max(axis=1).astype(np.int64) + 1
        self.sizes = sizes
        F, (P, A) = len(sizes) - 2, (int(x) for x in sizes[-2:])
        row, column = self.codes[F:].astype(np.int32)
        stride = stride_of(P)
        self.rows = BoxRows(self.codes[:F], row, column, column * np.int32(stride) + row + np.int32(1), P, A)
        levels = 16 + 8 * int(np.ceil(np.log2(sizes[:F])).sum())
        levels = max(min(levels, MOST_STACK // (4 * n + 32 * F + 8 * N_NUMBERS)), 1)
        room, found, kept = max(4 * n, 1 << 20), self.gates.most_found_boxes, self.gates.most_known_boxes
        need = levels * (4 * n + 32 * F) + 16 * A * stride + 12 * room + 16 * found * (F + 2) + 56 * kept
        cells, additions = P * A, P * P * A
        large = cells > self.gates.most_table_cells or additions > self.gates.most_table_additions
        self.too_large = large or not self.clock.fits_memory(need)
        if self.too_large:
            return
        self.stack = BoxStack(
            np.empty((levels, n), np.int32), np.empty((levels, F, 4), np.int64), np.empty((levels, N_NUMBERS), np.int64)
        )
        self.best = BestBoxes(np.empty(found, np.int64), np.empty((found, F + 2, 2), np.int64))
        self.scratch = BoxScratch(
            np.empty(n, np.int32), np.empty(A * stride, np.int64),
            np.empty((A + 1, stride), np.int64), np.empty(stride, np.int64), np.empty(stride, np.int64),
            np.empty(5, np.int64), np.empty(n + 1, np.int32), np.empty(int(sizes.max()), np.int64),
        )  # fmt: skip
        bound, norm, multiplier = np.zeros((3, kept))
        self.known = KnownBoxes(
            np.empty(room, np.int32), np.zeros(kept + 1, np.int64), np.empty((room, 2), np.int32),
            np.zeros(kept + 1, np.int64), bound, norm, multiplier, np.zeros((2, kept), np.int64),
        )  # fmt: skip
        self.state = np.zeros(N_STATE, np.int64)

    def move(self, allowance: int, target: float) -> None:
        """Set the allowance and the dual target."""
        if allowance != self.allowance:
            self.abandon()  # pricing was for the old allowance
        self.known.bound[: self.n_known] += (allowance - self.allowance) / self.penalty
        self.allowance, self.target = allowance, target
        self.u += (self.target - self.u.sum()) * self.scale / self.scale.sum()

    def restart(self) -> None:
        """Reset duals that diverged; the boxes stay."""
        self.u = self.target * self.scale / self.scale.sum()
        self.known.multiplier[: self.n_known] = 0.0
        self.violation, self.diverged = 0, False
        self.abandon()

    def take_over(self, coarser: DualFitting, cell: np.ndarray) -> None:
        """Start from the duals and boxes of a coarser table; ``cell`` is the row of that table of each row of this one.

        Boxes of the coarser table are boxes of this one with the same sums, so duals that are spread by the rows' scale
        satisfy their constraints as well as before.
        """
        self.spread(coarser, cell)
        old = coarser.known
        for k in np.flatnonzero(old.multiplier[: coarser.n_known] > 0).tolist():
            if not self._has_room():
                break
            member = np.zeros(coarser.n_rows, bool)
            member[old.index[old.start[k] : old.start[k + 1]]] = True
            rows = np.flatnonzero(member[cell])
            new, j = self.known, self.n_known
            new.start[j + 1] = new.start[j] + len(rows)
            new.index[new.start[j] : new.start[j + 1]] = rows
            find_runs(new, j)
            new.bound[j], new.norm[j], new.multiplier[j] = old.bound[k], old.norm[k], old.multiplier[k]
            new.names[:, j] = old.names[:, k]
            self.n_known += 1

    def spread(self, coarser: DualFitting, cell: np.ndarray) -> None:
        """Take the coarser table's duals, each spread over its rows."""
        self.allowance, self.target, self.violation = coarser.allowance, coarser.target, 0
        self.u = coarser.u[cell] * self.scale / coarser.scale[cell]

    def abandon(self) -> None:
        """Start the next pricing anew, with the duals as they are then."""
        self.action = -1

    def price(self, seconds: float) -> bool:
        """Find the most violated boxes of every action; return whether pricing ended within the seconds."""
        until = self.effort + seconds
        if self.action < 0 and not self._round_down():
            return False
        while True:
            seen = int(self.state[SEEN])
            price_boxes(
                self.rows, self.reduced_costs, self.stack, self.best, self.scratch, self.least, self.gates.box_slice,
                self.state, self.clock.flag,
            )  # fmt: skip
            self.effort += (int(self.state[SEEN]) - seen) * work_units.A_CELL
            # Enough boxes to add may end a pricing early; it then proves nothing.
            quick = self.state[KEPT] == len(self.best.sums) and self.state[SEEN] > self.gates.least_quick_pricing
            if self.state[TOP] < 0 or quick:
                self.exact = self.exact and not quick
                self.largest = max(self.largest, int(self.state[LARGEST_SUM]))
                kept = np.argsort(-self.best.sums[: self.state[KEPT]], kind="stable")
                self.found.append(self.best.boxes[kept])
                if self.action == len(self.losses) - 1:
                    self.action = -1
                    self.violation = self.largest - self.allowance
                    return True
                self.begin(self.action + 1)
            elif self.state[TOP] + 3 >= len(self.stack.numbers):
                self.too_large = True
                return False
            if self.clock.stopped or self.effort > until:
                return False

    def _round_down(self) -> bool:
        """Start pricing with rounded duals; return whether they are small enough for exact sums."""
        # Any integers are duals, of which pricing proves what holds exactly. Rounded down, no box exceeds more.
        numbers = np.floor(self.u * self.penalty)
        self.diverged = not np.abs(numbers).sum() < INF / 8
        if self.diverged:
            return False
        self.least = self.allowance + int(HIGHER * max(self.violation, 0))
        self.numbers, self.largest = numbers.astype(np.int64), self.least
        self.found: list[np.ndarray] = []
        self.exact = True
        self.begin(0)
        return True

    def begin(self, action: int) -> None:
        """Start pricing an action: the stack holds the pair (all rows, no row)."""
        self.action = action
        self.reduced_costs = self.numbers - self.losses[action]
        stack, n = self.stack, self.n_rows
        stack.index[0] = np.arange(n)
        stack.ends[0] = np.transpose([np.zeros(len(self.sizes) - 2), self.sizes[:-2] - 1, *[self.sizes[:-2]] * 2])
        stack.ends[0, :, 2:] = NOWHERE, -1
        stack.numbers[0] = 0, 0, n, 0, 0, self.rows.height - 1, 0, self.rows.width - 1, 0
        if len(self.sizes) == 2:
            stack.numbers[0, [N_INSIDE, INSIDE_SUM]] = n, self.reduced_costs.sum()
        self.scratch.inside[:] = 0
        self.state[:] = 0

    def add_found(self) -> None:
        """Add the boxes found to the constraints."""
        if 2 * self.n_known > len(self.known.bound) or 2 * self.known.start[self.n_known] > len(self.known.index):
            self.n_known = drop_idle(self.known, self.n_known)
        rows = FittedRows(self.codes, self.keys, self.losses, self.scale, self.penalty)
        for boxes in self.found:
            at, most = 0, min(self.n_known + MOST_ADDED, len(self.known.bound))
            while at < len(boxes) and self.n_known < most and self._has_room():
                at, self.n_known = add_boxes(rows, boxes, at, self.known, self.n_known, most, self.allowance)

    def fit(self, by_passes: bool = False) -> None:
        """Project the duals onto the constraints of all known boxes and the target.

        By Hildreth's passes alone, or with conjugate gradients, which are much faster where the target is feasible
        (kernels/pricing/dual_projection.py).
        """
        tolerance = max(TOLERANCE, 0.0 if by_passes else ROUGHLY * self.violation / self.penalty)
        steps = project(
            self.u, self.scale, self.known, self.n_known, self.target, tolerance,
            *((PASSES_ALONE, 0) if by_passes else (PASSES, GRADIENT_STEPS)), self.clock.flag,
        )  # fmt: skip
        self.effort += steps * work_units.A_STEP + work_units.A_ROUND

    def _has_room(self) -> bool:
        """Whether another box can be kept; arrays grow if memory allows."""
        index, runs, end = self.known.index, self.known.runs, self.known.start[self.n_known] + self.n_rows
        if self.n_known == len(self.known.bound):
            return False
        if end > len(index):
            if end > MOST_INDEX or not self.clock.fits_memory(24 * len(index)):
                return False
            longer = {name: np.concatenate([x, np.empty_like(x)]) for name, x in (("index", index), ("runs", runs))}
            self.known = self.known._replace(**longer)
        return True


def _table_last(codes: np.ndarray) -> np.ndarray:
    """Order features by their number of codes; the two features of the pricing table come last.

    These are the longest one, and of the others the one that has most pairs of codes with it.
    """
    sizes = codes.max(axis=1).astype(np.int64) + 1
    order = np.argsort(sizes, kind="stable")
    last, some = order[-1], codes[:, :SAMPLE].astype(np.int64)
    pairs = [len(np.unique(sizes[last] * some[f] + some[last])) for f in order[:-1]]
    other = len(pairs) - 1 - int(np.argmax(pairs[::-1]))
    rest = np.delete(order[:-1], other)
    return np.concatenate([rest, [order[other], last]])


def merge_codes(codes: np.ndarray, mass: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Merge neighbouring codes until no feature has more than ``most``, a power of two, each of about the same mass.

    Returns
    -------
    codes : ndarray of shape (p, cells), uint16
        Of the cells, the sets of rows that are equal then.
    cell : ndarray of shape (n,), int64
        The cell of every row. Cells of half as many codes consist of these.
    """
    merged, cell = np.empty_like(codes), np.zeros(codes.shape[1], np.int64)
    for f, of_rows in enumerate(codes):
        by_code = np.bincount(of_rows, mass)
        part = np.arange(len(by_code))
        if len(by_code) > most:
            middle = (np.cumsum(by_code) - by_code / 2) / mass.sum()
            part = np.unique(np.minimum((middle * most).astype(np.int64), most - 1), return_inverse=True)[1]
        merged[f] = part[of_rows]
        cell = np.unique(cell * len(by_code) + merged[f], return_inverse=True)[1]
    first = np.unique(cell, return_index=True)[1]
    return np.ascontiguousarray(merged[:, first]), cell
