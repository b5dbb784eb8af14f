"""Proofs without a depth limit: depth first within thresholds, over subsets of rows.

A set works on the split whose two sides' bounds have the least sum, on the side with the wider gap, and lets it run
until that sum passes the second least by ``slack``, the set's best tree, or its cutoff. So the search goes where the
bound is weakest, and comes back as soon as another split is weaker: an AO* search that keeps one path and a table
(Korf's recursive best first search, for trees).

Bounds of a set R, of which V(R) is the value, beside those from its sums (bounds.py):

    siblings   V(R') >= V(R) - worst(R without R') + floor(R' without R) for any two sets: R's sums hold what it shares
               with each side R' of its parent, so every result improves all siblings at no cost. Where leaves have
               minima, or splits a price, a tree for R' may not do for R, and the bound is not used
    known      what the table holds
    worth      dual variables of rows, where they are known
    intervals  the value itself where one feature is left: any intervals of its values are a tree
    ahead      both bounds of every side from its own splits: exact for up to two leaves, one level deeper for more
    conflicts  pairs of rows that no leaf serves both (conflicts/layout.py), for the set and both sides of every split

Cost: sums (index_sets.py, bit_sets.py), a few passes over the splits, and two looks into the table for each; some
rounds over the pairs of rows within the set.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.addresses import loaded
from policytree.solvers.kernels.base.layout import FIT_PAIRS, INF, LOOK_AHEAD, SIMILAR, STOP, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.conflicts.fit import ALLOWANCE, SLOTS, TOTAL, call_fit_numbers
from policytree.solvers.kernels.depth_two.interval_dp import best_intervals
from policytree.solvers.kernels.subsets.bit_sets import bits_set, descend_bits, look_ahead_bits, name_bits, sum_bits
from policytree.solvers.kernels.subsets.bounds import bound_set, bound_sides, bound_sides_by_duals, first_minimum
from policytree.solvers.kernels.subsets.index_sets import descend_lists, look_ahead_lists, sum_lists
from policytree.solvers.kernels.subsets.layout import (
    BEST,
    CLOSED,
    CUTOFF,
    ENTERED,
    INTERVALS,
    KEPT,
    LEAST,
    N_PLACES,
    N_ROWS,
    PLACE,
    SET_KEY1,
    SET_KEY2,
    SIDE,
    SPLIT,
    STUCK,
    SUMMED,
    TOTAL_WORST,
    UNSPLIT,
    Bits,
    Lists,
    SearchState,
)
from policytree.solvers.kernels.subsets.table import is_full, is_known, keep, least_two, place_of, tighten, wider_side

MOST_PAIR_WORDS = 1 << 26  # words of pairs of bits, beyond which the sides are rather entered: some milliseconds
WORDS_OF_A_PAIR = 8  # what a pair costs beside its words, in words
MOST_PAIR_WORK = 1 << 15  # vectors added to sums of pairs of lists, beyond which the sides are rather entered
FEW_COLUMNS = 40
SPARE_OF_FEW, SPARE_OF_MANY = 16, 1  # quarters of a price beyond the cutoff that columns may cost to be open
ROUNDS = 15  # of primal-dual steps for conflict pairs, which begin where those of the subset before ended
WORK_OF_ROUNDING = 8  # in rounds
WORK_OF_A_SPLIT = 16  # beside its sums, in pairs of a row and a split


@kernel(borrows=True)
def keeps_minima(rules, scratch, t):
    """Whether both sides of a column have what a leaf must have."""
    first = first_minimum(rules)
    for m in range(rules.n_minima):
        on = scratch.on[first + m, t]
        if on < rules.minima[m] or scratch.total[first + m] - on < rules.minima[m]:
            return False
    return True


@kernel(borrows=True)
def drop_useless(rules, path, scratch, d):
    """Keep the splits that part the set, as no other does, into sides of which each may have a leaf that pays.

    Where not every column may split all rows, a leaf beside the rest of the tree is the price of an allowed one; where
    splits cost something, it spares its rows the questions below. There a leaf need not pay by itself.
    """
    s, places, useful = path.scalars[d], path.places[d], scratch.useful
    on = scratch.on[rules.n_sums - 1]
    every = scratch.total[rules.n_sums - 1]
    kept = 0
    for j in range(s[N_PLACES]):
        t = places[j]
        # A feature's columns stand side by side in ascending order of cuts. Their sides 1 are nested, so that two of
        # equal size are the same set. A column t - 1 that was dropped before was of no use, or the same as the one
        # before it; what is so in a set is so in all its parts.
        same = t > 0 and rules.feature[t - 1] == rules.feature[t] and on[t - 1] == on[t]
        pays = useful[0, t] and useful[1, t]
        if rules.charges > 0 or (d == 0 and rules.root_is_bound):
            pays = keeps_minima(rules, scratch, t)
        if pays and 0 < on[t] < every and not same:
            places[kept] = t
            kept += 1
    s[N_PLACES] = kept


@kernel(borrows=True)
def price_splits(rules, path, scratch, d):
    """Set the price of every split of level d; at the root, forbidden ones cost more than any tree."""
    for j in range(path.scalars[d, N_PLACES]):
        t = path.places[d, j]
        path.cost[d, t] = scratch.total[rules.charges + rules.groups[t]] if rules.charges > 0 else 0
        if d == 0 and not rules.at_root[t]:
            path.cost[d, t] = INF


@kernel(separate=True)
def cost_of_intervals(rules, path, scratch, d):
    """Return the cost of the best intervals of level d's only feature left, if splits are free."""
    places = path.places[d, : path.scalars[d, N_PLACES]]
    P, C = rules.n_losses, rules.n_minima
    sums, counts = np.zeros((len(places) + 2, P + 1), np.int64), np.zeros((len(places) + 2, C), np.int64)
    first = first_minimum(rules)
    for j in range(len(places) + 1):
        for q in range(rules.n_sums):
            ahead = scratch.total[q]
            if j < len(places):
                ahead -= scratch.on[q, places[j]]
            if q < P:
                sums[j + 1, q + 1] = ahead
            elif first <= q < first + C:
                counts[j + 1, q - first] = ahead
    return best_intervals(sums, counts, rules.minima, rules.penalty, len(places) + 1)[0]


