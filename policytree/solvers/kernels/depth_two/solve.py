"""The best tree of depth two, by tables over pairs of features.

    1. round the losses to int32 (base/sums.py)
    2. two-valued features: one block of pair sums (binary_pairs.py); other pairs: a table each (pair_tables.py)
    3. the value of every first split (first_splits.py)
    4. evaluate in int64 what rounding leaves open, the most promising first
    5. pairs too long for a table: :func:`long_pairs`, in long_pairs.py

Cost: O(p^2 (n + B^2)) for features of few codes.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import (
    FEASIBLE,
    FORBIDDEN,
    INF,
    STOP,
    Rounded,
    Rows,
    Rules,
    SecondSplits,
    Special,
    Sums,
    flags_1d,
    i8,
    int_3d,
    long_1d,
    long_2d,
)
from policytree.solvers.kernels.base.sums import (
    costly,
    node_sums,
    round_planes,
    rounded_sums,
    rounding_range,
)
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.binary_pairs import (
    block_scratch,
    block_size,
    make_block,
    mark_near_in_block,
    no_block,
    scan_block,
)
from policytree.solvers.kernels.depth_two.charges import sum_charges, units_of_charges
from policytree.solvers.kernels.depth_two.first_splits import (
    OwnSplits,
    exact_value,
    first_split_values,
    own_splits,
    second_split,
)
from policytree.solvers.kernels.depth_two.level_tables import bounds_with_levels, level_seconds
from policytree.solvers.kernels.depth_two.pair_tables import TableScratch, fill_and_scan, is_signed, table_pays
from policytree.solvers.kernels.depth_two.sparse_tables import list_all_others
from policytree.solvers.kernels.depth_two.tiles import TILE


class FirstSplits(NamedTuple):
    """For every feature as the first split: a bound of the tree's value (INF: none), and the cut that has it."""

    values: long_1d
    cuts: long_1d


class Found(NamedTuple):
    """A tree of depth two: its value, and its first split (feature -1: a leaf)."""

    value: i8
    feature: i8
    cut: i8


class PairWork(NamedTuple):
    """Splits and sums of all pairs of features, and work space."""

    rounded: Rounded
    sums: Sums  # of single features
    splits: SecondSplits  # behind the features' places: of chosen cuts only
    own: OwnSplits
    tables: TableScratch
    exact: long_2d  # scratch of exact_value
    wanted: flags_1d  # (4 p): its second features for the cut at hand, and for the best tree
    seconds: int_3d  # (p, 2, TILE): the least losses of chosen cuts' sides by every second feature without a table;
    # none if tables are exact, so that nothing is evaluated twice
    long: flags_1d  # features of a pair that is too long for a table
    ordered: i8  # codes of features from this one on are levels, of which a split divides any from the others


@kernel(borrows=True)
def find_long(rows, rules, long):
    """Mark the features of pairs that are too long for a table; returns the cells of the largest table."""
    bins = rows.bins
    cells = 1
    for f in range(len(bins)):
        long[f] = False
    for f in range(len(bins)):
        for g in range(f + 1, len(bins)):
            if table_pays(bins[f], bins[g], rows.n, is_signed(rules)):
                cells = max(cells, bins[f] * bins[g])
            else:
                long[f] = True
                long[g] = True
    return cells


@kernel(separate=True)
def prepare_pairs(rows, rules, widest, n_block, ordered):
    """Round the losses, sum them up by single features, and make room."""
    p = len(rows.bins)
    S, J, K = rows.offset[p], max(rules.prices, 1), rules.n_losses + len(rules.minima)
    long = np.empty(p, np.bool_)
    cells = find_long(rows, rules, long)
    any_long = False
    for f in range(p):
        any_long = any_long or long[f]
    rounded = round_planes(rows, rules)
    end = J * (S + TILE)
    return PairWork(
        rounded,
        Sums(rounded_sums(rows, rounded), sum_charges(rows, rules, units_of_charges(rows, rules), no_block())),
        SecondSplits(np.full(end, 2 * FORBIDDEN, np.int32), np.full(end, 2 * FORBIDDEN, np.int32)),
        own_splits(widest, rules),
        TableScratch(np.empty((2, cells * K), np.int32), np.empty((4, max(widest, n_block + 1)), np.int32)),
        np.empty((widest + 1, 2 * (K + rules.prices)), np.int64),
        np.ones(4 * p, np.bool_),
        np.empty((p if any_long and rounded.error > 0 else 0, 2, TILE), np.int32),
        long,
        ordered,
    )


@kernel(separate=True)
def fill_tables(rows, rules, work, n_block, control, special):
    """Best second splits from the tables of all pairs that have one; False if stopped."""
    bins = rows.bins
    p = len(bins)
    others = list_all_others(rows, n_block < p)
    ordered = None if special is None else work.ordered
    for f in range(p):
        for g in range(p):
            if control[STOP] != 0:
                return False
            B = bins[f]
            if n_block > 0 and B == 2 and bins[g] == 2:
                continue
            if special is not None and max(f, g) >= work.ordered and not (work.long[f] or work.long[g]):
                continue  # level_seconds has these
            if table_pays(B, bins[g], rows.n, is_signed(rules)) and (bins[g] > B or (bins[g] == B and f < g)):
                fill_and_scan(f, g, rows, work.rounded, rules, work.sums, others, work.tables, work.splits, ordered)
    return True


