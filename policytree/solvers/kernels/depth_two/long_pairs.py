"""Depth two where a first feature has so many codes that tables over pairs do not pay.

32 cuts of the feature are solved at a time, side by side in one pass over sorted rows (tiles.py; for more than two
actions or counted rows plane_tiles.py, and class_tiles.py where most losses are zero). Cuts between them are refuted by
similarity bounds (open_cuts.py), until no cut is left. Columns that are parts of one feature are searched as one where
whole problems have depth two (whole_columns.py).

Cost: rounds x features x n; three or four rounds are usual.
Symbols: see base/layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import FEASIBLE, INF, SIMILAR, STOP, Bounds, Rows, Rules, i8, long_1d
from policytree.solvers.kernels.base.sums import price_below, rounding_range, two_leaves
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.class_tiles import make_class_tiles, scan_classes
from policytree.solvers.kernels.depth_two.first_splits import exact_value, second_split
from policytree.solvers.kernels.depth_two.open_cuts import (
    Chosen,
    LiveCuts,
    choose_first,
    choose_live,
    list_live,
    spread_live,
)
from policytree.solvers.kernels.depth_two.pair_tables import is_signed, table_pays
from policytree.solvers.kernels.depth_two.plane_tiles import (
    NearSeconds,
    TileCuts,
    make_plane_tiles,
    planes_pay,
    scan_planes_of,
)
from policytree.solvers.kernels.depth_two.rounding_errors import LEAST_ROWS, make_row_errors, side_error
from policytree.solvers.kernels.depth_two.similarity_bounds import cumulate_values, row_values
from policytree.solvers.kernels.depth_two.solve import FirstSplits, Found, PairWork, short_pairs
from policytree.solvers.kernels.depth_two.tiles import TILE, make_tiles, scan_tiles
from policytree.solvers.kernels.depth_two.whole_columns import (
    as_one,
    as_parts,
    keep_first,
    no_first_splits,
    whole_columns,
    work_of_whole,
)


@kernel
def room_for_cuts(rows, values, long, limit):
    """Empty lists of live cuts of all long features, with what rows may come to, and of chosen ones.

    ``values``: see :func:`~policytree.solvers.kernels.depth_two.similarity_bounds.row_values`.
    """
    p = len(rows.bins)
    S = rows.offset[p]
    bounds = Bounds(np.empty(S, np.int64), np.empty(S, np.int64), np.empty(S, np.int64), np.empty(S, np.int64))
    live = LiveCuts(np.empty(S, np.int32), bounds, np.full(p, -1, np.int64), np.full(p, INF, np.int64))
    for f in range(p):
        if long[f]:
            cumulate_values(rows.codes[f], rows.bins[f], rows.n, values, bounds, rows.offset[f])
    cuts = np.empty((5, limit), np.int64)
    return live, Chosen(cuts[0], cuts[1], cuts[2], cuts[3], cuts[4])


@kernel(borrows=True)
def segment_rows(rows, f, chosen, n, step, kind, segment, x):
    """x[i]: how many chosen cuts of f have row i on their right, times ``step``, plus the row's kind."""
    j = 0
    for c in range(rows.bins[f]):
        while j < n and chosen.cuts[j] < c:
            j += 1
        segment[c] = j * step
    for i in range(rows.n):
        x[i] = segment[rows.codes[f, i]] + kind[i]