@kernel(borrows=True)
def try_intervals(rules, path, scratch, d):
    """Solve the set of level d by dynamic programming if one feature is left, and splits of it are free."""
    s, n = path.scalars[d], path.scalars[d, N_PLACES]
    if n < 2 or rules.charges > 0 or (d == 0 and rules.root_is_bound) or s[LEAST] >= min(s[CUTOFF], s[BEST]):
        return
    f = rules.feature[path.places[d, 0]]
    if f == rules.feature[path.places[d, n - 1]]:
        value = cost_of_intervals(rules, path, scratch, d)
        if value < s[BEST]:
            s[BEST] = value
            s[SPLIT] = INTERVALS - f
        s[LEAST] = s[BEST]


@kernel(borrows=True)
def enter_set(lists, bits, state, d, siblings):
    """Sum up the set of level d and bound the sides of its splits; those that are of no use in any part of it go."""
    rules, path, table, scratch = state.rules, state.path, state.table, state.scratch
    s = path.scalars[d]
    if bits is not None:
        sum_bits(bits, scratch, d)
    if lists is not None:
        sum_lists(lists, rules, path, scratch, d)
    leaf, least = bound_set(rules, scratch.total)
    known = table[place_of(table, s[SET_KEY1], s[SET_KEY2])]
    s[BEST] = leaf
    s[SPLIT] = UNSPLIT
    s[TOTAL_WORST] = scratch.total[rules.n_losses + 1]
    if is_known(known):
        least = max(least, known.low)
        if known.up < leaf:
            s[BEST] = known.up
            s[SPLIT] = known.split
    s[LEAST] = least
    from_parent = siblings and not (d == 0 and rules.root_is_bound)
    bound_sides(rules, path, scratch, d, least if from_parent else -INF)
    bound_sides_by_duals(rules, path, scratch, d)
    drop_useless(rules, path, scratch, d)
    price_splits(rules, path, scratch, d)
    note_best(path, d)
    try_intervals(rules, path, scratch, d)


