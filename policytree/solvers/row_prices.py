"""Proofs that no larger tree is better: prices of rows, which no leaf can exceed by more than the price of a leaf."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.solvers import effort
from policytree.solvers.clock import Clock
from policytree.solvers.kernels.box_layout import (
    KEPT,
    LARGEST_SUM,
    N_ALL,
    N_INSIDE,
    N_NUMBERS,
    NOWHERE,
    SEEN,
    TOP,
    BestBoxes,
    BoxRows,
    BoxScratch,
    BoxStack,
)
from policytree.solvers.kernels.box_pricing import price_boxes
from policytree.solvers.kernels.layout import INF
from policytree.solvers.kernels.price_fitting import KnownBoxes, forget_idle, project, rows_of_box
from policytree.solvers.leaf_counts import LeafCounts
from policytree.solvers.node import Node, Splits
from policytree.types import Problem

SHARE = 0.86  # of a leaf's price that boxes may exceed their loss by: the rest is the proof's room
SPARE = 0.1  # what the numbers sum up to below the best tree's cost at that share, in leaves
SHARE_OF_LARGE = 0.97  # the same where the best tree has as many leaves as the trees to be refuted
MOST_FOUND, MOST_LEARNT = 300, 60  # boxes with the largest sums of an action; those that numbers are fitted to
ENOUGH = 8_000_000  # rows and cells that pricing looks at; then boxes to learn from are enough, and nothing is proved
MOST_KNOWN, MOST_INDEX = 8192, 1 << 26  # boxes, rows in them
SWEEPS, TOLERANCE = 200, 0.0005  # of a fit; in leaves
EVEN = 0.2  # of the mean that every row's scale has at least
CLOSE, TIGHTER = 0.01, 3.0  # of a leaf's price: boxes exceed so little more that less room will do, by this factor
MARGIN = 0.5  # of the unit of losses, by which numbers of leaves that are open are to be refuted
TILT = 0.02  # of a leaf's price, that the aim's slope differs from it by
PATIENCE = 8  # rounds without a better bound, after which less is aimed at
AT_ONCE = 2_000_000  # rows and cells between looks at the clock
MOST_CELLS, MOST_ADDED = 1 << 18, 1 << 24  # of the table, and numbers that a table costs to search
MOST_STACK = 1 << 28  # bytes
SAMPLE = 10_000  # rows that the table's features are chosen by
FRACTION = 10  # bits of the factor by which numbers that exceed too much are scaled down
SHARE_OF_TIME = 0.35  # that a proof may take, of what the next depth may
TURN = 0.25  # the same time's share that the search over row sets has first
MOST_COLUMNS = 16  # more are hopeless: there are too many boxes
LEAST_SECONDS = 0.004  # less is not begun with
ROUNDS = 4  # that a proof takes at least: one that takes a larger share of the time is hopeless


def row_prices_apply(problem: Problem) -> bool:
    """Whether trees may be refuted by prices of rows: there is a price per leaf, and depth beyond what is cheap."""
    deep = problem.max_depth is None or problem.max_depth > 3
    return deep and problem.leaf_penalty > 0 and problem.losses.shape[1] > 1


def worth_pricing(node: Node) -> bool:
    """Whether prices of rows are tried: columns are few, and not all two-valued, for which row sets do better."""
    return node.penalty > 0 and 0 < len(node.bins) <= MOST_COLUMNS and bool((node.bins > 2).any())


def seconds_worth(node: Node, last: float) -> float:
    """Time that a proof is worth: a share of what the next depth may take, given the seconds of the last one."""
    worth = SHARE_OF_TIME * effort.of_next_depth(node, last)
    return worth if worth >= LEAST_SECONDS else 0.0


def turns_of_sets(worth: float) -> tuple[float, float]:
    """Seconds that the search over row sets may take before prices have their turn, and after they turned out slow."""
    return (TURN * worth, worth / SHARE_OF_TIME) if worth > 0 else (np.inf, np.inf)


class RowPrices:
    """A lower bound for all trees with many leaves.

    Every merged row i gets an integer u(i). If no box of rows has a sum u(L) - loss_k(L) of more than p, whatever
    action k it gets, then trees of h leaves lose at least sum(u) - h p, so that all trees of H leaves or more cost at
    least sum(u) + H (penalty - p), as long as p is at most the penalty. Leaves of every tree are boxes; minimum counts,
    prices of questions and limits of depth only add to what trees cost.

    Parameters
    ----------
    node : Node
        All rows of a problem with at least two actions and a price per leaf.
    clock : Clock

    Attributes
    ----------
    certificates : list of (ndarray of shape (n_rows,), int)
        Numbers u and p that were proved, newest last; losses are relative to each row's least one. What they prove
        for at least H leaves is ``bound(H)``.
    hopeless : bool
        Whether memory is short, or numbers run away.
    slow : bool
        Whether the time given last was much too short.
    """

    by_leaves = True  # whether what is aimed at is refined by the numbers of leaves that are open

    def __init__(self, node: Node, clock: Clock):
        self.node, self.clock = node, clock
        losses = np.vstack([np.zeros(node.n_rows, np.int64), node.losses])
        self.floor = int(losses.min(axis=0).sum())
        self.losses = losses - losses.min(axis=0)
        self.unit = max(
            int(np.gcd.reduce(self.losses, axis=None)), 1
        )  # of what trees lose: one error, if rows count one
        spread = self.losses.max(axis=0) / node.penalty
        self.scale = spread + EVEN * spread.mean()
        self.u = np.zeros(node.n_rows)
        self.certificates: list[tuple[np.ndarray, int]] = [(np.zeros(node.n_rows, np.int64), 0)]
        self.strongest = self.certificates[0]  # for any number of leaves
        self.counts = LeafCounts(node.penalty, self.unit, node.n_rows)
        self.n_known, self.target, self.charge = 0, 0.0, 0
        self.aim, self.spare, self.share = (0, 0, 0), SPARE, SHARE
        self.margin = 0.0  # 0 until the numbers of leaves that are open decide what is aimed at
        self.hopeless = self.slow = False
        self.effort = 0.0  # seconds of a usual machine that were spent
        self.idle = 0  # rounds without a better bound
        self.action = -1  # that is being priced
        self._allocate()

    def _allocate(self) -> None:
        """Lay out rows for pricing, and make room."""
        node, n = self.node, self.node.n_rows
        codes = node.codes if len(node.bins) > 1 else np.vstack([np.zeros((1, n), np.uint16), node.codes])
        order = _table_last(codes)
        self.codes = np.ascontiguousarray(codes[order])
        sizes = self.codes.max(axis=1).astype(np.int64) + 1
        self.sizes = sizes
        F, (P, A) = len(sizes) - 2, (int(x) for x in sizes[-2:])
        row, column = self.codes[F:].astype(np.int32)
        self.rows = BoxRows(self.codes[:F], row, column, P, A)
        levels = 16 + 8 * int(np.ceil(np.log2(sizes[:F])).sum())
        levels = max(min(levels, MOST_STACK // (4 * n + 32 * F + 8 * N_NUMBERS)), 1)
        room = max(4 * n, 1 << 20)
        need = levels * (4 * n + 32 * F) + 8 * P * A + 4 * room + 16 * MOST_FOUND * (F + 2) + 48 * MOST_KNOWN
        self.hopeless = P * A > MOST_CELLS or P * P * A > MOST_ADDED or not self.clock.fits_memory(need)
        if self.hopeless:
            return
        self.stack = BoxStack(
            np.empty((levels, n), np.int32), np.empty((levels, F, 4), np.int64), np.empty((levels, N_NUMBERS), np.int64)
        )
        self.best = BestBoxes(np.empty(MOST_FOUND, np.int64), np.empty((MOST_FOUND, F + 2, 2), np.int64))
        self.scratch = BoxScratch(
            np.empty((P, A), np.int64), np.empty(A, np.int64), np.empty(P, np.int64), np.empty(5, np.int64),
            np.empty(n + 1, np.int32), np.empty(int(sizes.max()), np.int64),
        )  # fmt: skip
        bound, norm, dual = np.zeros((3, MOST_KNOWN))
        self.known = KnownBoxes(
            np.empty(room, np.int32), np.zeros(MOST_KNOWN + 1, np.int64), bound, norm, dual,
            np.zeros((2, MOST_KNOWN), np.int64),
        )  # fmt: skip
        self.state = np.zeros(4, np.int64)

    def bound(self, fewest: int) -> int:
        """What trees of at least ``fewest`` leaves cost at least."""
        return self.floor + self.counts.bound(fewest)

    def bounded(self) -> Node:
        """The node whose rows have a worth: a bound of any tree on any of its rows, as kernels take it."""
        node, (numbers, p) = self.node, self.strongest
        if p == 0 and not numbers.any():
            return node
        least = np.minimum(node.losses.min(axis=0), 0)
        planes = np.vstack([node.rows.planes[:-2], least + numbers, node.keys])
        rules = node.rules._replace(beyond=node.penalty - p)
        return replace(node, rows=node.rows._replace(planes=planes), rules=rules)

    def work(self, best: int, tree: Splits, depth: int, seconds: float) -> int:
        """Work for some seconds on a bound for all trees deeper than ``depth``, and return the bound.

        Parameters
        ----------
        best : int
            The value of the best tree known, ``tree``. Trees down to ``depth`` are proved not to be better.
        seconds : float
            Of a usual machine (see effort.py). Work that looks as if it took far more ends early.
        """
        fewest = depth + 2  # a tree of fewer leaves is not deeper
        self.slow = self.hopeless
        if self.hopeless or self.bound(fewest) >= best:
            return self.bound(fewest)
        self._aim(best, sum(f < 0 for f, _ in tree), fewest)
        start = self.effort
        first = self.action < 0 or self.n_known == 0
        while not (self.hopeless or self.clock.stopped) and self.bound(fewest) < best:
            before = self.bound(fewest)
            if not self._price(start + (seconds / ROUNDS if first else seconds)):
                self.slow = first
                break
            first = False
            if self.exact:
                self._certify()
            if self.bound(fewest) >= best:
                break
            self._learn()
            self._aim_anew(self.bound(fewest) > before)
            project(
                self.u, self.scale, self.known, self.n_known, self.target, SWEEPS, TOLERANCE, self.clock.flag
            )  # fmt: skip
            self.effort += int(self.known.start[self.n_known]) * SWEEPS * effort.A_STEP + effort.A_ROUND
            if self.effort > start + seconds:
                break
        return self.bound(fewest)

    def _aim(self, best: int, leaves: int, fewest: int) -> None:
        """Choose what boxes may exceed their loss by, and what the numbers are to sum up to."""
        if (best, leaves, fewest) == self.aim:
            return
        self.aim, self.spare, self.margin = (best, leaves, fewest), SPARE, 0.0
        self._set_target(SHARE if leaves < fewest else SHARE_OF_LARGE)

    def _set_target(self, share: float) -> None:
        best, leaves, _ = self.aim
        target = (best - self.floor) / self.node.penalty - leaves * (1.0 - share) - self.spare * share
        self._move(share, target)

    def _move(self, share: float, target: float) -> None:
        """Let boxes exceed their loss by that share of the price of a leaf, and the numbers sum up to the target."""
        penalty, charge = self.node.penalty, int(share * self.node.penalty)
        if charge != self.charge and self.action >= 0:
            self.action = -1  # pricing looked for boxes above the old one
        self.known.bound[: self.n_known] += (charge - self.charge) / penalty
        self.charge, self.share, self.target = charge, share, target
        self.u += (self.target - self.u.sum()) * self.scale / self.scale.sum()

    def _aim_anew(self, better: bool) -> None:
        """Aim at more where the target was reached and proves too little, at less where it seems out of reach."""
        self.idle = 0 if better else self.idle + 1
        if self.margin > 0:
            self._aim_at_open()
        elif self.exact and self.largest < (self.share + CLOSE) * self.node.penalty:
            if self.by_leaves and self.share >= SHARE_OF_LARGE:
                self.margin = MARGIN
                self._aim_at_open()
                return
            self.spare /= TIGHTER
            self._set_target(1.0 - (1.0 - self.share) / TIGHTER if self.share >= SHARE_OF_LARGE else self.share)
        elif self.idle == PATIENCE:
            self.idle = 0
            self.target = (self.target + self.strongest[0].sum() / self.node.penalty) / 2

    def _aim_at_open(self) -> None:
        """Aim at the numbers of leaves that are open, by a line that refutes all of them and little more.

        Its slope is near the price of a leaf: above it if all have fewer leaves than the best tree, below it if all
        have more.
        """
        if self.idle == PATIENCE:
            self.idle = 0
            self.margin /= 2
        best, leaves, fewest = self.aim
        h, most = self.counts.still_open(fewest, best - self.floor)
        if len(h) == 0:
            return
        share = 1.0 + TILT * (int(h[-1] < leaves) - int(h[0] > leaves))
        penalty = self.node.penalty
        self._move(share, float((most / penalty + h * share).max()) + self.margin * self.unit / penalty)

    def _price(self, until: float) -> bool:
        """Find the boxes that exceed their loss by most, for every action; returns whether that came to an end."""
        if self.action < 0:
            numbers = np.floor(self.u * self.node.penalty)
            self.hopeless = not np.abs(numbers).sum() < INF / 8
            if self.hopeless:
                return False
            self.numbers, self.largest = numbers.astype(np.int64), self.charge
            self.found: list[np.ndarray] = []
            self.exact = True
            self._begin(0)
        while True:
            seen = int(self.state[SEEN])
            price_boxes(
                self.rows, self.excess, self.stack, self.best, self.scratch, self.charge, AT_ONCE, self.state,
                self.clock.flag,
            )  # fmt: skip
            self.effort += (int(self.state[SEEN]) - seen) * effort.A_CELL
            quick = self.state[KEPT] == MOST_FOUND and self.state[SEEN] > ENOUGH
            if self.state[TOP] < 0 or quick:
                self.exact = self.exact and not quick
                self.largest = max(self.largest, int(self.state[LARGEST_SUM]))
                kept = np.argsort(-self.best.sums[: self.state[KEPT]], kind="stable")
                self.found.append(self.best.boxes[kept])
                if self.action == len(self.losses) - 1:
                    self.action = -1
                    return True
                self._begin(self.action + 1)
            elif self.state[TOP] + 3 >= len(self.stack.numbers):
                self.hopeless = True
                return False
            if self.clock.stopped or self.effort > until:
                return False

    def _begin(self, action: int) -> None:
        """Begin to price an action with the pair of all rows and no row."""
        self.action = action
        self.excess = self.numbers - self.losses[action]
        stack, n = self.stack, self.node.n_rows
        stack.index[0] = np.arange(n)
        stack.ends[0] = np.transpose([np.zeros(len(self.sizes) - 2), self.sizes[:-2] - 1, *[self.sizes[:-2]] * 2])
        stack.ends[0, :, 2:] = NOWHERE, -1
        stack.numbers[0] = 0, n, 0, 0, self.rows.height - 1, 0, self.rows.width - 1
        if len(self.sizes) == 2:
            stack.numbers[0, N_INSIDE] = stack.numbers[0, N_ALL]
        self.state[[TOP, KEPT, LARGEST_SUM, SEEN]] = 0

    def _certify(self) -> None:
        """Note what the numbers prove, scaled down if boxes exceed their loss by more than the price of a leaf."""
        numbers, p, penalty = self.numbers, self.largest, self.node.penalty
        self.counts.add(int(numbers.sum()), p)
        if p > penalty:
            if int(np.abs(numbers).max()) >> (62 - FRACTION):
                return
            # u' <= a u and loss >= 0, so u'(L) - loss(L) <= a (u(L) - loss(L)) <= a p for any factor a <= 1.
            numbers, p = (numbers * ((penalty << FRACTION) // p)) >> FRACTION, penalty
            self.counts.add(int(numbers.sum()), p)
        self.certificates = [*self.certificates[-1:], (numbers, p)]
        if numbers.sum() - p >= self.strongest[0].sum() - self.strongest[1]:
            self.strongest = numbers, p

    def _learn(self) -> None:
        """Add the boxes found to those that the numbers are fitted to."""
        if 2 * self.n_known > MOST_KNOWN or 2 * self.known.start[self.n_known] > len(self.known.index):
            self.n_known = forget_idle(self.known, self.n_known)
        for boxes in self.found:
            new = 0
            for box in boxes:
                if new == MOST_LEARNT or not self._has_room():
                    break
                new += self._learn_box(box)

    def _learn_box(self, box: np.ndarray) -> bool:
        known, k = self.known, self.n_known
        size = rows_of_box(self.codes, box, self.node.keys, known, k)
        if size == 0:
            return False
        rows = known.index[known.start[k] : known.start[k] + size]
        loss = int(self.losses[:, rows].sum(axis=1).min())
        known.bound[k] = (loss + self.charge) / self.node.penalty
        known.norm[k], known.dual[k] = self.scale[rows].sum(), 0.0
        self.n_known += 1
        return True

    def _has_room(self) -> bool:
        """Whether another box can be kept, if more room has to be made."""
        index, end = self.known.index, self.known.start[self.n_known] + self.node.n_rows
        if self.n_known == MOST_KNOWN:
            return False
        if end > len(index):
            if end > MOST_INDEX or not self.clock.fits_memory(8 * len(index)):
                return False
            self.known = self.known._replace(index=np.concatenate([index, np.empty_like(index)]))
        return True


def _table_last(codes: np.ndarray) -> np.ndarray:
    """Order features by their number of codes, the two of the table last.

    These are the longest one, and of the others the one that has most pairs of codes with it.
    """
    sizes = codes.max(axis=1).astype(np.int64) + 1
    order = np.argsort(sizes, kind="stable")
    last, some = order[-1], codes[:, :SAMPLE].astype(np.int64)
    pairs = [len(np.unique(sizes[last] * some[f] + some[last])) for f in order[:-1]]
    other = len(pairs) - 1 - int(np.argmax(pairs[::-1]))
    rest = np.delete(order[:-1], other)
    return np.concatenate([rest, [order[other], last]])