@kernel(separate=True, borrows=True)
def value_chosen(f, n, rows, rules, leaves, work, at, chosen, error):
    """Compute the sums of the sides of the n chosen cuts of f, and the values of the trees, less a side's ``error``."""
    splits, own = work.splits, work.own
    sums, charges = work.sums
    shift, penalty = work.rounded.shift, rules.penalty
    S = rows.offset[len(rows.bins)]
    o = rows.offset[f]
    last = o + rows.bins[f] - 1
    price, again = rows.groups[f], price_below(rows, f, f)
    for j in range(n):
        t = chosen.cuts[j]
        x, y = two_leaves(sums, rules, o + t, last)
        left = INF
        right = INF
        if x < FEASIBLE:
            x = (x << shift) + penalty - error
            v = min(second_split(own.low[t], splits.low, o + t, S, charges, again, o + t, -1, shift),
                    second_split(1, splits.low, at + j, TILE, charges, again, o + t, -1, shift))  # fmt: skip
            left = min(x, v + 2 * penalty - error)
        if y < FEASIBLE:
            y = (y << shift) + penalty - error
            v = min(second_split(own.high[t], splits.high, o + t, S, charges, again, last, o + t, shift),
                    second_split(1, splits.high, at + j, TILE, charges, again, last, o + t, shift))  # fmt: skip
            right = min(y, v + 2 * penalty - error)
        chosen.left[j] = left
        chosen.right[j] = right
        chosen.values[j] = (min(left + y, x + right) if leaves == 3 else left + right) + charges[price, last]


@kernel(borrows=True)
def mark_near(f, t, j, rows, rules, work, at, slack):
    """Mark the second features that may be best below cut ``t`` of f, the j-th of the chosen ones, in exact numbers.

    Their rounded value is within the range of rounding of the least one. Of features with a table, the best one of a
    price stands for all.
    """
    bins, splits, charges, shift = rows.bins, work.splits, work.sums.charges, work.rounded.shift
    p, S = len(bins), rows.offset[len(bins)]
    o = rows.offset[f]
    a, last = o + t, o + bins[f] - 1
    signed = is_signed(rules)
    for s in range(2):
        least = INF
        for trial in range(2):
            for g in range(p):
                price = price_below(rows, f, g)
                if g != f and table_pays(bins[f], bins[g], rows.n, signed):
                    x = splits.low[price * S + a] if s == 0 else splits.high[price * S + a]
                else:
                    x = work.seconds[g, s, j]
                value = INF
                if x <= 0:
                    paid = charges[price, a] if s == 0 else charges[price, last] - charges[price, a]
                    value = (np.int64(x) << shift) + paid
                if trial == 0:
                    least = min(least, value)
                else:
                    work.wanted[s * p + g] = value < FEASIBLE and value <= least + slack


@kernel(separate=True)
def make_exact(rows, rules, leaves, work, found, low, wanted):
    """Evaluate a tree in int64, unless its bound ``low`` says what it costs."""
    if low >= found.value:
        return found
    value = exact_value(rows, rules, leaves, found.feature, found.cut, wanted, work.exact, work.ordered)
    return Found(value, found.feature, found.cut)


@kernel(separate=True, borrows=True)
def try_chosen(f, n, rows, rules, leaves, work, at, chosen, tree, slack):
    """Compare the chosen cuts, the most promising first, with the best tree, and what it costs at least: ``tree``.

    Each costs at most ``slack`` beyond its value. Returns the best tree, and what it costs at least. Trees are
    evaluated in int64 only where rounding hides which of two is better.
    """
    best, low = tree
    here_wanted, best_wanted = work.wanted[: 2 * len(rows.bins)], work.wanted[2 * len(rows.bins) :]
    while True:
        j = 0
        for e in range(1, n):
            j = e if chosen.values[e] < chosen.values[j] else j
        value = chosen.values[j]
        if value >= best.value:
            return best, low
        chosen.values[j] = INF
        if slack > 0:
            mark_near(f, chosen.cuts[j], j, rows, rules, work, at, slack)
        here = Found(value + slack, f, chosen.cuts[j])
        # At the same bound, too, the tree may cost less. If rounding hides nothing of this feature (no slack), it may
        # still hide something of the best tree's.
        if here.value >= low and (slack > 0 or low < best.value):
            best = make_exact(rows, rules, leaves, work, best, low, best_wanted)
            low = best.value
            here = make_exact(rows, rules, leaves, work, here, value, here_wanted)
            value = here.value
        if here.value < best.value:
            best = here
            low = value
            for g in range(len(here_wanted)):
                best_wanted[g] = here_wanted[g]


