"""The class of every cell, as the ensemble predicts it.

For every feature and cell of it, a word of bits says which leaves of a tree can be reached: bits of all features
together leave one leaf. Features are fixed one after the other, the last one fastest. Fixed features settle some
trees: one leaf of each is left, and its scores are added at once for all cells below. So few trees are left to be
asked where most of the work is. And a slab of cells needs no work at all

- if no leaves that the other trees can still add change the class: it is filled with it;
- if no tree that is not settled tells it from the slab before it: it is a copy of that.

Sums here are made in another order than the ensemble's and may differ from its own in the last digits. They decide only
where one class leads by more than ``margin``; cells where none does, such as ties, get their scores summed in the
ensemble's own order.

Cost: for each cell that is neither filled nor copied, one word and K numbers for each tree that is not settled before
the last feature; T K numbers where no class leads.
Symbols: p features, T trees, W words of a tree, K scores of the ensemble, S scores here: 1 for two classes.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.born_again.kernels.layout import (
    STOP,
    bytes_1d,
    i8,
    long_1d,
    long_2d,
    long_3d,
    real_1d,
    real_2d,
)
from policytree.solvers.kernels.compiling import kernel

LARGEST, NONNEGATIVE, POSITIVE = 0, 1, 2  # which class scores decide for: of the largest; 1 if the only one is so
UNDECIDED = -1


class Scores(NamedTuple):
    """Scores of an ensemble's leaves, and the leaves within reach of each cell."""

    cells: long_1d  # (p,)
    offset: long_1d  # (p,) where a feature's cells begin in
    reach: long_3d  # (cells of all features, T, W) leaves that can be reached
    first_leaf: long_1d  # (T,) row of ``values``
    values: real_2d  # (leaves, K)
    ends: long_1d  # after which trees a partial sum ends; partial sums are added up at last
    base: real_1d  # (K,) where the sum begins
    divisor: types.float64  # of the sum
    decision: i8


class Leads(NamedTuple):
    """The same scores as far as only their order matters, and what they are within.

    With S = 1 the second class leads by the score, else classes lead each other by the differences of their scores.
    """

    scores: real_2d  # (leaves, S)
    base: real_1d  # (S,)
    low: real_2d  # (T, S) least over a tree's leaves
    high: real_2d  # (T, S) largest
    margin: types.float64  # a lead of at most so much decides nothing


class Path(NamedTuple):
    """Partial scores and reachable leaves by the number of features that are fixed; work space."""

    index: long_1d  # (p + 1,) which cell of the feature that is fixed last
    shared: long_3d  # (p + 1, T, W) leaves still within reach
    open: long_2d  # (p + 1, T) trees with more than one of them
    count: long_1d  # (p + 1,) how many
    sums: real_2d  # (p + 1, S) what the other trees add up to
    leaf: long_1d  # (T,) the leaf of each of these, among all leaves


