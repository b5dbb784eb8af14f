"""Columns of codes that continue each other, as one column: a feature of more values than a column's codes number.

Such a feature is several columns (``problem/split_columns.py::parts_of``, ``BinnedData.in_parts``). Rows behind the
last cut of a part share its last code, and the next part tells them apart; rows before its first cut share its first:

    part f        0 1 2 3 3 3 3 3          place     offset[f] + 0, 1, 2
    part f + 1    0 0 0 0 1 2 3 4          then      offset[f + 1] + 0, 1, 2, 3, 4
    as one        0 1 2 4 5 6 7 8          code 3 of part f has no rows left: a *seam*

Codes as one are places less the feature's first place, so that sums by place serve both. A seam is the cut before it
once more. Second splits need one pass over the rows for all parts, first splits one list of live cuts.

Cost: n steps for every column.
Symbols: w is a column as one, f a part of it; see base/layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, Rows, Sums
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.first_splits import own_splits
from policytree.solvers.kernels.depth_two.solve import FirstSplits, Found, PairWork, find_long


@kernel(borrows=True)
def continues(rows, f):
    """Whether column f + 1 only tells apart rows that have the last code of column f, and splits on both cost alike."""
    if rows.groups[f] != rows.groups[f + 1] or rows.owners[f] != rows.owners[f + 1]:
        return False
    c, d, last = rows.codes[f], rows.codes[f + 1], rows.bins[f] - 1
    i = 0
    while i < rows.n and (d[i] == 0 or np.int64(c[i]) == last):
        i += 1
    return i == rows.n


@kernel(separate=True)
def whole_columns(rows, long, ordered):
    """Rows whose long columns are joined where one continues the other, and the first part of each; then the end.

    Columns from ``ordered`` on have levels, and stay as they are.
    """
    p = len(rows.bins)
    parts = np.empty(p + 1, np.int64)
    q = 0
    for f in range(p):
        if f == 0 or f >= ordered or not (long[f - 1] and long[f]) or not continues(rows, f - 1):
            parts[q] = f
            q += 1
    parts[q] = p
    codes = np.empty((q, rows.n), np.uint32)
    bins = np.empty(q, np.int64)
    offset = np.empty(q + 1, np.int64)
    groups = np.empty(q, np.int64)
    owners = np.empty(q, np.int64)
    for w in range(q):
        f = parts[w]
        offset[w] = rows.offset[f]
        bins[w] = rows.offset[parts[w + 1]] - offset[w]
        groups[w] = rows.groups[f]
        owners[w] = rows.owners[f]
        for i in range(rows.n):
            codes[w, i] = rows.codes[f, i]
        for part in range(f + 1, parts[w + 1]):
            last, skip = rows.bins[part - 1] - 1, rows.offset[part] - offset[w]
            for i in range(rows.n):
                if np.int64(rows.codes[part - 1, i]) == last:
                    codes[w, i] = skip + np.int64(rows.codes[part, i])
    offset[q] = rows.offset[p]
    return Rows(codes, rows.planes, bins, offset, groups, owners, rows.n), parts[: q + 1]


@kernel(separate=True, borrows=True)
def fill_seams(rows, rules, parts, work):
    """Give every seam the sums and the second splits of the cut before it."""
    leaves, charges = work.sums
    low, high = work.splits
    S = rows.offset[len(rows.bins)]
    for w in range(len(parts) - 1):
        for f in range(parts[w], parts[w + 1] - 1):
            seam = rows.offset[f + 1] - 1
            for k in range(len(leaves)):
                leaves[k, seam] = leaves[k, seam - 1]
            for j in range(len(charges)):
                charges[j, seam] = charges[j, seam - 1]
            for j in range(max(rules.prices, 1)):
                low[j * S + seam] = low[j * S + seam - 1]
                high[j * S + seam] = high[j * S + seam - 1]


@kernel(separate=True)
def work_of_whole(rows, rules, whole, parts, work):
    """The work space of all pairs, for columns as one; the sums of ``work`` are theirs from here on.

    A column of which tables with every part pay, but none with the whole, becomes long.
    """
    fill_seams(rows, rules, parts, work)
    q = len(whole.bins)
    widest = 1
    long = np.empty(q, np.bool_)
    find_long(whole, rules, long)
    for w in range(q):
        widest = max(widest, whole.bins[w])
        long[w] = long[w] or work.long[parts[w]]
    exact = np.empty((widest + 1, work.exact.shape[1]), np.int64)
    ordered = work.ordered - (len(rows.bins) - q)
    return PairWork(work.rounded, Sums(work.sums.leaves, work.sums.charges), work.splits, own_splits(widest, rules),
                    work.tables, exact, work.wanted[: 4 * q], work.seconds[:q], long, ordered)  # fmt: skip


@kernel(borrows=True)
def as_one(rows, whole, parts, found):
    """A tree of depth two, whose first split is by a part, in columns as one."""
    for w in range(len(parts) - 1):
        if parts[w] <= found.feature < parts[w + 1]:
            return Found(found.value, w, rows.offset[found.feature] + found.cut - whole.offset[w])
    return found


@kernel(borrows=True)
def as_parts(rows, whole, w, cut):
    """The part, and its cut, that a cut of a column as one is."""
    place = whole.offset[w] + cut
    f = 0
    while rows.offset[f + 1] <= place:
        f += 1
    return f, min(place - rows.offset[f], rows.bins[f] - 2)


@kernel(separate=True, borrows=True)
def keep_first(rows, whole, own, first):
    """Lower what is known of first splits to the values ``own`` of columns as one."""
    for w in range(len(whole.bins)):
        if own.cuts[w] < 0:
            continue
        f, t = as_parts(rows, whole, w, own.cuts[w])
        if own.values[w] < first.values[f]:
            first.values[f] = own.values[w]
            first.cuts[f] = t


@kernel(separate=True)
def no_first_splits(p):
    """Nothing is known of the first splits of p columns."""
    return FirstSplits(np.full(p, INF, np.int64), np.full(p, -1, np.int64))