@kernel(borrows=True)
def least_value(chosen, n):
    """The least value of the n chosen cuts."""
    least = chosen.values[0]
    for j in range(1, n):
        least = min(least, chosen.values[j])
    return least


@kernel(borrows=True)
def keep_values(f, n, first, chosen):
    """Note the least of the chosen cuts' values as the feature's."""
    for j in range(n):
        if chosen.values[j] < first.values[f]:
            first.values[f] = chosen.values[j]
            first.cuts[f] = chosen.cuts[j]


@kernel(borrows=True)
def close_chosen(live, chosen, o, count, n, rules, similar):
    """Spread the values of the n chosen cuts over all live ones, and strike them out."""
    left, right = live.bounds.left, live.bounds.right
    for j in range(n):
        left[chosen.at[j]] = max(left[chosen.at[j]], chosen.left[j])
        right[chosen.at[j]] = max(right[chosen.at[j]], chosen.right[j])
    if similar:
        spread_live(live, o, count, len(rules.minima) > 0)
    for j in range(n):  # solved, whatever the bounds say
        left[chosen.at[j]] = INF


@kernel(borrows=True)
def worth_proving(best, enough):
    """The bound below which cuts are looked into: above ``enough``, since it says more of other sets of rows too."""
    if best <= enough or enough == -INF:
        return min(best, enough)
    return enough + (best - enough) // 4 * 3


@kernel
def long_columns(rows, rules, leaves, first, work, best, enough, control, parts, values):
    """:func:`long_pairs` for columns as one, of the given ``parts``; ``values``: see :func:`room_for_cuts`.

    ``work.own`` has no splits by the feature of the first split: tiles see these as well.
    """
    bins, offset = rows.bins, rows.offset
    p, n, J = len(bins), rows.n, max(rules.prices, 1)
    similar = control[SIMILAR] != 0
    signed = is_signed(rules)
    limit = TILE
    slack = rounding_range(work.rounded, n)
    at = J * offset[p]
    live, chosen = room_for_cuts(rows, values, work.long, limit)
    segment = np.empty(len(work.own.low), np.uint8)
    kind = np.zeros(n, np.uint8)
    x = np.empty(n, np.uint8)
    tiles = make_tiles(rows, parts, work.rounded.planes[0], work.long, J if signed else 0)
    dense = not signed and planes_pay(work.rounded, rules, n)
    planes = make_plane_tiles(rows, rules, work.rounded, work.long, dense)
    classes = make_class_tiles(rows, rules, work.rounded, work.long, not signed and not dense)
    step = 1
    if signed and tiles.kinds > 0:
        step = tiles.kinds
        for i in range(n):
            kind[i] = work.rounded.planes[0, i] - tiles.lightest
    best_wanted = work.wanted[2 * p :]
    # What rounding hides: of any feature, until a tree of it comes near the best one. Its levels make no quarters.
    errors = np.full(p, work.rounded.error, np.int64)
    slacks = np.full(p, slack, np.int64)
    coarse = np.full(p, slack > 0 and n >= LEAST_ROWS and work.ordered >= p)
    of_rows = make_row_errors(rows, rules, work.rounded, coarse[0])
    low = best.value  # and above it, where rounding leaves open what the best tree costs
    again = True
    while again:
        again = False
        for f in range(p):
            if not work.long[f]:
                continue
            o = offset[f]
            cuts = bins[f] - 1
            paid = work.sums.charges[rows.groups[f], o + cuts]
            newly = live.count[f] < 0
            if newly:
                m = choose_first(live.bounds, o, cuts, limit, chosen.cuts)
            else:
                top = worth_proving(best.value, enough)
                m, live.count[f] = choose_live(live, f, o, live.count[f], top - paid, limit, chosen)
            if m == 0:
                continue
            again = True
            segment_rows(rows, f, chosen, m, step, kind, segment, x)
            if control[STOP] != 0:
                best = make_exact(rows, rules, leaves, work, best, low, best_wanted)
                return best, best.value, False
            if signed:
                scan_tiles(f, rows, tiles, x, work.seconds, work.splits, at)
            elif dense:
                to_cuts = TileCuts(chosen.cuts, m)
                near = NearSeconds(work.seconds, (slacks[f] >> work.rounded.shift) + 1 if slack > 0 else 0)
                scan_planes_of(f, to_cuts, rows, rules, planes, x, work.sums.leaves, near, work.splits, at)
            else:
                scan_classes(f, rows, rules, classes, x, work.seconds, work.splits, at)
            value_chosen(f, m, rows, rules, leaves, work, at, chosen, errors[f])
            if coarse[f] and least_value(chosen, m) < best.value:
                coarse[f] = False
                most = side_error(of_rows, f, rules)
                errors[f] = min(errors[f], most)
                slacks[f] = min(slack, 2 * (errors[f] + most))  # rounded.error bounds one way only: sums too large
                value_chosen(f, m, rows, rules, leaves, work, at, chosen, errors[f])
            keep_values(f, m, first, chosen)
            best, low = try_chosen(f, m, rows, rules, leaves, work, at, chosen, (best, low), slacks[f])
            if newly:
                top = worth_proving(best.value, enough)
                live.count[f] = list_live(live, f, o, cuts, chosen, m, rules, top - paid, similar)
            else:
                close_chosen(live, chosen, o, live.count[f], m, rules, similar)
    if low < enough or enough == -INF:
        best = make_exact(rows, rules, leaves, work, best, low, best_wanted)
        low = best.value
    bound = low
    for f in range(p):
        paid = work.sums.charges[rows.groups[f], offset[f + 1] - 1]
        bound = min(bound, live.dropped[f] + paid)
    return best, bound, True


