"""The conflict-pair bound for noisy tables of many columns: pairs of rows that want different actions."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.columns import columns_of
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits, rows_of
from policytree.solvers.core.search_state import Incumbent
from policytree.solvers.exact.bounds.row_duals import boxes_are_few, columns_are_few
from policytree.solvers.kernels.conflicts.fit import ALLOWANCE, TOTAL, fit_numbers
from policytree.solvers.kernels.conflicts.layout import Conflicts

NEIGHBOURS = 8  # of every row, among those that want another action
ROUNDS, TRIED = 300, 15  # of primal-dual steps; as many reach three quarters of what all of them do
A_CUT, A_ROW = 1e-10, 1.2e-4  # seconds of a pair of rows and a cut; of a row in these steps
PART = 8  # of use is a bound that closes one part in so many of what lies between the floor and the best tree
SHARE_OF_LIMIT = 0.1  # of a time limit, that it may take
BYTES = 40  # of a pair of rows that is compared


def conflict_pairs_apply(problem: Problem, gates: SizeGates) -> bool:
    """Whether the bound may be tried, as far as the rows before merging can tell."""
    bins = problem.data.n_bins
    several = problem.leaf_penalty > 0 and problem.losses.shape[1] > 1
    return several and not columns_are_few(bins, gates) and _cuts_are_few(bins, gates)


def _cuts_are_few(bins: np.ndarray, gates: SizeGates) -> bool:
    return 0 < int((bins - 1).sum()) <= gates.most_pair_cuts


class ConflictPairs:
    """The bound of a node, found once it costs little beside a search that looks long.

    Parameters
    ----------
    node : Node
        All rows.
    clock : Clock
    gates : SizeGates, optional
    incumbent : Incumbent, optional
        A fit ends early that would neither exceed its bound nor come near its value.

    Attributes
    ----------
    conflicts : Conflicts or None
        The pairs, if the bound that was found is of use: then the subset search bounds every subset with them
        (``subset_search.py``).
    """

    counter = "raised_by_conflict_pairs"

    def __init__(self, node: Node, clock: Clock, gates: SizeGates = GATES, incumbent: Incumbent | None = None):
        self.node, self.clock, self.gates, self.incumbent = node, clock, gates, incumbent
        self.conflicts: Conflicts | None = None
        self._tried = False

    def work(self, best: int, tree: Splits, depth: int, seconds: float) -> int:
        """Bound the cost of every tree with a split below; once, whatever the arguments."""
        self._tried, conflicts = True, make_conflicts(self.node)
        floor, need = int(self.node.least_losses.sum()), 0
        if self.incumbent is not None:
            need = max(self.incumbent.bound - floor, (self.incumbent.value - floor) // PART)
            bound = pair_bound(self.node, conflicts, TRIED)
            if 4 * (bound - floor) < 3 * need:
                return bound
        bound = pair_bound(self.node, conflicts)
        if bound - floor >= need:
            self.conflicts = conflicts
        return bound

    def pays(self, seconds: float) -> bool:
        """Whether the bound is to be found: rows and cuts are few, and row duals, which do better, do not apply."""
        if self._tried:
            return False
        node, gates = self.node, self.gates
        cuts, n = int((node.bins - 1).sum()), node.n_rows
        few = _cuts_are_few(node.bins, gates) and n * n <= gates.most_pair_distances
        share = gates.pair_share * seconds
        if self.clock.time_limit is not None:  # better trees come first
            share = min(share, SHARE_OF_LIMIT * self.clock.time_limit)
        cheap = A_CUT * n * n * cuts + A_ROW * n < share
        several = len(node.losses) > 0 and not boxes_are_few(node, gates)
        return node.penalty > 0 and few and cheap and several and self.clock.fits_memory(BYTES * n * n)


def pair_bound(node: Node, conflicts: Conflicts, rounds: int = ROUNDS) -> int:
    """Bound the cost of every tree with a split below, for a node with two actions or more and a price per leaf.

    Steps go on from those that were made before. See kernels/conflicts/layout.py. Minimum counts, limits of depth and
    prices of questions only add to that.
    """
    floor = int(node.least_losses.sum())
    if not len(conflicts.pairs):
        return floor + 2 * node.penalty
    features, cuts = (x.astype(np.int32) for x in columns_of(node.bins - 1))
    every = np.arange(len(cuts), dtype=np.int32)
    conflicts.rows[:] = np.arange(node.n_rows)
    fit_numbers(conflicts, node.n_rows, every, len(every), features, cuts, node.penalty, 2, rounds)
    allowance, total = (int(x) for x in conflicts.result[[ALLOWANCE, TOTAL]])
    return floor + 2 * node.penalty + total - allowance


def make_conflicts(node: Node) -> Conflicts:
    """Pairs of rows to fit numbers to: each row and those nearest to it that want another action."""
    losses = np.sort(node.all_losses, axis=0)
    regret, wanted = losses[1] - losses[0], node.all_losses.argmin(axis=0)
    cuts = zip(node.codes, node.bins, strict=True)
    none = np.zeros((node.n_rows, 0), bool)
    side = np.concatenate([none, *(codes[:, None] > np.arange(b - 1) for codes, b in cuts)], axis=1)
    return _conflicts(node, regret, _near_pairs(side, regret, wanted).astype(np.int32))


def no_conflicts(node: Node) -> Conflicts:
    """No pairs: the bound is not used."""
    return _conflicts(rows_of(node, np.arange(1)), np.zeros(1, np.int64), np.zeros((0, 2), np.int32))


def _conflicts(node: Node, regret: np.ndarray, pairs: np.ndarray) -> Conflicts:
    """Room to fit numbers to these pairs."""
    n, p, size = node.n_rows, len(node.bins), int(node.bins.max(initial=0))
    codes = np.ascontiguousarray(node.codes.T.astype(np.int32))
    of_pair, told = np.nonzero(codes[pairs[:, 0]] != codes[pairs[:, 1]])
    m, slots = len(pairs), int(node.bins.sum())
    start = np.searchsorted(of_pair, np.arange(m + 1)).astype(np.int64)
    return Conflicts(
        codes, node.bins.astype(np.int64), regret, pairs, start, told.astype(np.int32), np.zeros(0, np.int32),
        max(int(regret.sum()) // max(int((regret > 0).sum()), 1), 1),
        np.zeros(m), np.zeros(slots - p), np.zeros(n),
        np.zeros(n, np.uint8), np.zeros(n, np.int32), np.zeros(m, np.int32), np.zeros(m + 1, np.int64),
        np.zeros((len(told), 2), np.int32), np.zeros(m, np.int64), np.zeros(m), np.zeros(p, np.int32),
        np.zeros(p, np.int32), np.zeros((p, size), np.int32),
        np.zeros(slots, np.int32), np.zeros(4 * (slots + 1)), np.zeros(2 * n), np.zeros(2 * slots, np.int64),
        np.zeros(n, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip


def _least(values: np.ndarray, most: int) -> np.ndarray:
    """Places of the least ``most`` whole values of every row, the first ones among equals; in no order."""
    width = values.shape[1]
    kind = np.dtype(np.int32 if (values.max() + 1.0) * width < 2**31 else np.int64)
    order = np.multiply(values, width, dtype=kind, casting="unsafe") + np.arange(width, dtype=kind)  # all different
    if most < width:
        order.partition(most - 1, axis=1)
    return order[:, :most] % width


def _near_pairs(side: np.ndarray, regret: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Pairs of rows that want different actions and that few cuts separate, (n_pairs, 2); the lower row first."""
    n = len(wanted)
    found = [np.zeros(0, np.int64)]
    where = side.astype(np.float32)
    beyond = where.sum(axis=1)
    for action in np.unique(wanted):
        ones, others = (np.flatnonzero((regret > 0) & mask) for mask in (wanted == action, wanted != action))
        if not len(ones) or not len(others):
            continue
        with np.errstate(invalid="ignore"):  # zeros and ones: now and then BLAS flags what lies beside them in memory
            both = where[ones] @ where[others].T
        distance = beyond[ones, None] + beyond[others] - 2 * both
        nearest = others[_least(distance, NEIGHBOURS)]
        found.append((np.minimum(ones[:, None], nearest) * n + np.maximum(ones[:, None], nearest)).ravel())
    return np.column_stack(np.divmod(np.unique(np.concatenate(found)), n))
