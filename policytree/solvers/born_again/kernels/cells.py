"""The class of every cell, as the ensemble predicts it.

For every feature and cell of it, a word of bits says which leaves of a tree can be reached: bits of all features
together leave one leaf. Scores are summed in the order in which the ensemble sums them, so that rounding is the same.

Cost: for each cell one word and K numbers for each tree; the words of all features but the last are shared by a row.
Symbols: p features, T trees, W words of a tree, K scores.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.born_again.kernels.layout import STOP, bytes_1d, i8, long_1d, long_3d, real_1d, real_2d, real_3d
from policytree.solvers.kernels.compiling import kernel

LARGEST, NONNEGATIVE, POSITIVE = 0, 1, 2  # which class scores decide for: of the largest; 1 if the only one is so


class Scores(NamedTuple):
    """What an ensemble adds up, cell by cell."""

    cells: long_1d  # (p,)
    offset: long_1d  # (p,) where a feature's cells begin in
    reach: long_3d  # (cells of all features, T, W) leaves that can be reached
    first_leaf: long_1d  # (T,) row of ``values``
    values: real_2d  # (leaves, K)
    ends: long_1d  # after which trees a partial sum ends; partial sums are added up at last
    base: real_1d  # (K,) where the sum begins
    divisor: types.float64  # of the sum
    decision: i8


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
def leaf_of(reach, row, t, shared, last):
    """Number of the leaf that a cell reaches, among those of its tree: the one bit that all features leave."""
    w = 0
    while True:
        x = reach[row, t, w]
        if last > 0:
            x &= shared[last - 1, t, w]
        if x != 0:
            return 64 * w + lowest_bit(x)
        w += 1


@kernel(takes=(Scores, bytes_1d, long_3d, long_1d, real_3d, long_1d))
def classify_cells(scores, classes, shared, index, sums, flag):
    """Classes of all cells, last feature fastest.

    shared : (p, T, W), index : (p,), sums : (2, cells of the last feature, K) work space: partial and whole sums.
    """
    cells, offset, reach, values = scores.cells, scores.offset, scores.reach, scores.values
    p, T, W, K = len(cells), reach.shape[1], reach.shape[2], values.shape[1]
    last, at, fresh = p - 1, 0, 0
    n, begin = cells[last], offset[last]
    part, total = sums[0], sums[1]
    for j in range(p):
        index[j] = 0
    while flag[STOP] == 0:
        for j in range(fresh, last):  # words of the features that changed, and after them
            row = offset[j] + index[j]
            for t in range(T):
                for w in range(W):
                    x = reach[row, t, w]
                    shared[j, t, w] = x if j == 0 else x & shared[j - 1, t, w]
        for c in range(n):
            for k in range(K):
                part[c, k] = scores.base[k]
                total[c, k] = 0.0
        group = 0
        for t in range(T):
            first = scores.first_leaf[t]
            for c in range(n):
                leaf = first + leaf_of(reach, begin + c, t, shared, last)
                for k in range(K):
                    part[c, k] += values[leaf, k]
            if t + 1 == scores.ends[group]:
                group += 1
                for c in range(n):
                    for k in range(K):
                        total[c, k] += part[c, k]
                        part[c, k] = 0.0
        for c in range(n):
            classes[at + c] = decide(total[c], scores.divisor, scores.decision)
        at += n
        fresh = last - 1
        while fresh >= 0:
            index[fresh] += 1
            if index[fresh] < cells[fresh]:
                break
            index[fresh] = 0
            fresh -= 1
        if fresh < 0:
            return


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
