"""Row duals: dual variables of rows whose sum bounds all trees with many leaves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits
from policytree.solvers.core.shared_costs import shares_test_costs
from policytree.solvers.exact.bounds.dual_fitting import DualFitting, merge_codes

SHARE = 0.86  # the allowance, in leaf penalties: boxes may exceed their loss by it; the rest is the proof's slack
SPARE = 0.1  # how far the dual target is below the incumbent's cost at that share, in leaves
SHARE_OF_LARGE = 0.97  # SHARE where the incumbent has as many leaves as the trees to be refuted
EVEN = 0.2  # of the mean that every row's scale has at least
CLOSE, TIGHTER = 0.05, 3.0  # a violation, in leaf penalties, at which the target is refined, the slack by this factor
MARGIN, LEAST_MARGIN = 0.2, 0.01  # by how many units of loss open numbers of leaves are to be refuted
TILT = 0.02  # difference of the target's slope from the leaf penalty, in leaf penalties
PATIENCE = 8  # rounds without a better bound after which the target is lowered
CLOSE_OF_COARSE = 0.06  # a violation, in leaf penalties, at which a coarse table is left for the next one
STALLED, BETTER = 5, 0.9  # rounds without such a decrease of the violation: the target is out of reach
FRACTION = 10  # bits of the factor by which infeasible duals are scaled down
LARGEST = 1 << 60  # cost of leaves that are counted
ROUNDS = 4  # that a proof takes at least: one that takes a larger share of the time is hopeless


def row_duals_apply(problem: Problem, gates: SizeGates) -> bool:
    """Whether row duals may bound trees: there is a leaf penalty, and depth beyond what is cheap."""
    deep = (math.inf if problem.max_depth is None else problem.max_depth) > gates.most_unpriced_depth
    return deep and problem.leaf_penalty > 0 and problem.losses.shape[1] > 1 and not shares_test_costs(problem)


def boxes_are_few(node: Node, gates: SizeGates) -> bool:
    """Whether row duals are tried: columns are few, and not all of two values, where the subset search does better.

    With many columns there are too many boxes to price.
    """
    return node.penalty > 0 and columns_are_few(node.bins, gates)


def columns_are_few(bins: np.ndarray, gates: SizeGates) -> bool:
    """The same of columns with so many codes."""
    return 0 < len(bins) <= gates.most_priced_columns and bool((bins >= gates.least_priced_codes).any())


class RowDuals:
    """A lower bound of all trees with many leaves, by dual variables of the rows.

    The best tree is a set partition of the rows into boxes; every row i has a dual u(i), an integer. If no box L has a
    dual sum above its loss by more than p, u(L) - loss_k(L) <= p for every action k, then a tree of h leaves loses at
    least sum(u) - h p. So all trees of H leaves or more cost at least sum(u) + H (penalty - p) if p <= penalty. Leaves
    of every tree are boxes; minimum counts, split costs and depth limits only add to the cost of trees.

    Duals are fitted to tables of merged codes first: boxes of a merged table are boxes of the whole table, and there
    are few of them. Only certificates of the whole table count.

    Parameters
    ----------
    node : Node
        All rows of a problem with at least two actions and a leaf penalty.
    clock : Clock
    gates : SizeGates, optional

    Attributes
    ----------
    certificates : list of (ndarray of shape (n_rows,), int)
        Duals u and p that were certified, newest last; losses are relative to each row's least one. ``bound(H)`` is
        the lower bound of all trees of at least H leaves.
    slow : bool
        Whether the time given last was much too short.
    waited : int
        Rounds of the whole table since the bound became better.
    """

    counter = "raised_by_row_duals"
    by_leaves = True  # whether the target is refined by the numbers of leaves that are open

    def __init__(self, node: Node, clock: Clock, gates: SizeGates = GATES):
        self.node, self.clock, self.gates = node, clock, gates
        self.floor = int(node.least_losses.sum())
        self.losses = node.all_losses - node.least_losses
        self.unit = max(
            int(np.gcd.reduce(self.losses, axis=None)), 1
        )  # of the loss of trees: one error in counted rows
        spread = self.losses.max(axis=0) / node.penalty
        scale = spread + EVEN * spread.mean()
        whole = DualFitting(node.codes, node.keys, self.losses, scale, node.penalty, clock, gates)
        self.certificates: list[tuple[np.ndarray, int]] = [(np.zeros(node.n_rows, np.int64), 0)]
        self.strongest = self.certificates[0]  # for any number of leaves
        self._bounded = self.strongest, node  # the rows with these duals
        self.counts = LeafCountEnvelope(node.penalty, self.unit, node.n_rows, gates.most_counted_leaves)
        self.goal, self.spare, self.share = (0, 0, 0), SPARE, SHARE
        self.margin = 0.0  # 0 until open numbers of leaves decide the target
        self.slow = self.by_passes = False
        self.idle = self.waited = 0  # rounds without a better bound, since the target moved and in all
        self.least_over, self.stalled = np.inf, 0  # violation of a coarse table; rounds since it fell much
        self.spent = 0.0  # on tables that were left
        tables = [] if whole.too_large else self._coarse_tables(scale)
        self.tables = [*tables, (whole, whole.place)]  # still to come, and where they have every row
        self.boxes, self.cell = self.tables.pop(0)

    def _coarse_tables(self, scale: np.ndarray) -> list[tuple[DualFitting, np.ndarray]]:
        """Tables of fewer codes, the coarsest first, and where they have every row."""
        tables, gates, penalty = [], self.gates, self.node.penalty
        n = len(scale)
        for most in reversed(gates.coarse_codes if n >= gates.least_coarse_rows else ()):
            codes, cell = merge_codes(self.node.codes, scale, most)
            cells = codes.shape[1]
            if cells > gates.most_coarse_share * n:
                continue
            n = cells
            keys, losses = np.zeros((2, n), np.int64), np.zeros((len(self.losses), n), np.int64)
            for to, what in zip([*keys, *losses], [*self.node.keys, *self.losses], strict=True):
                np.add.at(to, cell, what)
            table = DualFitting(codes, keys, losses, np.bincount(cell, scale, n), penalty, self.clock, gates)
            if not table.too_large:  # it has no arrays to fit duals with
                tables.append((table, table.place[cell]))
        return tables[::-1]

    @property
    def too_large(self) -> bool:
        """Whether memory is short."""
        return self.boxes.too_large

    @property
    def effort(self) -> float:
        """Seconds of a usual machine that were spent."""
        return self.spent + self.boxes.effort

    def bound(self, fewest: int) -> int:
        """The lower bound of all trees of at least ``fewest`` leaves."""
        return self.floor + self.counts.bound(fewest)

    def bounded(self) -> Node:
        """The rows with their duals, whose sums bound any tree on any of the rows, as kernels take them."""
        of, bounded = self._bounded
        node, (numbers, p) = self.node, self.strongest
        if of is self.strongest or (p == 0 and not numbers.any()):
            return bounded
        planes = np.vstack([node.rows.planes[:-2], node.least_losses + numbers, node.keys])
        rules = node.rules._replace(beyond=node.penalty - p)
        bounded = replace(node, rows=node.rows._replace(planes=planes), rules=rules)
        self._bounded = self.strongest, bounded
        return bounded

    def pays(self, seconds: float) -> bool:
        """Whether there is time: ``engines.py::DualEngine`` gives a share of what the next depth may take."""
        return seconds > 0

    def work(self, best: int, tree: Splits, depth: int, seconds: float) -> int:
        """Work for some seconds on a lower bound of all trees deeper than ``depth``; return the bound.

        Parameters
        ----------
        best : int
            The value of the incumbent, ``tree``. Trees down to ``depth`` are proved to be no better.
        seconds : float
            Of a usual machine (see work_units.py). Work that would take far more ends early.
        """
        fewest = depth + 2  # a tree of fewer leaves is not deeper
        self.slow = self.too_large
        if self.too_large or self.bound(fewest) >= best:
            return self.bound(fewest)
        self._choose_target(best, sum(f < 0 for f, _ in tree), fewest)
        start, first = self.effort, True
        while not (self.too_large or self.clock.stopped) and self.bound(fewest) < best:
            before = self.bound(fewest)
            left = start + seconds - self.effort
            if left < 0:
                break
            if not self.boxes.price(min(left, seconds / ROUNDS) if first else left):
                if self.boxes.diverged:
                    self._lower_target()
                    self.boxes.restart()
                    continue
                self.slow = first or self.too_large
                break
            first = False
            if self.tables:
                if self._is_done():
                    self._refine()
                    first = True
                    continue
                self.boxes.add_found()
            else:
                if self.boxes.exact:
                    self._certify(self.boxes)
                if self.bound(fewest) >= best:
                    break
                self.boxes.add_found()
                self._adapt_target(self.bound(fewest) > before)
            self.boxes.fit(self.by_passes)
        if self.tables and not (self.slow or self.clock.stopped):
            self._certify_spread(seconds / ROUNDS)
        return self.bound(fewest)

    def _is_done(self) -> bool:
        """Whether the coarse table is to be left: its violation is small, or no longer falls."""
        boxes = self.boxes
        if boxes.violation < BETTER * self.least_over:
            self.least_over, self.stalled = boxes.violation, 0
        self.stalled += 1
        return self.stalled > STALLED or (boxes.exact and boxes.violation < CLOSE_OF_COARSE * self.node.penalty)

    def _certify_spread(self, seconds: float) -> None:
        """Certify the duals of a coarse table, spread over all rows, if pricing takes no more than some seconds."""
        whole, place = self.tables[-1]
        before = whole.effort
        whole.spread(self.boxes, _moved(self.cell, place))
        if whole.price(seconds) and whole.exact:
            self._certify(whole)
        whole.abandon()
        self.spent += whole.effort - before

    def _refine(self) -> None:
        """Continue with the next table, from the duals and boxes of the coarser one."""
        coarse, cells = self.boxes, self.cell
        self.spent += coarse.effort
        self.boxes, self.cell = self.tables.pop(0)
        self.boxes.take_over(coarse, _moved(cells, self.cell))
        self.least_over, self.stalled = np.inf, 0

    def _choose_target(self, best: int, leaves: int, fewest: int) -> None:
        """Choose the allowance of boxes and the dual target, unless the goal is the same as before."""
        if (best, leaves, fewest) == self.goal:
            return
        self.goal, self.spare, self.margin = (best, leaves, fewest), SPARE, 0.0
        self._set_target(SHARE if leaves < fewest else SHARE_OF_LARGE)

    def _set_target(self, share: float) -> None:
        best, leaves, _ = self.goal
        target = (best - self.floor) / self.node.penalty - leaves * (1.0 - share) - self.spare * share
        self._move(share, target)

    def _move(self, share: float, target: float) -> None:
        """Set the allowance to that share of the leaf penalty, and the dual target."""
        self.share = share
        self.boxes.move(int(share * self.node.penalty), target)

    def _adapt_target(self, better: bool) -> None:
        """Raise the target if it was reached and proves too little; lower it if it seems out of reach."""
        self.idle, self.waited = (0, 0) if better else (self.idle + 1, self.waited + 1)
        if self.margin > 0:
            self._target_open_counts()
        elif self.boxes.exact and self.boxes.largest < (self.share + CLOSE) * self.node.penalty:
            if self.by_leaves and self.share >= SHARE_OF_LARGE:
                self.margin = MARGIN
                self._target_open_counts()
                return
            self.spare /= TIGHTER
            self._set_target(1.0 - (1.0 - self.share) / TIGHTER if self.share >= SHARE_OF_LARGE else self.share)
        elif self.idle == PATIENCE:
            self._lower_target()

    def _lower_target(self) -> None:
        """Set the target half-way between the present one, which is out of reach, and the best certified sum."""
        self.idle = 0
        reached = self.strongest[0].sum() / self.node.penalty
        self._move(self.share, (self.boxes.target + reached) / 2)

    def _target_open_counts(self) -> None:
        """Set the target to the line that refutes all open numbers of leaves and little more.

        Its slope is near the leaf penalty: above it if all open numbers are below the incumbent's, below it if all are
        above.
        """
        if self.idle == PATIENCE:
            self.idle = 0
            if self.by_passes:
                self.margin = self.margin / 2 if self.margin > LEAST_MARGIN else MARGIN
            self.by_passes = not self.by_passes  # gradients do not converge if the target is (nearly) out of reach
        best, leaves, fewest = self.goal
        h, most = self.counts.still_open(fewest, best - self.floor)
        if len(h) == 0:
            return
        share = 1.0 + TILT * (int(h[-1] < leaves) - int(h[0] > leaves))
        penalty = self.node.penalty
        self._move(share, float((most / penalty + h * share).max()) + self.margin * self.unit / penalty)

    def _certify(self, boxes: DualFitting) -> None:
        """Record a certificate; duals are scaled down if the largest violation exceeds the leaf penalty."""
        numbers, p, penalty = boxes.numbers[boxes.place], boxes.largest, self.node.penalty
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


def _moved(values: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Values of the rows of the problem, at the places that a table has for them."""
    moved = np.empty(int(to.max()) + 1, values.dtype)
    moved[to] = values
    return moved


