"""How far rounded values of a side are from exact ones at most, given the first split's feature: errors cancel.

The errors of all rows together bound that too (``Rounded.error``), but those of many rows cancel. Let e be the exact
less the rounded loss of a row under an action, E(A) the sum of e over the rows A, and m the largest abs(e) of a row
under any action. Rows in the order of a feature stand in blocks; where a block ends is a *line*. A quarter is the rows
on one side of a cut of f and one side of a cut of g. Let M be the most that m comes to in a block that a cut divides.

    Theorem    abs(E(quarter)) <= max of abs(E) over all quarters at lines + M of f / 2 + M of g / 2
    Proof      A cut of f that is no line divides one block. On one side of it m comes to half of the block's sum or
               less: move these rows to the other side of the cut, which makes it a line. No other row enters or leaves
               the quarter, so that E changes by M / 2 at most. Then the same for g.
    Corollary  A leaf costs the least of its sums under all actions, and so differs from its rounded value by its E
               under some action at most. A side has two leaves at most, so it differs by twice the theorem's bound,
               and so does the least over all second splits.

                     cut of g            line of g
                        |  . rows of one    |
            - - - - - - +  . block of g     |
              quarter   |  .                |

Both sides are meant: exact values may lie above rounded ones or below them. E at lines is found exactly.

Cost: n steps for every feature, then n for every second feature and plane, for every feature f that is asked for.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import long_1d, long_2d
from policytree.solvers.kernels.compiling import kernel

LINES = 64  # blocks of a feature's rows
LEAST_ROWS = 16384  # from which enough trees are near the best one for this to pay: their number grows with the square

codes_of_blocks = types.uint8[:, ::1]


class RowErrors(NamedTuple):
    """What rounding left out, and blocks of rows in the order of every feature."""

    errors: long_2d  # (n, actions less one): e of every row
    largest: long_1d  # m of every row
    blocks: codes_of_blocks  # (features, n)
    within: long_1d  # M of every feature


@kernel(separate=True)
def make_row_errors(rows, rules, rounded, wanted):
    """Errors and blocks of all rows; nothing if they are not ``wanted``."""
    n, p, P = rows.n if wanted else 0, len(rows.bins), rules.n_losses
    errors = np.empty((n, P), np.int64)
    largest = np.zeros(n, np.int64)
    for k in range(P):
        for i in range(n):
            errors[i, k] = rows.planes[k, i] - (np.int64(rounded.planes[k, i]) << rounded.shift)
            largest[i] = max(largest[i], abs(errors[i, k]))
    of_rows = RowErrors(errors, largest, np.empty((p, n), np.uint8), np.zeros(p, np.int64))
    if wanted:
        for f in range(p):
            of_rows.within[f] = divide_codes(rows.codes[f], rows.bins[f], of_rows.largest, of_rows.blocks[f])
    return of_rows


@kernel
def divide_codes(c, B, largest, blocks):
    """Divide the codes c of all rows into ``blocks`` of about as many rows; returns M."""
    n = len(blocks)
    counts = np.zeros(B, np.int64)
    for i in range(n):
        counts[np.int64(c[i])] += 1
    of_code = np.empty(B, np.uint8)
    codes = np.zeros(LINES, np.int64)  # those that rows have: a cut between two of them divides the block
    before = 0
    for b in range(B):
        of_code[b] = before * LINES // n
        codes[of_code[b]] += 1 if counts[b] > 0 else 0
        before += min(counts[b], n - 1 - before)  # codes without rows behind all others are in the last block
    sums = np.zeros(LINES, np.int64)
    for i in range(n):
        blocks[i] = of_code[np.int64(c[i])]
        sums[blocks[i]] += largest[i]
    most = np.int64(0)
    for a in range(LINES):
        if codes[a] > 1:
            most = max(most, sums[a])
    return most


@kernel(separate=True, borrows=True)
def largest_at_lines(grid, P):
    """The largest abs(E) of all quarters at lines; ``grid[a * LINES + b, k]`` is E of blocks a of f and b of g."""
    for a in range(LINES):
        for b in range(1, LINES):
            for k in range(P):
                grid[a * LINES + b, k] += grid[a * LINES + b - 1, k]
    for at in range(LINES, LINES * LINES):
        for k in range(P):
            grid[at, k] += grid[at - LINES, k]
    most = np.int64(0)
    end = LINES * LINES - 1
    for a in range(LINES):
        for b in range(LINES):
            for k in range(P):
                x = grid[a * LINES + b, k]
                low = grid[a * LINES + LINES - 1, k] - x
                high = grid[end - LINES + 1 + b, k] - x
                most = max(most, max(max(abs(x), abs(low)), max(abs(high), abs(grid[end, k] - low - high - x))))
    return most


@kernel(separate=True)
def side_error(of_rows, f, rules):
    """How far, either way, the rounded value of a side of any cut of f is from the exact one at most."""
    P = rules.n_losses
    errors, mine = of_rows.errors, of_rows.blocks[f]
    grid = np.empty((LINES * LINES, P), np.int64)
    most = np.int64(0)
    for g in range(len(of_rows.blocks)):
        others = of_rows.blocks[g]
        grid[:] = 0
        for i in range(len(errors)):
            at = np.int64(mine[i]) * LINES + np.int64(others[i])
            for k in range(P):
                grid[at, k] += errors[i, k]
        most = max(most, 2 * largest_at_lines(grid, P) + of_rows.within[g])
    return most + of_rows.within[f]
