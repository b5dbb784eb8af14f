"""Conflict pairs of a subset of rows: the bound, and the tuple that holds it.

A row that wants an action loses at least its *regret* wherever it gets another one. Let pairs of rows that want
different actions have numbers, which for no row sum up to more than its regret: then a leaf loses at least the numbers
of all pairs within it, as one row of each gets what it does not want. Let the numbers of the pairs that any cut
separates sum up to the *allowance* a at most. A tree of h leaves has h - 1 cuts, so that for a leaf penalty p >= a

    V >= floor + h p + (all numbers) - (h - 1) a,

which grows with h: it holds for all trees of at least h leaves. It holds for every subset of rows with the numbers of
the pairs within it, so one fit bounds both sides of every split.

Only cuts that a tree of use may have are limited. The best numbers are a linear programme of packing, with a constraint
for every row and every such cut. Primal-dual steps solve it (Chambolle and Pock, *Journal of Mathematical Imaging and
Vision* 40, 2011; Pock and Chambolle, ICCV 2011, for diagonal step sizes), from the numbers and prices of the subset
before. A step visits two codes of each feature that tells the rows of a pair apart, however many cuts lie between them:
sums over the codes in order give the loads of all cuts of a feature. Numbers are then rounded to integers that keep
every limit exactly, so nothing rests on how well the programme was solved.

Symbols: n rows, p features, S columns (a feature and a cut), m pairs; a *slot* is a run of codes of a feature that no
cut of use separates, so a cut lies between two slots.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import i8, int_1d, int_2d, long_1d, real_1d

if TYPE_CHECKING:  # what Python hands over for them
    bytes_1d = np.ndarray
else:
    bytes_1d = types.uint8[::1]


class Conflicts(NamedTuple):
    """Pairs of rows that want different actions, and how far they are fitted. No pairs: the bound is not used."""

    codes: int_2d  # (n, p)
    sizes: long_1d  # (p,): codes of every feature
    regret: long_1d  # (n,)
    pairs: int_2d  # (m, 2)
    start: long_1d  # (m + 1,): the features that tell the rows of pair q apart: told[start[q] : start[q + 1]]
    told: int_1d
    of_bit: int_1d  # the row of every bit, if subsets are kept as bits; -1 if another bit stands for the row
    unit: i8  # mean regret: the number 1 of a pair
    share: real_1d  # (m,): numbers as they are fitted, in units
    cut_price: real_1d  # (S,): dual variables of the columns, and of the rows
    row_price: real_1d  # (n,)
    inside: bytes_1d  # (n,): whether a row is in the subset
    rows: int_1d  # (n,): the rows that are
    kept: int_1d  # (m,): the pairs within it
    begin: long_1d  # (m + 1,): where their ends begin, and the end of the last
    ends: int_2d  # (as told, 2): first and last slot of a pair, of every feature of use that tells its rows apart
    number: long_1d  # (m,): whole numbers of these pairs
    step: real_1d  # (m,): step sizes
    features: int_1d  # (p,): those of use
    order: int_1d  # (p,): the place of a feature among them; -1 if it is of no use
    slot: int_2d  # (p, largest size): of every code of theirs
    column: int_1d  # (S + p,): the cut behind every slot; -1 behind a feature's last one
    by_slot: real_1d  # (4 * (S + p + 1),): prices, loads, and how many pairs a cut separates
    by_row: real_1d  # (2 * n,): loads, and how many pairs a row is in
    left: long_1d  # (2 * (S + p),): of what a cut may separate; then the sums within both sides of every cut
    regret_left: long_1d  # (n,)
    result: long_1d  # (3,): the allowance, the sum of all numbers, how many slots there are
