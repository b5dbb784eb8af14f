"""Row sets as lists of rows, for any losses: a row adds its numbers to the column of its code of every feature.

The numbers of a row stand side by side, padded to whole vectors: its sums, and two random keys. Sums of the keys name a
set: two sets share the 128 bits with probability 2**-128. A code of a feature that most rows have is not added up: its
sums are what the others leave of the total. Every code is a column here, also the last one of a feature, which is no
split.

Cost: one pass over the rows for every feature that is left.
Symbols: see row_set_layout.py.
"""

import numpy as np

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.layout import LANES
from policytree.solvers.kernels.row_set_layout import N_PLACES, N_ROWS
from policytree.solvers.kernels.two_valued import add_vectors


@kernel(separate=True)
def add_rows(lists, index, n):
    """Sums of a set's rows by code, and in total."""
    start, items = lists.start, lists.items
    Q = lists.numbers.shape[1]
    flat, all_sums = lists.sums.reshape(lists.sums.size), lists.all_sums.reshape(Q)
    numbers = lists.numbers.reshape(lists.numbers.size)
    lists.sums[:] = 0
    all_sums[:] = 0
    for i in range(n):
        r = np.int64(index[i])
        add_vectors(all_sums, 0, numbers, r * Q, Q // LANES)
        for s in range(start[r], start[r + 1]):
            add_vectors(flat, np.int64(items[s]) * Q, numbers, r * Q, Q // LANES)


@kernel
def sum_lists(lists, rules, path, scratch, d):
    """Sums of side 1 of every column of the set of level d, and the names of both sides."""
    s, places, offset, sums, on = path.scalars[d], path.places[d], lists.offset, lists.sums, scratch.on
    total = lists.all_sums[0]
    Q = rules.n_sums
    key1, key2 = path.key1[d], path.key2[d]
    add_rows(lists, lists.index[d], s[N_ROWS])
    for q in range(Q):
        scratch.total[q] = total[q]
    last = -1
    for j in range(s[N_PLACES]):
        f = rules.feature[places[j]]
        if f == last:
            continue
        last = f
        first, end, common = offset[f], offset[f + 1], lists.common[f]
        for q in range(Q + 2):
            rest = total[q]
            for t in range(first, end):
                rest -= sums[t, q]
            sums[common, q] = rest
            for t in range(first + 1, end):
                sums[t, q] += sums[t - 1, q]
        for q in range(Q):
            for t in range(first, end):
                on[q, t] = total[q] - sums[t, q]
        for t in range(first, end):
            key1[0, t] = sums[t, Q]
            key2[0, t] = sums[t, Q + 1]
            key1[1, t] = total[Q] - sums[t, Q]
            key2[1, t] = total[Q + 1] - sums[t, Q + 1]


@kernel
def descend_lists(lists, rules, s, below, d, column, side):
    """Make the rows of one side of a column the set of level d + 1."""
    cut = np.int64(rules.cut[column])
    codes = lists.codes[rules.feature[column]]
    index, to = lists.index[d], lists.index[d + 1]
    n = 0
    for i in range(s[N_ROWS]):
        r = index[i]
        if (np.int64(codes[r]) <= cut) == (side == 0):
            to[n] = r
            n += 1
    below[N_ROWS] = n