@kernel(separate=True, borrows=True)
def mark_near_of_tables(f, t, rows, rules, work, block, least):
    """Mark the second features that may be best below cut ``t`` of f, in exact numbers; ``least`` is scratch of two.

    Where many features have two values, most second splits are by one of these, and their block tells which of them
    come near the best; of tables, only the best split is known.
    """
    work.wanted[:] = True
    if costly(rules):
        return
    o = rows.offset[f]
    a, last = o + t, o + rows.bins[f] - 1
    for j in range(len(block.features)):
        if block.features[j, 0] != f:
            continue
        least[0] = second_split(1, work.splits.low, a, 0, work.sums.charges, 0, a, -1, work.rounded.shift)
        least[1] = second_split(1, work.splits.high, a, 0, work.sums.charges, 0, last, a, work.rounded.shift)
        slack = rounding_range(work.rounded, rows.n)
        wanted = work.wanted[: 2 * len(rows.bins)]
        mark_near_in_block(block, j, work.sums.leaves, last, rules, least, work.rounded.shift, wanted, slack)
        return


@kernel(separate=True)
def best_first_split(rows, rules, leaves, work, block, first, best, control, special):
    """Evaluate the most promising first splits until no bound is below the best, or stopped; long ones are left out.

    ``block``: None if ``special`` is.
    """
    bins, offset = rows.bins, rows.offset
    p = len(bins)
    error = work.rounded.error
    values = np.full(offset[p], INF, np.int64)
    by_leaves = np.empty(4, np.int64)
    first_split_values(work.sums, work.splits, rows, rules, work.rounded.shift, leaves, work.own, work.long, values,
                       by_leaves)  # fmt: skip
    for t in range(offset[p]):
        if values[t] < FEASIBLE:
            values[t] -= error
    if special is not None and work.ordered < p:
        bounds_with_levels(rows, rules, leaves, work, level_seconds(rows, work.ordered, work.long), values)
    for f in range(p):
        if work.long[f]:
            continue
        for t in range(offset[f], offset[f + 1] - 1):
            if values[t] < first.values[f]:
                first.values[f] = values[t]
                first.cuts[f] = t - offset[f]
    ordered = None if special is None else work.ordered
    least = np.empty(2, np.int64)
    while control[STOP] == 0:
        f = -1
        for g in range(p):
            if not work.long[g] and first.values[g] < best.value and (f < 0 or first.values[g] < first.values[f]):
                f = g
        if f < 0:
            return best
        t = first.cuts[f]
        value = first.values[f]
        if error > 0:
            if special is not None:
                mark_near_of_tables(f, t, rows, rules, work, block, least)
            value = exact_value(rows, rules, leaves, f, t, work.wanted, work.exact, ordered)
        if value < best.value:
            best = Found(value, f, t)
        if error == 0:
            continue
        values[offset[f] + t] = value
        first.values[f] = INF
        for u in range(offset[f], offset[f + 1] - 1):
            if values[u] < first.values[f]:
                first.values[f] = values[u]
                first.cuts[f] = u - offset[f]
    return best


@kernel(separate=True)
def scan_two_valued(rows, rules, work, n_block):
    """Best second splits among two-valued features, from their block, which is returned."""
    block = make_block(rows, work.rounded, rules, n_block)
    totals = np.empty(rules.n_losses + len(rules.minima), np.int32)
    for k in range(len(totals)):
        totals[k] = work.sums.leaves[k, rows.bins[0] - 1]
    scan_block(block.sums, totals, block, rows, rules, block_scratch(rows, rules, block), work.splits)
    return block


@kernel(takes=(Rows, Rules, i8, FirstSplits, long_1d, Special), separate=True)
def short_pairs(rows, rules, leaves, first, control, special):
    """Best tree of depth two whose first split is by a feature that is not long.

    Returns
    -------
    best : Found
        Of at most three leaves, if ``leaves`` is 3.
    finished : bool
        False if stopped: the best is what was found so far.
    any_long : bool
        Whether :func:`long_pairs` has to follow.
    work : PairWork
        For it.

    ``first`` takes the values of all first splits. ``special``: None if tables are all that is needed; otherwise one,
    and one more for every feature whose codes are levels. These stand last; what their first splits are worth is found
    elsewhere (kernels/level_groups/). They need one signed loss, and splits that cost nothing.
    """
    p = len(rows.bins)
    leaf, _ = node_sums(rows, rules)
    best = Found(leaf + rules.penalty, -1, -1)
    widest = 1
    for f in range(p):
        first.values[f] = INF
        first.cuts[f] = -1
        widest = max(widest, rows.bins[f])
    n_block = 0 if special is None else block_size(rows, rules)
    work = prepare_pairs(rows, rules, widest, n_block, p if special is None else p + 1 - special)
    any_long = False
    for f in range(p):
        any_long = any_long or work.long[f]
    block = None if special is None else no_block()
    if special is not None and n_block > 0:
        block = scan_two_valued(rows, rules, work, n_block)
    if not fill_tables(rows, rules, work, n_block, control, special):
        return best, False, any_long, work
    best = best_first_split(rows, rules, leaves, work, block, first, best, control, special)
    return best, control[STOP] == 0, any_long, work
