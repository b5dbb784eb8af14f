"""Bounds of a subset of rows, and of both sides of its splits, from its conflict pairs (conflicts/layout.py).

Cost: some rounds over the pairs within the subset.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.conflicts.fit import ALLOWANCE, SLOTS, TOTAL, fit_numbers
from policytree.solvers.kernels.subsets.bit_sets import bits_set
from policytree.solvers.kernels.subsets.layout import BEST, CUTOFF, LEAST, N_PLACES, N_ROWS

ROUNDS = 15  # of primal-dual steps, which begin where those of the subset before ended
WORK_OF_ROUNDING = 8  # in rounds


@kernel(borrows=True)
def list_rows(lists, bits, conflicts, d, n):
    """List the rows of the set of level d that lose by some action, in ``conflicts.rows``; returns how many."""
    rows, found = conflicts.rows, 0
    if lists is not None:
        for k in range(n):
            rows[k] = lists.index[d, k]
        found = n
    if bits is not None:
        for q in range(n):
            x, first = bits.value[d, q], 64 * np.int64(bits.where[d, q])
            while x != 0:
                rest = x & (x - np.uint64(1))
                row = conflicts.of_bit[first + bits_set((x ^ rest) - np.uint64(1))]
                x = rest
                if row >= 0:
                    rows[found] = row
                    found += 1
    return found


@kernel(separate=True, borrows=True)
def bound_by_pairs(lists, bits, state, d, from_parent, fewest):
    """Bound the set of level d and the sides of its splits; returns the work it took.

    All trees of fewer leaves than ``fewest`` are known to cost no less than the set's best tree or its cutoff. A side
    is a leaf, which its upper bound knows, or has two leaves at least; with ``from_parent`` the set's bound holds for
    its parts.
    """
    rules, path, conflicts = state.rules, state.path, state.conflicts
    s, penalty = path.scalars[d], rules.penalty
    n = list_rows(lists, bits, conflicts, d, s[N_ROWS])
    codes = fit_numbers(
        conflicts, n, path.places[d], s[N_PLACES], rules.feature, rules.cut, penalty, fewest, ROUNDS,
    )  # fmt: skip
    allowance, total, K = conflicts.result[ALLOWANCE], conflicts.result[TOTAL], conflicts.result[SLOTS]
    bound = state.scratch.total[rules.n_losses] + fewest * penalty + total - (fewest - 1) * allowance
    s[LEAST] = max(s[LEAST], min(bound, min(s[BEST], s[CUTOFF])))
    low, up, floor, worst = path.low[d], path.up[d], path.floor[d], path.worst[d]
    for k in range(K):
        t = conflicts.column[k]
        if t >= 0:
            for v in range(2):
                side = floor[v, t] + 2 * penalty - allowance + conflicts.left[v * K + k]
                if from_parent:
                    side = max(side, s[LEAST] - worst[1 - v, t])
                low[v, t] = max(low[v, t], min(up[v, t], side))
    return codes * (ROUNDS + WORK_OF_ROUNDING)
