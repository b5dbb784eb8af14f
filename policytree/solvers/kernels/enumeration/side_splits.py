"""One side of a first cut: its sums, its best tree of depth one, and its splits within a budget.

For lists of trees near the best one; see tied_trees.py. Two cuts of one feature are one question at a node if they
divide its rows alike.

Cost: a sum over S places for every plane; sorting the splits that are within the budget.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import INF, flags_1d, long_1d, long_2d
from policytree.solvers.kernels.base.sums import costly
from policytree.solvers.kernels.compiling import kernel

#: Kinds of columns (see :func:`rows_to_exceed`): of a feature that no row misses, or with missing values on the right;
#: with missing values on the left; a category against the rest; missing values against the rest; a category and missing
#: values against the rest; one that never asks anything of its own.
PLAIN, MISSING_LEFT, CATEGORY, MISSING, OR_MISSING, IDLE = 0, 1, 2, 3, 4, 5


class Questions(NamedTuple):
    """Questions of the columns, as far as several may ask the same at a node, and the ones that may come first."""

    kind: long_1d  # (p,)
    missing: long_1d  # (p,) a place: rows beyond it (MISSING_LEFT) or up to it miss the feature; -1: none do
    category: long_1d  # (p,) the place up to which rows have the column's category
    begin: long_1d  # (p,) the columns that ask for the feature's categories, from here
    end: long_1d  # (p,) to before here
    first: flags_1d  # (p,)


class Side(NamedTuple):
    """Sums of the rows on one side of a first cut: cumulated over every feature's codes, and of all its rows."""

    sums: long_2d  # (losses, counts, charges, rows; S)
    total: long_1d


@kernel
def rows_to_exceed(questions, side, rows, f):
    """How many rows a cut of column f must exceed on its left to ask what no column before it asks; all: none does.

    Where no row misses the feature, all columns of a number ask the same. Where some do, a cut that has them alone on
    one side is the one that asks for them. Of two categories, or one and missing values, one is enough to ask for.
    """
    kind = questions.kind[f]
    if kind == PLAIN:
        return 0
    counted = side.sums[len(side.total) - 1]
    n = side.total[len(side.total) - 1]
    if kind == MISSING_LEFT:
        missing = n - counted[questions.missing[f]]
        return missing if missing > 0 else n
    missing = counted[questions.missing[f]] if questions.missing[f] >= 0 else 0
    if kind == IDLE or (kind != MISSING and counted[questions.category[f]] == 0) or (kind != CATEGORY and missing == 0):
        return n
    present = 0  # categories, as far as it matters how many
    is_first = False
    for g in range(questions.begin[f], questions.end[f]):
        if counted[rows.offset[g]] > 0:
            is_first = is_first or (present == 0 and g == f)
            present += 1
            if present == 3:
                break
    if kind == CATEGORY:
        return 0 if missing > 0 or present > 2 or is_first else n
    return 0 if present > (1 if kind == MISSING else 2) else n


@kernel(inline="always")
def feasible(side, rules):
    """Whether the rows of a side may be a leaf."""
    enough = True
    for k in range(len(rules.minima)):
        enough = enough and side.total[rules.n_losses + k] >= rules.minima[k]
    return enough


@kernel(inline="always")
def cut_feasible(side, rules, at):
    """Whether the rows up to a place may be a leaf, and the others too."""
    enough = True
    for k in range(len(rules.minima)):
        s = side.sums[rules.n_losses + k, at]
        enough = enough and s >= rules.minima[k] and side.total[rules.n_losses + k] - s >= rules.minima[k]
    return enough


@kernel(inline="always")
def leaf_value(side, rules, action):
    """Return the cost of a side's rows as one leaf, penalty included."""
    return rules.penalty + (side.total[action - 1] if action > 0 else 0)


@kernel(inline="always")
def price_of(side, rules, rows, f):
    """Return the cost of a split of a side's rows on a column."""
    return side.total[rules.n_losses + len(rules.minima) + rows.groups[f]] if costly(rules) else 0


@kernel(separate=True)
def least_value(side, rows, rules, depth):
    """The best tree of depth one (or zero) for a side; INF if there is none."""
    P = rules.n_losses
    best = INF
    if feasible(side, rules):
        for a in range(P + 1):
            best = min(best, leaf_value(side, rules, a))
    if depth == 0:
        return best
    counted = side.sums[len(side.total) - 1]
    n = side.total[len(side.total) - 1]
    for g in range(len(rows.bins)):
        o = rows.offset[g]
        least = INF
        for u in range(o, o + rows.bins[g] - 1):
            if counted[u] == 0 or counted[u] == n or not cut_feasible(side, rules, u):
                continue
            x = 0
            y = 0
            for k in range(P):
                s = side.sums[k, u]
                x = min(x, s)
                y = min(y, side.total[k] - s)
            least = min(least, x + y)
        if least < INF:
            best = min(best, least + 2 * rules.penalty + price_of(side, rules, rows, g))
    return best


@kernel(separate=True)
def splits_within(side, rows, rules, questions, cutoff, values, codes):
    """Every split of a side into two leaves of different actions within a budget, ascending; returns how many."""
    K = rules.n_losses + 1
    counted = side.sums[len(side.total) - 1]
    n = side.total[len(side.total) - 1]
    m = 0
    for g in range(len(rows.bins)):
        fixed = 2 * rules.penalty + price_of(side, rules, rows, g)
        o = rows.offset[g]
        before = rows_to_exceed(questions, side, rows, g)
        for u in range(o, o + rows.bins[g] - 1):
            c = counted[u]
            if c <= before:
                continue
            if c == n:
                break
            before = c
            if not cut_feasible(side, rules, u):
                continue
            for a in range(K):
                x = fixed + (side.sums[a - 1, u] if a > 0 else 0)
                for b in range(K):
                    y = side.total[b - 1] - side.sums[b - 1, u] if b > 0 else 0
                    if a != b and x + y <= cutoff:
                        values[m] = x + y
                        codes[m] = (u * K + a) * K + b
                        m += 1
    order = np.argsort(values[:m])
    values[:m] = values[:m][order]
    codes[:m] = codes[:m][order]
    return m


@kernel(separate=True)
def node_side(rows, rules):
    """The sums of all rows of a node."""
    p = len(rows.bins)
    Q = rules.n_losses + len(rules.minima) + rules.prices
    sums = np.zeros((Q + 1, rows.offset[p]), np.int64)
    total = np.zeros(Q + 1, np.int64)
    for i in range(rows.n):
        for q in range(Q + 1):
            total[q] += rows.planes[q, i] if q < Q else 1
    for f in range(p):
        o = rows.offset[f]
        for i in range(rows.n):
            for q in range(Q + 1):
                sums[q, o + np.int64(rows.codes[f, i])] += rows.planes[q, i] if q < Q else 1
        for q in range(Q + 1):
            for u in range(o + 1, o + rows.bins[f]):
                sums[q, u] += sums[q, u - 1]
    return Side(sums, total)
