"""Prices per row: words and tuples.

A leaf of any tree is a *box*: the rows whose code lies in an interval of codes, for every feature. If every row i has a
number u(i), and p is the largest of u(L) - loss_k(L) over all boxes L and actions k, then a tree of h leaves loses at
least sum(u) - h p. *Pricing* an action means to find that largest number: with the *excess* r(i) = u(i) - loss_k(i),
the box with the largest sum. u and the excess are integers, so what is found is exact.

The search goes over pairs of boxes, an outer and an inner one, for all features but two. A row is *inside* if it is
in the inner box, and *open* if it is in the outer one only. For the two features that are left there is a table of
sums with one cell for each pair of codes. Between a pair of boxes no box has more than the largest sum of a rectangle
of the table, with the excess of all rows inside and the positive excess of open rows: the *witness*.

Symbols: F features outside the table; P rows and A columns of the table; n rows; M boxes that are kept.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.layout import codes_2d, i8, int_1d, int_2d, long_1d, long_2d, long_3d

# Places in the state of a search: the pair of boxes on top, boxes kept, the largest sum, rows looked at.
TOP, KEPT, LARGEST_SUM, SEEN = 0, 1, 2, 3
# Ends of intervals; where nothing is in the inner box yet, its interval is (NOWHERE, -1).
OUTER_LOW, OUTER_HIGH, INNER_LOW, INNER_HIGH = 0, 1, 2, 3
NOWHERE = 1 << 30
# Numbers of a level: rows inside, rows inside or open, whether its parts were made, and its witness.
N_INSIDE, N_ALL, DONE, FIRST_ROW, LAST_ROW, FIRST_COLUMN, LAST_COLUMN = range(7)
N_NUMBERS = 7


class BoxRows(NamedTuple):
    """The rows, and where each stands in the table."""

    codes: codes_2d  # (F, n)
    row: int_1d
    column: int_1d
    height: i8  # P
    width: i8  # A


class BoxStack(NamedTuple):
    """One level for every pair of boxes that is still to be looked at."""

    index: int_2d  # (levels, n): rows inside, then open ones
    ends: long_3d  # (levels, F, 4)
    numbers: long_2d  # (levels, N_NUMBERS)


class BestBoxes(NamedTuple):
    """The boxes with the largest sums: a heap, the least of them first."""

    sums: long_1d  # (M,)
    boxes: long_3d  # (M, F + 2, 2): first and last code of every feature, those of the table last


class BoxScratch(NamedTuple):
    """Work space of one pair of boxes."""

    table: long_2d  # (P, A)
    run: long_1d  # (A,): sums of some rows of the table
    positive: long_1d  # (P,): positive cells of every row of the table
    rectangle: long_1d  # (5,): first and last row, first and last column, sum
    picked: int_1d  # (n + 1,): some open rows
    by_code: long_1d  # their excess for every code of one feature