class LeafCountEnvelope:
    """Bounds of the form: a tree of h leaves loses at least ``total - h p``, for every h.

    Where p is more than the price of a leaf, that says something of few leaves only; where p is less, it says most of
    many. So every number of leaves has the bound that says most of it, and what no bound refutes are some numbers of
    leaves only.

    Parameters
    ----------
    penalty : int
        Price of a leaf.
    unit : int
        Losses of trees are multiples of it.
    most : int
        Leaves that a tree can have.
    counted : int
        The largest number of leaves that has a bound of its own.
    """

    def __init__(self, penalty: int, unit: int, most: int, counted: int = GATES.most_counted_leaves):
        self.penalty, self.unit = penalty, unit
        self.h = np.arange(1, max(min(most, counted, LARGEST // (2 * max(penalty, 1))), 1) + 1, dtype=np.int64)
        self.losses = np.zeros(len(self.h), np.int64)
        self.beyond = int(self.h[-1]) * penalty  # cost of trees of so many leaves and more

    def add(self, total: int, p: int) -> None:
        """Note a bound; those of ``p`` of twice the price of a leaf and more say little and are left out."""
        if p < 2 * self.penalty:
            self.losses = np.maximum(self.losses, total - self.h * p)
        if p <= self.penalty:  # grows with the number of leaves
            self.beyond = max(self.beyond, total + int(self.h[-1]) * (self.penalty - p))

    def bound(self, fewest: int) -> int:
        """Bound the cost of trees with at least ``fewest`` leaves below."""
        # Losses are multiples of the unit, so that a bound rises to the next one.
        costs = -(-self.losses // self.unit) * self.unit + self.h * self.penalty
        return int(costs[fewest - 1 :].min(initial=self.beyond))

    def still_open(self, fewest: int, best: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of leaves of which trees may cost less than ``best``, and what such trees lose at most."""
        most = (best - self.h * self.penalty - 1) // self.unit * self.unit
        is_open = (self.h >= fewest) & (most >= 0) & (self.losses <= most)
        return self.h[is_open], most[is_open]
