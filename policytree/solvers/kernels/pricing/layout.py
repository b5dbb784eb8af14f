"""Row duals are priced over boxes: the terms and the tuples.

A leaf of any tree is a *box*: the rows whose code lies in an interval of codes, for every feature. Let every row i have
a dual u(i), and let p be the largest of u(L) - loss_k(L) over all boxes L and actions k. Then a tree of h leaves loses
at least sum(u) - h p. *Pricing* an action finds that maximum: with the *reduced costs* r(i) = u(i) - loss_k(i), the box
of largest sum. Duals and reduced costs are integers, so the maximum is exact.

The search branches on pairs of boxes, an outer and an inner one, for all features but two, and considers the boxes
between them. A row is *inside* if it is in the inner box, and *open* if it is in the outer one only. The two features
that are left have a table with one cell for each pair of codes, of the sums of r over the rows inside and of max(r, 0)
over the open rows. No box between the two has a larger sum than the best rectangle of that table. A rectangle that
exceeds the bound is a *witness* that the pair cannot be pruned yet.

Symbols: F features outside the table; P rows and A columns of the table; n rows; M boxes that are kept.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.layout import codes_2d, i8, int_1d, int_2d, long_1d, long_2d, long_3d

# Places in the state of a search: the pair of boxes on top, boxes kept, the largest sum, rows looked at, and rows
# inside the pair that was entered last.
TOP, KEPT, LARGEST_SUM, SEEN, N_ENTERED = range(5)
N_STATE = 5
# Ends of intervals; where nothing is in the inner box yet, its interval is (NOWHERE, -1).
OUTER_LOW, OUTER_HIGH, INNER_LOW, INNER_HIGH = 0, 1, 2, 3
NOWHERE = 1 << 30
# Numbers of a level: rows inside its parent, rows inside, rows inside or open, whether its parts were made, its
# witness, and the sum of the rows inside that are in the witness.
N_BEFORE, N_INSIDE, N_ALL, DONE, FIRST_ROW, LAST_ROW, FIRST_COLUMN, LAST_COLUMN, INSIDE_SUM = range(9)
N_NUMBERS = 9


class BoxRows(NamedTuple):
    """The rows, and where each stands in the table."""

    codes: codes_2d  # (F, n)
    row: int_1d
    column: int_1d
    cell: int_1d  # its place in tables
    height: i8  # P
    width: i8  # A


class BoxStack(NamedTuple):
    """One level for every pair of boxes that is still to be looked at.

    A level counts the rows inside its parent, and lists the others alone:

        inside the parent     come inside here        open
        |----- N_BEFORE -----|
        |--------------- N_INSIDE ----------------|
        |-------------------------- N_ALL --------------------------|
                             index[level, 0] ...
    """

    index: int_2d  # (levels, n): rows inside that are not inside the parent, then open ones
    ends: long_3d  # (levels, F, 4)
    numbers: long_2d  # (levels, N_NUMBERS)


class BestBoxes(NamedTuple):
    """The boxes with the largest sums: a heap, the least of them first."""

    sums: long_1d  # (M,)
    boxes: long_3d  # (M, F + 2, 2): first and last code of every feature, those of the table last


class BoxScratch(NamedTuple):
    """Work space of one pair of boxes."""

    entered: int_1d  # (n,): rows inside, in the order in which the levels below took them in
    inside: long_1d  # (A * stride_of(P),): their reduced costs, by column and row of the table
    table: long_2d  # (A + 1, stride_of(P)): the same with open rows, sums of the rows before each, by column
    of_row: long_1d  # (stride_of(P),): the best run of columns of every row of the table
    best: long_1d  # (stride_of(P),): the best run of columns of rows up to each
    rectangle: long_1d  # (5,): first and last row, first and last column, sum
    picked: int_1d  # (n + 1,): some open rows
    by_code: long_1d  # their reduced costs for every code of one feature