@intrinsic
def lowest_bit(typingctx, word):
    """Place of the lowest bit of a word that is not 0."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), emit


@kernel
def decide(total, divisor, decision):
    """The class that scores decide for; the first of several that are largest."""
    first = total[0] / divisor
    if decision == NONNEGATIVE:
        return 1 if first >= 0 else 0
    if decision == POSITIVE:
        return 1 if first > 0 else 0
    best = 0
    for k in range(1, len(total)):
        other = total[k] / divisor
        if other > first:
            first = other
            best = k
    return best


@kernel
def summed_in_order(scores, leaf, total, part):
    """The class if every tree reaches this leaf, with sums as the ensemble makes them; ``total``, ``part``: (K,)."""
    K, group = len(total), 0
    for k in range(K):
        part[k] = scores.base[k]
        total[k] = 0.0
    for t in range(len(leaf)):
        for k in range(K):
            part[k] += scores.values[leaf[t], k]
        if t + 1 == scores.ends[group]:
            group += 1
            for k in range(K):
                total[k] += part[k]
                part[k] = 0.0
    return decide(total, scores.divisor, scores.decision)


@kernel(inline="always")
def leader(leads, path, n):
    """The class that leads whatever leaf the open trees reach, after n features; or UNDECIDED."""
    S, count = len(leads.base), path.count[n]
    if S == 1:
        low = path.sums[n, 0]
        high = low
        for a in range(count):
            t = path.open[n, a]
            low += leads.low[t, 0]
            high += leads.high[t, 0]
        if low > leads.margin:
            return 1
        return 0 if high < -leads.margin else UNDECIDED
    best = 0
    for k in range(1, S):
        if path.sums[n, k] > path.sums[n, best]:
            best = k
    low = path.sums[n, best] - leads.margin
    for a in range(count):
        low += leads.low[path.open[n, a], best]
    for k in range(S):
        if k != best:
            high = path.sums[n, k]
            for a in range(count):
                high += leads.high[path.open[n, a], k]
            if high >= low:
                return UNDECIDED
    return best


@kernel(inline="always")
def fix_feature(scores, leads, path, n, row):
    """Fix the n-th feature at a cell: what is open, and what settled trees add up to."""
    W, S = scores.reach.shape[2], len(leads.base)
    for k in range(S):
        path.sums[n, k] = path.sums[n - 1, k]
    still = 0
    for a in range(path.count[n - 1]):
        t = path.open[n - 1, a]
        found, place = 0, 0
        for w in range(W):
            x = scores.reach[row, t, w] & path.shared[n - 1, t, w]
            path.shared[n, t, w] = x
            if x != 0:
                found += 1 if x & (x - 1) == 0 else 2
                place = 64 * w + lowest_bit(x)
        if found == 1:
            path.leaf[t] = scores.first_leaf[t] + place
            for k in range(S):
                path.sums[n, k] += leads.scores[path.leaf[t], k]
        else:
            path.open[n, still] = t
            still += 1
    path.count[n] = still


@kernel(inline="always")
def same_as_before(scores, path, n, row):
    """Whether no open tree tells a cell of the n-th feature from the one before it."""
    for a in range(path.count[n - 1]):
        t = path.open[n - 1, a]
        for w in range(scores.reach.shape[2]):
            if (scores.reach[row, t, w] ^ scores.reach[row - 1, t, w]) & path.shared[n - 1, t, w] != 0:
                return False
    return True


@kernel(takes=(Scores, Leads, Path, bytes_1d, long_1d, real_2d, long_1d))
def classify_cells(scores, leads, path, classes, stride, sums, flag):
    """Classes of all cells, last feature fastest.

    ``path`` : after no feature. ``stride`` : (p,) of cells. ``sums`` : (2, K) work space.
    """
    n, at = 1, 0
    path.index[1] = 0
    while n > 0 and flag[STOP] == 0:
        if path.index[n] == scores.cells[n - 1]:
            n -= 1
            path.index[n] += 1
            continue
        row, size = scores.offset[n - 1] + path.index[n], stride[n - 1]
        if path.index[n] > 0 and same_as_before(scores, path, n, row):
            for i in range(at, at + size):
                classes[i] = classes[i - size]
        else:
            fix_feature(scores, leads, path, n, row)
            winner = leader(leads, path, n)
            if winner == UNDECIDED and path.count[n] > 0:
                n += 1
                path.index[n] = 0
                continue
            if winner == UNDECIDED:
                winner = summed_in_order(scores, path.leaf, sums[0], sums[1])
            for i in range(at, at + size):
                classes[i] = winner
        at += size
        path.index[n] += 1


@kernel(takes=(bytes_1d, i8, i8, i8))
def cut_matters(classes, cells, stride, t):
    """Whether the class changes anywhere across a cut of a feature with so many cells and that stride."""
    outer = len(classes) // (cells * stride)
    for o in range(outer):
        at = (o * cells + t) * stride
        for i in range(stride):
            if classes[at + i] != classes[at + stride + i]:
                return True
    return False
