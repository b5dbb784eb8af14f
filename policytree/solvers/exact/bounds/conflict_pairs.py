"""The conflict-pair bound for noisy tables of many columns: pairs of rows that want different actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits
from policytree.solvers.exact.bounds.row_duals import boxes_are_few, columns_are_few

if TYPE_CHECKING:
    from scipy import sparse

NEIGHBOURS = 4  # of every row, among those that want another action
A_CUT, A_ROW = 1e-10, 1.2e-4  # seconds of a pair of rows and a cut; of a row in the linear programme
SHARE_OF_LIMIT = 0.1  # of a time limit, that it may take
BYTES = 40  # of a pair of rows that is compared
SPARE = 1 + 1e-9  # by which numbers are scaled down too far


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
    """

    def __init__(self, node: Node, clock: Clock, gates: SizeGates = GATES):
        self.node, self.clock, self.gates = node, clock, gates
        self.found = False

    def work(self, best: int, tree: Splits, depth: int, seconds: float) -> int:
        """What every tree with a split costs at least; found once, whatever the arguments."""
        self.found = True
        return pair_bound(self.node)

    def pays(self, seconds: float) -> bool:
        """Whether the bound is to be found: rows and cuts are few, and row duals, which do better, do not apply."""
        if self.found:
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


def pair_bound(node: Node) -> int:
    """What every tree with a split costs at least, for a node with two actions or more and a price per leaf.

    A row that wants an action loses at least its *regret* wherever it gets another one. Let pairs of rows that want
    different actions have numbers, which for no row sum up to more than its regret: then a leaf loses at least the
    numbers of all pairs within it, as one row of each gets what it does not want. And let the numbers of the pairs that
    any cut separates sum up to the price of a leaf at most. A tree of h leaves has h - 1 cuts, which separate pairs
    worth h - 1 prices at most, so that it costs at least the price of a leaf and the numbers of all pairs.

    The numbers come from a linear programme and are rounded down to integers that keep every limit exactly, so that
    nothing rests on how well that was solved. Minimum counts, limits of depth and prices of questions only add to what
    trees cost.
    """
    losses = node.all_losses
    floor = int(node.least_losses.sum())
    sorted_losses = np.sort(losses, axis=0)
    regret, wanted = sorted_losses[1] - sorted_losses[0], losses.argmin(axis=0)
    cuts = zip(node.codes, node.bins, strict=True)
    side = np.concatenate([codes[:, None] > np.arange(b - 1) for codes, b in cuts], axis=1)
    pairs = _near_pairs(side, regret, wanted)
    if not len(pairs):
        return floor + node.penalty
    from scipy import sparse  # takes longer to import than small searches take

    separated = sparse.csr_array((side[pairs[:, 0]] != side[pairs[:, 1]]).T.astype(np.int64))
    numbers = _numbers(pairs, separated, regret, node.penalty)
    return floor + node.penalty + int(numbers.sum())


def _near_pairs(side: np.ndarray, regret: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Pairs of rows that want different actions and that few cuts separate, (n_pairs, 2); the lower row first."""
    found = [np.zeros((0, 2), np.int64)]
    where = side.astype(np.float32)
    for action in np.unique(wanted):
        ones, others = (np.flatnonzero((regret > 0) & mask) for mask in (wanted == action, wanted != action))
        if not len(ones) or not len(others):
            continue
        distance = where[ones] @ (1 - where[others]).T + (1 - where[ones]) @ where[others].T
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
        found.append(np.column_stack([np.repeat(ones, nearest.shape[1]), others[nearest.ravel()]]))
    return np.unique(np.sort(np.concatenate(found), axis=1), axis=0)


def _numbers(pairs: np.ndarray, separated: sparse.csr_array, regret: np.ndarray, penalty: int) -> np.ndarray:
    """Numbers of the pairs, integers that keep every limit."""
    from scipy import sparse
    from scipy.optimize import linprog

    m, n = len(pairs), len(regret)
    of_row = sparse.csr_array((np.ones(2 * m, np.int64), (pairs.T.ravel(), np.tile(np.arange(m), 2))), shape=(n, m))
    limits = np.concatenate([regret, np.full(separated.shape[0], penalty)])
    uses = sparse.vstack([of_row, separated], format="csr")
    solved = linprog(-np.ones(m), A_ub=uses.astype(float), b_ub=limits / penalty, method="highs-ipm")
    if solved.x is None:
        return np.zeros(m, np.int64)
    numbers = (np.maximum(solved.x, 0) * penalty).astype(np.int64)
    numbers = np.minimum(numbers, regret[pairs].min(axis=1))  # so that sums stay small
    while ((used := uses @ numbers) > limits).any():  # by rounding: a little less of everything
        numbers = (numbers / ((used / np.maximum(limits, 1)).max() * SPARE)).astype(np.int64)
    return numbers
