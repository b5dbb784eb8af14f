"""The largest sum of a rectangle in a table of two features.

Sums of rows p1 .. p2 of the table are kept while p2 grows; the best run of columns in them is found in one pass
(Kadane's algorithm), and only if their positive part exceeds what is known.

Cost: P^2 A / 2 additions in vectors, and a pass of A steps for every pair of rows that could do better.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.pricing.layout import N_ALL, N_INSIDE


@kernel(separate=True)
def fill_table(rows, reduced_costs, stack, s, scratch):
    """Sums of the rows of level s; of open rows the positive ones."""
    table, index, row, column = scratch.table, stack.index[s], rows.row, rows.column
    n_inside, n_all, height, width = stack.numbers[s, N_INSIDE], stack.numbers[s, N_ALL], rows.height, rows.width
    for p in range(height):
        for a in range(width):
            table[p, a] = 0
    for q in range(n_inside):
        i = index[q]
        table[np.int64(row[i]), np.int64(column[i])] += reduced_costs[i]
    for q in range(n_inside, n_all):
        i = index[q]
        table[np.int64(row[i]), np.int64(column[i])] += max(reduced_costs[i], 0)
    of_rows = scratch.positive
    for p in range(height):
        positive = 0
        for a in range(width):
            positive += max(table[p, a], 0)
        of_rows[p] = positive


@kernel(separate=True)
def best_rectangle(rows, scratch, p1, floor, any_will_do):
    """Find the largest sum above ``floor`` of a rectangle that begins with row p1, or any sum above it.

    Returns whether there is one; the rectangle and its sum stand in ``scratch.rectangle``.
    """
    table, run, found, height, width = scratch.table, scratch.run, scratch.rectangle, rows.height, rows.width
    best = floor
    for a in range(width):
        run[a] = 0
    for p2 in range(p1, height):
        positive = 0
        for a in range(width):
            v = run[a] + table[p2, a]
            run[a] = v
            positive += max(v, 0)
        if positive <= best:
            continue
        total, start = 0, 0
        for a in range(width):
            if total <= 0:
                total = 0
                start = a
            total += run[a]
            if total > best:
                best = total
                found[0] = p1
                found[1] = p2
                found[2] = start
                found[3] = a
        if any_will_do and best > floor:
            break
    found[4] = best
    return best > floor