@kernel(takes=(Rows, Rules, i8, FirstSplits, PairWork, Found, i8, long_1d), separate=True)
def long_pairs(rows, rules, leaves, first, work, best, enough, control):
    """Best tree of depth two, given the best whose first feature is not long (see :func:`short_pairs`).

    Cuts whose bound is ``enough`` are not looked into. Returns the best tree found, a bound of all trees, and whether
    the search was finished: False if stopped. The bound is the tree's value, or at least ``enough``; then the tree may
    cost less than its value.
    """
    for b in range(len(work.own.low)):
        work.own.low[b] = INF
        work.own.high[b] = INF
    each = np.arange(len(rows.bins) + 1)
    return long_columns(rows, rules, leaves, first, work, best, enough, control, each, row_values(rows, rules, 1))


@kernel(takes=(Rows, Rules, i8, FirstSplits, PairWork, Found, i8, long_1d), separate=True)
def long_parts(rows, rules, leaves, first, work, best, enough, control):
    """:func:`long_pairs` where columns are parts of one feature: they are searched as one."""
    values = row_values(rows, rules, 1)
    whole, parts = whole_columns(rows, work.long, work.ordered)
    work = work_of_whole(rows, rules, whole, parts, work)
    own = no_first_splits(len(whole.bins))
    best = as_one(rows, whole, parts, best)
    found, bound, finished = long_columns(whole, rules, leaves, own, work, best, enough, control, parts, values)
    keep_first(rows, whole, own, first)
    if found.feature >= 0:
        f, t = as_parts(rows, whole, found.feature, found.cut)
        found = Found(found.value, f, t)
    return found, bound, finished


@kernel(separate=True)
def depth_two(rows, rules, leaves, enough, first, control, special):
    """Best tree of at most two splits on a path; of at most three leaves, if ``leaves`` is 3.

    Returns the best tree found, a bound of all trees (the tree's value, or at least ``enough``), and whether the search
    was finished: False if stopped. ``first`` takes the values of all first splits.
    """
    best, finished, any_long, work = short_pairs(rows, rules, leaves, first, control, special)
    if special is None:
        return best, best.value, finished and not any_long  # compiled for problems that have no long features
    if finished and any_long:
        return long_pairs(rows, rules, leaves, first, work, best, enough, control)
    return best, best.value, finished
