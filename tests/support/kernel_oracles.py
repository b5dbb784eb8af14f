"""Readable twins of kernels: one split, two splits, signed losses, exact sums, leaves of rows, conflict pairs."""

from fractions import Fraction

import numpy as np


def best_one_split(codes, losses):
    """Best ``code <= b`` of one column: ``(objective, b)``; ``b`` is None if the leaf is as good. No penalty."""
    best, cut = min(np.sum(losses, axis=0).tolist()), None
    for b in range(int(max(codes))):
        left = [row for code, row in zip(codes, losses, strict=True) if code <= b]
        right = [row for code, row in zip(codes, losses, strict=True) if code > b]
        if left and right:
            value = min(np.sum(left, axis=0).tolist()) + min(np.sum(right, axis=0).tolist())
            if value < best:
                best, cut = value, b
    return best, cut


def best_depth_two(codes, losses, penalty=0):
    """Best tree of depth two over the columns of ``codes`` (n, columns): every root split, every split of each side."""
    codes, losses = np.asarray(codes), np.asarray(losses)

    def at_most_one_split(rows):
        leaf = min(losses[rows].sum(axis=0).tolist()) + penalty
        stumps = [best_one_split(codes[rows, j].tolist(), losses[rows].tolist())[0] for j in range(codes.shape[1])]
        return min([leaf, *(stump + 2 * penalty for stump in stumps)])

    best = at_most_one_split(np.arange(len(codes)))
    for j in range(codes.shape[1]):
        for b in range(int(codes[:, j].max())):
            left = codes[:, j] <= b
            if left.any() and not left.all():
                best = min(best, at_most_one_split(np.flatnonzero(left)) + at_most_one_split(np.flatnonzero(~left)))
    return best


def signed_deltas(losses):
    """For two actions: what every tree pays, and ``delta = loss of action 1 - loss of action 0``.

    A leaf then costs ``sum of loss of action 0 + min(0, sum of its deltas)``.
    """
    losses = np.asarray(losses)
    assert losses.shape[1] == 2
    return losses[:, 0].sum(), losses[:, 1] - losses[:, 0]


def best_one_split_signed(codes, delta):
    """As :func:`best_one_split` from deltas alone: ``min over b of min(0, left sum) + min(0, right sum)``."""
    codes, delta = np.asarray(codes), np.asarray(delta)
    best = min(0, delta.sum())
    for b in range(int(codes.max())):
        best = min(best, min(0, delta[codes <= b].sum()) + min(0, delta[codes > b].sum()))
    return best


def exact_sum_of(values):
    """The sum of float64 numbers as a fraction."""
    return sum(map(Fraction, values), Fraction(0))


def leaf_of(codes, feature, goes_left, right):
    """The node in which a row of these codes ends, of a tree in preorder; ``feature`` is -1 in leaves."""
    node = 0
    while feature[node] >= 0:
        node = node + 1 if goes_left[node][codes[feature[node]]] else right[node]
    return node


def conflict_sums(codes, pairs, numbers, columns):
    """Numbers of pairs of rows by definition: what each row is in, what each (feature, cut) separates, and has within.

    ``codes`` is (n, features); rows of code > cut are on side 1. Returns sums by row, sums of the separated pairs by
    column, and sums of the pairs within side 0 and within side 1 by column.
    """
    of_row = [sum(x for (i, j), x in zip(pairs, numbers, strict=True) if r in (i, j)) for r in range(len(codes))]
    separated, within = [], ([], [])
    for f, cut in columns:
        sides = [(codes[i][f] > cut, codes[j][f] > cut) for i, j in pairs]
        separated.append(sum(x for (a, b), x in zip(sides, numbers, strict=True) if a != b))
        for v in range(2):
            within[v].append(sum(x for (a, b), x in zip(sides, numbers, strict=True) if a == b == v))
    return of_row, separated, within
