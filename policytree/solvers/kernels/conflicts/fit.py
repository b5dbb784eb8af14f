"""Numbers of the conflict pairs of a subset of rows, and their sums within both sides of every cut.

Cost: a round visits the features that tell the rows of a pair apart, for every pair within the subset; rounding visits
the cuts that separate it.
Symbols: see layout.py; F features of use, K slots, q a pair within the subset.
"""

import numpy as np

from policytree.solvers.kernels.base.addresses import by_address
from policytree.solvers.kernels.base.layout import i8, int_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.conflicts.layout import Conflicts

ALLOWANCE, TOTAL, SLOTS = 0, 1, 2  # places in the result
BALANCE = 3.0  # how much longer steps of numbers are than those of prices


@kernel(borrows=True)
def lay_out_slots(conflicts, places, n_places, feature, cut):
    """Make the slots of all features that a column among these places cuts; returns how many features and slots."""
    slot, column, j, F, k = conflicts.slot, conflicts.column, 0, 0, 0
    conflicts.order[:] = -1
    while j < n_places:
        f, code = feature[places[j]], 0
        while j < n_places and feature[places[j]] == f:
            t = places[j]
            while code <= cut[t]:
                slot[F, code] = k
                code += 1
            column[k] = t
            j += 1
            k += 1
        while code < conflicts.sizes[f]:
            slot[F, code] = k
            code += 1
        column[k] = -1
        conflicts.features[F] = f
        conflicts.order[f] = F
        F += 1
        k += 1
    return F, k


@kernel(borrows=True)
def take_pairs(conflicts, n_rows, K):
    """List the pairs within the subset, with their slots and steps; count pairs by cut and row; returns how many."""
    codes, slot, order, ends = conflicts.codes, conflicts.slot, conflicts.order, conflicts.ends
    n, kept, e = len(conflicts.regret), 0, 0
    count, members = conflicts.by_slot[2 * (K + 1) : 3 * (K + 1)], conflicts.by_row[n:]
    count[:] = 0.0
    for r in range(n_rows):
        members[conflicts.rows[r]] = 0.0
    for q in range(len(conflicts.pairs)):
        i, j = conflicts.pairs[q, 0], conflicts.pairs[q, 1]
        if conflicts.inside[i] == 0 or conflicts.inside[j] == 0:
            continue
        crossed = 2.0
        conflicts.begin[kept] = e
        for h in range(conflicts.start[q], conflicts.start[q + 1]):
            f = conflicts.told[h]
            g = order[f]
            if g >= 0:
                a, b = slot[g, codes[i, f]], slot[g, codes[j, f]]
                if a != b:
                    low, high = min(a, b), max(a, b)
                    ends[e, 0] = low
                    ends[e, 1] = high
                    e += 1
                    crossed += high - low
                    count[low] += 1.0
                    count[high] -= 1.0
        members[i] += 1.0
        members[j] += 1.0
        conflicts.kept[kept] = q
        conflicts.step[kept] = BALANCE / crossed
        kept += 1
    conflicts.begin[kept] = e
    for k in range(1, K + 1):
        count[k] += count[k - 1]
    return kept


@kernel(borrows=True)
def improve_shares(conflicts, n_rows, m, F, K, limit, fewest, rounds):
    """Primal-dual steps on the numbers of m pairs; returns the allowance, ``limit`` at most, all in units.

    The programme maximises (all numbers) - (fewest - 1) * allowance. A number moves by one less the prices of the cuts
    that separate its pair and of its rows; a price, by what its limit is exceeded by.
    """
    pairs, ends, begin, kept = conflicts.pairs, conflicts.ends, conflicts.begin, conflicts.kept
    share, unit, n = conflicts.share, conflicts.unit, len(conflicts.regret)
    price, ahead = conflicts.by_slot[: K + 1], conflicts.by_slot[K + 1 : 2 * (K + 1)]
    count, load = conflicts.by_slot[2 * (K + 1) : 3 * (K + 1)], conflicts.by_slot[3 * (K + 1) : 4 * (K + 1)]
    row_load, members, row_price = conflicts.by_row[:n], conflicts.by_row[n:], conflicts.row_price
    for k in range(K):
        t = conflicts.column[k]
        price[k] = conflicts.cut_price[t] if t >= 0 else 0.0
    price[K] = 0.0
    allowance, cuts = limit, np.float64(K - F)
    for _ in range(rounds):
        total = 0.0
        for k in range(K + 1):
            ahead[k] = total
            total += price[k]
            load[k] = 0.0
        for r in range(n_rows):
            row_load[conflicts.rows[r]] = 0.0
        for q in range(m):
            i, j, old = pairs[kept[q], 0], pairs[kept[q], 1], share[kept[q]]
            reduced = 1.0 - row_price[i] - row_price[j]
            for e in range(begin[q], begin[q + 1]):
                reduced -= ahead[ends[e, 1]] - ahead[ends[e, 0]]
            most = min(conflicts.regret[i], conflicts.regret[j]) / unit
            new = min(max(old + conflicts.step[q] * reduced, 0.0), most)
            share[kept[q]] = new
            beyond = 2.0 * new - old
            if beyond != 0.0:
                row_load[i] += beyond
                row_load[j] += beyond
                for e in range(begin[q], begin[q + 1]):
                    load[ends[e, 0]] += beyond
                    load[ends[e, 1]] -= beyond
        before = allowance
        allowance = min(max(allowance + BALANCE * limit * (total - (fewest - 1)) / cuts, 0.0), limit)
        used = 0.0
        for k in range(K):
            used += load[k]
            if count[k] > 0.5:
                price[k] = max(price[k] + (used - 2.0 * allowance + before) / (count[k] * BALANCE), 0.0)
        for r in range(n_rows):
            i = conflicts.rows[r]
            if members[i] > 0.5:
                over = row_load[i] - conflicts.regret[i] / unit
                row_price[i] = max(row_price[i] + over / (members[i] * BALANCE), 0.0)
    for k in range(K):
        if conflicts.column[k] >= 0:
            conflicts.cut_price[conflicts.column[k]] = price[k]
    return allowance