@kernel(borrows=True)
def pairs_pay(lists, bits, path, d):
    """Whether sums over pairs of columns cost less than the sets that they save."""
    s = path.scalars[d]
    if bits is not None:
        return s[N_PLACES] * s[N_PLACES] * (WORDS_OF_A_PAIR + s[N_ROWS]) < MOST_PAIR_WORDS
    if lists is not None:
        return lists.pairs.size > 0 and s[N_ROWS] * lists.pair_work < MOST_PAIR_WORK
    return False


@kernel(borrows=True)
def order_columns(path, scratch, d, penalty):
    """Put the live columns in order, the open ones last, and return how many the others are.

    A column is open if a tree that splits on it first may be better than what the set is known to cost, and cost no
    more than it may. Some cost a little more, as what is proved of them may save another visit: of few columns many,
    of many columns those that cost next to nothing more, since every look at a column is a look at all pairs of it.
    """
    s, cost, order = path.scalars[d], path.cost[d], scratch.order
    low = path.low[d]
    spare = SPARE_OF_FEW if s[N_PLACES] <= FEW_COLUMNS else SPARE_OF_MANY
    most = min(s[BEST], s[CUTOFF] + spare * penalty // 4)
    closed, end = 0, s[N_PLACES]
    for j in range(end):
        t = path.places[d, s[N_PLACES] - 1 - j]
        if low[0, t] + low[1, t] + cost[t] < most:
            end -= 1
            order[end] = t
        else:
            order[closed] = t
            closed += 1
    return closed


@kernel(borrows=True)
def look_ahead(lists, bits, state, d):
    """Improve the bounds of the sides of every open column by their own splits; returns the work it took."""
    path, scratch = state.path, state.scratch
    s = path.scalars[d]
    first_open = order_columns(path, scratch, d, state.rules.penalty)
    n_open = s[N_PLACES] - first_open
    if n_open == 0:
        return 0
    scratch.pair_low[:] = INF
    scratch.pair_up[:] = INF
    if bits is not None:
        look_ahead_bits(state, bits, d, first_open)
    if lists is not None:
        look_ahead_lists(state, lists, d, first_open)
    for v in range(2):
        low, up = path.low[d, v], path.up[d, v]
        for k in range(first_open, s[N_PLACES]):
            j = scratch.order[k]
            t = j if bits is None else k  # bits: in the order of columns; lists: at the column
            # A side is a leaf, whose cost ``up`` does not exceed, or it is split, which costs ``pair_low`` at least.
            low[j] = max(low[j], min(up[j], scratch.pair_low[v, t]))
            up[j] = max(low[j], min(up[j], scratch.pair_up[v, t]))
    note_best(path, d)
    return n_open * s[N_PLACES] * (1 + s[N_ROWS] // 8)


@kernel(borrows=True)
def list_rows(lists, bits, conflicts, d, n):
    """List the rows of the set of level d that lose by some action, in ``conflicts.rows``; returns how many."""
    rows, found = conflicts.rows, 0
    if lists is not None:
        for k in range(n):
            rows[k] = lists.index[d, k]
        found = n
    if bits is not None:
        for q in range(n):
            x, first = bits.value[d, q], 64 * np.int64(bits.where[d, q])
            while x != 0:
                rest = x & (x - np.uint64(1))
                row = conflicts.of_bit[first + bits_set((x ^ rest) - np.uint64(1))]
                x = rest
                if row >= 0:
                    rows[found] = row
                    found += 1
    return found


@kernel(separate=True, borrows=True)
def bound_by_pairs(lists, bits, state, d, from_parent, fewest, control):
    """Bound the set of level d and the sides of its splits; returns the work it took.

    All trees of fewer leaves than ``fewest`` are known to cost no less than the set's best tree or its cutoff. A side
    is a leaf, which its upper bound knows, or has two leaves at least; with ``from_parent`` the set's bound holds for
    its parts. Bounds grow with the number h of leaves (conflicts/layout.py): h is ``fewest`` for the set, 2 for sides.
    """
    rules, path, conflicts = state.rules, state.path, state.conflicts
    s, penalty = path.scalars[d], rules.penalty
    n = list_rows(lists, bits, conflicts, d, s[N_ROWS])
    codes = call_fit_numbers(
        loaded(control, FIT_PAIRS),
        (conflicts, n, path.places[d], s[N_PLACES], rules.feature, rules.cut, penalty, fewest, ROUNDS),
    )
    allowance, total, K = conflicts.result[ALLOWANCE], conflicts.result[TOTAL], conflicts.result[SLOTS]
    bound = state.scratch.total[rules.n_losses] + fewest * penalty + total - (fewest - 1) * allowance
    s[LEAST] = max(s[LEAST], min(bound, min(s[BEST], s[CUTOFF])))
    low, up, floor, worst = path.low[d], path.up[d], path.floor[d], path.worst[d]
    for k in range(K):
        t = conflicts.column[k]
        if t >= 0:
            for v in range(2):
                side = floor[v, t] + 2 * penalty - allowance + conflicts.left[v * K + k]
                if from_parent:
                    side = max(side, s[LEAST] - worst[1 - v, t])
                low[v, t] = max(low[v, t], min(up[v, t], side))
    return codes * (ROUNDS + WORK_OF_ROUNDING)


@kernel(borrows=True)
def note_best(path, d):
    """Note the split whose sides are known to cost least together, if that is the best tree so far."""
    s, cost, up = path.scalars[d], path.cost[d], path.up[d]
    for j in range(s[N_PLACES]):
        t = path.places[d, j]
        if up[0, t] + up[1, t] + cost[t] < s[BEST]:
            s[BEST] = up[0, t] + up[1, t] + cost[t]
            s[SPLIT] = t


@kernel(borrows=True)
def look_up_sides(path, d, table):
    """Take over what the table knows of the sides of splits that are still open."""
    s, cost = path.scalars[d], path.cost[d]
    low, up = path.low[d], path.up[d]
    for j in range(s[N_PLACES]):
        t = path.places[d, j]
        if low[0, t] + low[1, t] + cost[t] < min(s[CUTOFF], s[BEST]):
            for v in range(2):
                if low[v, t] < up[v, t]:
                    known = table[place_of(table, path.key1[d, v, t], path.key2[d, v, t])]
                    if is_known(known):
                        tighten(low, up, v, t, known.low, known.up)
    note_best(path, d)


@kernel(borrows=True)
def cheapest(path, d):
    """The least and the second least bound of the splits of level d, and the split that has the least."""
    return least_two(path.places[d], path.scalars[d, N_PLACES], path.low[d], path.cost[d], INF)


@kernel(borrows=True)
def is_open(path, d):
    """Whether some split of level d may lead to a tree that is of use."""
    s = path.scalars[d]
    return max(s[LEAST], cheapest(path, d)[0]) < min(s[CUTOFF], s[BEST])


@kernel(borrows=True)
def descend(lists, bits, state, d, t, side):
    """Make the rows of one side of a split the set of the next level."""
    path, rules = state.path, state.rules
    s, below = path.scalars[d], path.scalars[d + 1]
    if bits is not None:
        descend_bits(bits, below, d, t, side)
    if lists is not None:
        descend_lists(lists, rules, s, below, d, t, side)
    for j in range(s[N_PLACES]):
        path.places[d + 1, j] = path.places[d, j]
    s[PLACE] = t
    s[SIDE] = side
    below[N_PLACES] = s[N_PLACES]
    below[SET_KEY1] = path.key1[d, side, t]
    below[SET_KEY2] = path.key2[d, side, t]


@kernel(borrows=True)
def take_result(path, d, low, siblings):
    """Use what was proved of the side of level d that was worked on, for itself and for its siblings.

    Returns whether that is more than what was known of it.
    """
    s, child = path.scalars[d], path.scalars[d + 1]
    lows, ups, cost = path.low[d], path.up[d], path.cost[d]
    t, v = s[PLACE], s[SIDE]
    more = child[BEST] < ups[v, t] or low > lows[v, t]
    tighten(lows, ups, v, t, low, child[BEST])
    if ups[0, t] + ups[1, t] + cost[t] < s[BEST]:
        s[BEST] = ups[0, t] + ups[1, t] + cost[t]
        s[SPLIT] = t
    if not siblings:
        return more
    # The child's worst and floor on side ``side`` of u are those of the rows that it shares with this sibling:
    # worst(R' without R) = worst(R') - worst(shared), and floor(R without R') = floor(R) - floor(shared).
    spare = lows[v, t] - child[TOTAL_WORST]
    for j in range(s[N_PLACES]):
        u = path.places[d, j]
        for side in range(2):
            shared = path.worst[d + 1, side, u] - path.floor[d + 1, side, u]
            bound = spare + shared + path.floor[d, side, u]
            if bound > lows[side, u]:
                lows[side, u] = min(bound, ups[side, u])
    return more


@kernel(takes=(Lists, Bits, SearchState, i8, i8, i8, long_1d, long_1d), borrows=True)
def search_subsets(lists, bits, state, cutoff, slack, most, counters, control):
    """Work on the root for about ``most`` units of work; returns its bound and the cost of its best tree.

    Trees that cost ``cutoff`` or more are of no interest: work ends when the bound gets there. The root's set stands at
    level 0. Every level closes with the bounds it has when the work is done, the table is full, or the stop flag is
    raised; the next call goes on where the table says.
    """
    rules, path, table = state.rules, state.path, state.table
    siblings = rules.n_minima == 0 and rules.charges == 0 and control[SIMILAR] != 0
    ahead = rules.charges == 0 and control[LOOK_AHEAD] != 0
    d = 0
    fresh = True
    path.scalars[0, CUTOFF] = cutoff
    goes_on = True
    least = counters[ENTERED] + len(path.scalars)  # a whole path at least: then some set's bound has risen
    while True:
        s = path.scalars[d]
        if fresh:
            fresh = False
            counters[ENTERED] += 1
            counters[SUMMED] += s[N_ROWS] * s[N_PLACES] + WORK_OF_A_SPLIT * s[N_PLACES]
            enter_set(lists, bits, state, d, siblings)
            fewest = 3  # a leaf and single splits are among the upper bounds
            if ahead and s[LEAST] < min(s[CUTOFF], s[BEST]) and pairs_pay(lists, bits, path, d):
                counters[SUMMED] += look_ahead(lists, bits, state, d)
                fewest = 4
            if len(state.conflicts.pairs) > 0 and is_open(path, d):
                from_parent = siblings and not (d == 0 and rules.root_is_bound)
                counters[SUMMED] += bound_by_pairs(lists, bits, state, d, from_parent, fewest, control)
                counters[CLOSED] += not is_open(path, d)
            if is_open(path, d):
                if bits is not None:
                    name_bits(bits, path, d)
                look_up_sides(path, d, table)
        one, two, t = cheapest(path, d)
        bound = max(one, s[LEAST])
        full = is_full(table, counters[KEPT]) or d + 2 >= len(path.scalars)
        goes_on = goes_on and (counters[SUMMED] < most or counters[ENTERED] < least) and control[STOP] == 0
        if bound < min(s[CUTOFF], s[BEST]) and goes_on and not full:
            low, up = path.low[d], path.up[d]
            side = wider_side(low, up, t)
            # The side is left when its split's bound comes to the limit: then another split is weaker, or the set is
            # refuted. Its cutoff is what the other side and the split leave of that.
            limit = min(min(s[CUTOFF], s[BEST]), max(two, bound) + slack)
            path.scalars[d + 1, CUTOFF] = limit - low[1 - side, t] - path.cost[d, t]
            descend(lists, bits, state, d, t, side)
            d += 1
            fresh = True
            continue
        bound = min(bound, s[BEST])
        # Also where the table counts as full: it has room for one set of every level (exact/subset_search.py).
        counters[KEPT] += keep(table, s[SET_KEY1], s[SET_KEY2], bound, s[BEST], s[SPLIT], True)
        if d == 0:
            return bound, s[BEST]
        d -= 1
        if not take_result(path, d, bound, siblings) and goes_on:
            # A side that is worked on until work or table end gets a better bound, unless the path ends below it. The
            # same side would be chosen again and again: more work proves nothing more.
            counters[STUCK] = 1
            goes_on = False
