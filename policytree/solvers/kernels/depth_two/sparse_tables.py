"""Tables of pairs without the rows of a feature's commonest code: often most of all rows.

The sums of the rows of that code in a table follow from the others: for every code of the other feature, they are the
sum of all rows of that code less the rows that were added. So only the other rows need to be added, one by one.

Cost: a look at some rows and a pass over all, for every feature; for a pair, one step for every row of another code
than the commonest, and one for every cell.
Symbols: the tables of features f and g have a row for every code of f.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import i4, int_1d, long_1d, long_2d
from policytree.solvers.kernels.compiling import kernel

LOOKED_AT = 256  # rows, to find the commonest code
COMMON = 0.25  # share of the rows looked at, from which a code is common
MOST_LISTED = 1 << 22  # features times rows, from which lists would take too much memory


class Others(NamedTuple):
    """Of every feature, the rows that do not have its commonest code; last, of no feature, all rows.

    In the order of some index of rows, which is divided into parts.
    """

    common: long_1d  # commonest code of every feature, -1 if none is common
    start: long_1d  # where each feature's list begins
    parts: long_2d  # (features + 1, parts + 1): and where each part ends, from there
    rows: int_1d


@kernel(borrows=True)
def commonest(c, index, counts):
    """The commonest code of some rows and how many have it: about, by the rows looked at."""
    n = len(index)
    step = max(n // LOOKED_AT, 1)
    counts[:] = 0
    best = 0
    for i in range(0, n, step):
        b = np.int64(c[index[i]])
        counts[b] += 1
        if counts[b] > counts[best]:
            best = b
    return best, counts[best] * step


@kernel(separate=True)
def list_others(rows, index, ends):
    """Lists of the rows ``index``, of which each part ends where ``ends`` says, for every feature."""
    p, n = len(rows.bins), len(index)
    widest = 1
    for f in range(p):
        widest = max(widest, rows.bins[f])
    counts = np.empty(widest, np.int64)
    common = np.full(p + 1, -1, np.int64)
    start = np.zeros(p + 2, np.int64)
    listed = p * n <= MOST_LISTED
    for f in range(p):
        start[f + 1] = start[f]
        if listed:
            code, count = commonest(rows.codes[f], index, counts)
            if count >= COMMON * n:
                common[f] = code
                start[f + 1] += n
    start[p + 1] = start[p] + n
    others = Others(common, start, np.zeros((p + 1, len(ends) + 1), np.int64), np.empty(start[p + 1] + 1, np.int32))
    for f in range(p + 1):
        if start[f + 1] > start[f]:
            list_of_feature(rows.codes[min(f, p - 1)], f, index, ends, others)
    return others


@kernel(separate=True)
def list_all_others(rows, wanted):
    """:func:`list_others` of all rows in their own order; of none, unless that is ``wanted``."""
    n = rows.n if wanted else 0
    return list_others(rows, np.arange(n).astype(np.int32), np.full(1, n))


@kernel(borrows=True)
def list_of_feature(c, f, index, ends, others):
    """The list of one feature with the codes c, or of none."""
    common, to = others.common[f], others.rows
    at = others.start[f]
    begin = 0
    for e in range(len(ends)):
        for i in range(begin, ends[e]):
            r = index[i]
            to[at] = r
            at += np.int64(c[r]) != common
        begin = ends[e]
        others.parts[f, e + 1] = at - others.start[f]


@kernel(inline="always")
def shortest_list(others, f, g):
    """Choose the shortest list for a pair: of f, of g, or of all rows."""
    last = others.parts.shape[1] - 1
    best = len(others.common) - 1
    for h in (f, g):
        if others.common[h] >= 0 and others.parts[h, last] < others.parts[best, last]:
            best = h
    return best


@kernel(separate=True, borrows=True)
def fill_pair(h, f, g, rows, losses, others, sums):
    """The table ``h``, zero so far, of the losses of all rows; ``others`` lists them in their own order.

    ``sums``: cumulated sums of the losses by single features.
    """
    of = shortest_list(others, f, g)
    x, y = rows.codes[f], rows.codes[g]
    if of == len(others.common) - 1:
        for i in range(rows.n):
            h[x[i], y[i]] = i4(h[x[i], y[i]] + losses[i])
        return
    for j in range(others.start[of], others.start[of] + others.parts[of, others.parts.shape[1] - 1]):
        i = others.rows[j]
        h[x[i], y[i]] = i4(h[x[i], y[i]] + losses[i])
    common = others.common[of]
    before = i4(0)
    if of == f:
        rest = h[common]
        o = rows.offset[g]
        for u in range(len(rest)):
            rest[u] = i4(sums[o + u] - before)
            before = sums[o + u]
        for t in range(len(h)):
            if t == common:
                continue
            row = h[t]
            for u in range(len(rest)):
                rest[u] = i4(rest[u] - row[u])
    else:
        o = rows.offset[f]
        for t in range(len(h)):
            row = h[t]
            s = i4(sums[o + t] - before)
            before = sums[o + t]
            for u in range(len(row)):
                s = i4(s - row[u])
            row[common] = s