@kernel(borrows=True)
def round_numbers(conflicts, n_rows, m, K, allowance):
    """Whole numbers that keep every limit: first what was fitted, then as much more as there is room for."""
    pairs, ends, begin, kept = conflicts.pairs, conflicts.ends, conflicts.begin, conflicts.kept
    left, regret_left, number = conflicts.left, conflicts.regret_left, conflicts.number
    for k in range(K):
        left[k] = allowance
    for r in range(n_rows):
        regret_left[conflicts.rows[r]] = conflicts.regret[conflicts.rows[r]]
    number[:m] = 0
    total = 0
    for more in range(2):
        for q in range(m):
            i, j = pairs[kept[q], 0], pairs[kept[q], 1]
            x = min(regret_left[i], regret_left[j])
            if more == 0:
                x = min(x, np.int64(conflicts.share[kept[q]] * conflicts.unit))
            for e in range(begin[q], begin[q + 1]):
                if x <= 0:
                    break
                for k in range(ends[e, 0], ends[e, 1]):
                    x = min(x, left[k])
            if x > 0:
                for e in range(begin[q], begin[q + 1]):
                    for k in range(ends[e, 0], ends[e, 1]):
                        left[k] -= x
                regret_left[i] -= x
                regret_left[j] -= x
                number[q] += x
                total += x
    return total


@kernel(borrows=True)
def add_up_sides(conflicts, n_rows, m, F, K):
    """Sums of the numbers within both sides of the cut behind every slot.

    Summed over the rows of a side, the numbers of a row's pairs count those within the side twice, and once those that
    the cut separates.
    """
    ends, begin, codes = conflicts.ends, conflicts.begin, conflicts.codes
    of_row, separated, within = conflicts.regret_left, conflicts.left[:K], conflicts.left[K : 2 * K]
    for r in range(n_rows):
        of_row[conflicts.rows[r]] = conflicts.regret[conflicts.rows[r]] - of_row[conflicts.rows[r]]
    separated[:] = 0
    within[:] = 0
    for q in range(m):
        x = conflicts.number[q]
        if x > 0:
            for e in range(begin[q], begin[q + 1]):
                separated[ends[e, 0]] += x
                separated[ends[e, 1]] -= x
    for r in range(n_rows):
        i = conflicts.rows[r]
        if of_row[i] > 0:
            for g in range(F):
                within[conflicts.slot[g, codes[i, conflicts.features[g]]]] += of_row[i]
    parted, below, both = 0, 0, 2 * conflicts.result[TOTAL]
    for k in range(K):
        parted += separated[k]
        below += within[k]
        separated[k] = (below - parted) // 2
        within[k] = (both - below - parted) // 2
        if conflicts.column[k] < 0:  # the last slot of its feature
            below = 0


FIT_TAKES = Conflicts, i8, int_1d, i8, int_1d, int_1d, i8, i8, i8


@kernel(takes=FIT_TAKES, separate=True, borrows=True)
def fit_numbers(conflicts, n_rows, places, n_places, feature, cut, penalty, fewest, rounds):
    """Fit the numbers of the pairs within the subset ``conflicts.rows[:n_rows]``; returns what a round visits.

    ``places[:n_places]`` are the columns that a tree of use may split on, at least one. ``conflicts.result`` holds the
    allowance and the sum of the numbers: a tree of ``fewest`` leaves or more costs at least the floor and
    ``fewest * penalty + total - (fewest - 1) * allowance``. ``conflicts.left`` holds the sums within side 0 of the cut
    behind every slot, then those within side 1.
    """
    for r in range(n_rows):
        conflicts.inside[conflicts.rows[r]] = 1
    F, K = lay_out_slots(conflicts, places, n_places, feature, cut)
    m = take_pairs(conflicts, n_rows, K)
    limit = penalty / conflicts.unit
    fitted = improve_shares(conflicts, n_rows, m, F, K, limit, fewest, rounds)
    allowance = min(np.int64(fitted * conflicts.unit), penalty)
    conflicts.result[ALLOWANCE] = allowance
    conflicts.result[TOTAL] = round_numbers(conflicts, n_rows, m, K, allowance)
    conflicts.result[SLOTS] = K
    add_up_sides(conflicts, n_rows, m, F, K)
    for r in range(n_rows):
        conflicts.inside[conflicts.rows[r]] = 0
    return conflicts.begin[m] + m


call_fit_numbers = by_address(FIT_TAKES, i8)
