"""The least cost of a tree on a set of rows: depth first within thresholds, over sets of rows.

A set is entered with a budget: either its least cost is found, or it is proved to be no less than the cutoff. Of its
cuts the one with the least sum of bounds is worked on, on the side of which less is known; what is proved of a side
is kept in a table by the set's name and the depth left, and handed on along the column.

Cost: two passes over the rows of an entered set for every column, and two leaf costs for every cut.
Symbols: see ranking_layout.py.
"""

from policytree.solvers.kernels.base.child_rows import rows_of_side
from policytree.solvers.kernels.base.layout import STOP, f8, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.ranking_boxes import least_within, other_digits
from policytree.solvers.kernels.subsets.ranking_costs import cost_of
from policytree.solvers.kernels.subsets.ranking_layout import (
    BEST,
    BOUND,
    CLOSE,
    COUNT,
    CUTOFF,
    CUTS,
    DEPTH,
    DUAL,
    KEPT_SETS,
    KEY1,
    KEY2,
    LEAF,
    LEAST,
    LEFT_OUT,
    MUCH,
    NEGATIVE,
    PLACE,
    POSITIVE,
    SETS,
    SIDE,
    SIZE,
    SPLIT,
    WORST,
    RankingPath,
    RankingRows,
)
from policytree.solvers.kernels.subsets.table import (
    is_full,
    is_known,
    keep,
    known_real_1d,
    least_two,
    place_of,
    tighten,
    wider_side,
)

STEP1, STEP2 = -7046029254386353131, 6364136223846793005  # of the key for every level of depth


@kernel
def least_of(data, leaf, least, dual, depth):
    """A bound of a set's trees, by its cost as a leaf, its rows' least costs and numbers u, and the depth left."""
    if depth == 0:
        return leaf
    split = max(least + 2.0 * data.price, dual + 2.0 * data.room)
    return min(leaf, max(split, dual + data.room))


@kernel
def add_up_level(data, path, d):
    """Name and sums of the set of level d."""
    total, name, rows = path.total[d], path.name[d], path.rows[d]
    total[:] = 0.0
    name[:] = 0
    for q in range(path.whole[d, SIZE]):
        i = rows[q]
        for k in range(5):
            total[k] += data.sums[i, k]
        for k in range(3):
            name[k] += data.names[i, k]
    depth = path.whole[d, DEPTH]
    path.key[d, 0] = name[KEY1] + depth * STEP1
    path.key[d, 1] = name[KEY2] ^ (depth * STEP2)


@kernel
def add_up_column(data, path, d, j):
    """Sums and names of side 0 of every cut of a column."""
    sums, names, rows, codes = path.sums[d], path.names[d], path.rows[d], data.codes[j]
    first, end = data.offset[j], data.offset[j + 1]
    sums[first:end] = 0.0
    names[first:end] = 0
    for q in range(path.whole[d, SIZE]):
        i = rows[q]
        t = first + codes[i]
        for k in range(5):
            sums[t, k] += data.sums[i, k]
        for k in range(3):
            names[t, k] += data.names[i, k]


@kernel
def bound_side(data, path, d, table, t, v, within):
    """Bounds of one side of a cut from its sums, from the table, and from the boxes within it."""
    sums, total, names, name, depth = (
        path.sums[d, t],
        path.total[d],
        path.names[d, t],
        path.name[d],
        path.whole[d, DEPTH],
    )
    p, n, least, dual = sums[POSITIVE], sums[NEGATIVE], sums[LEAST], sums[DUAL]
    key1, key2 = names[KEY1], names[KEY2]
    if v == 1:
        p, n, least, dual = total[POSITIVE] - p, total[NEGATIVE] - n, total[LEAST] - least, total[DUAL] - dual
        key1, key2 = name[KEY1] - key1, name[KEY2] - key2
    up = cost_of(data.costs, p, n) + data.price
    low = max(least_of(data, up, least, dual, depth - 1), within)
    if depth > 1:
        known = table[place_of(table, key1 + (depth - 1) * STEP1, key2 ^ ((depth - 1) * STEP2))]
        if is_known(known):
            low = max(low, known.low)
            up = min(up, known.up)
    path.low[d, v, t] = min(low, up)
    path.up[d, v, t] = up


@kernel
def find_cuts(data, path, d, table, always):
    """The cuts that separate the rows of level d and leave enough of them on both sides, with the sides' bounds.

    Those that cost no less than the cutoff are left out, or than the best tree found, unless all trees within the
    budget are wanted (``always``).
    """
    sums, names, name, whole, numbers = path.sums[d], path.names[d], path.name[d], path.whole[d], path.numbers[d]
    m, boxes, box = 0, data.boxes, path.box[d]
    for j in range(data.codes.shape[0]):
        add_up_column(data, path, d, j)
        others = other_digits(boxes, box, j) if len(boxes.least) > 0 else -1
        for t in range(data.offset[j], data.offset[j + 1] - 1):
            moved = names[t, COUNT] > 0
            if t > data.offset[j]:
                sums[t] += sums[t - 1]
                names[t] += names[t - 1]
            count = names[t, COUNT]
            if not moved or count < data.min_leaf or name[COUNT] - count < data.min_leaf or count == name[COUNT]:
                continue
            within0, within1, end = 0.0, 0.0, t - data.offset[j] + 1
            if others >= 0:
                within0 = least_within(boxes, others, j, box[j, 0], end, data.price)
                within1 = least_within(boxes, others, j, end, box[j, 1], data.price)
            most = numbers[CUTOFF] if always else min(numbers[CUTOFF], numbers[BEST])
            if within0 + within1 >= most:
                numbers[LEFT_OUT] = min(numbers[LEFT_OUT], within0 + within1)
                continue
            bound_side(data, path, d, table, t, 0, within0)
            bound_side(data, path, d, table, t, 1, within1)
            both = path.up[d, 0, t] + path.up[d, 1, t]
            if both < numbers[BEST]:
                numbers[BEST] = both
                whole[SPLIT] = t
            low = path.low[d, 0, t] + path.low[d, 1, t]
            if low >= most:
                numbers[LEFT_OUT] = min(numbers[LEFT_OUT], low)
                continue
            path.cuts[d, m] = t
            m += 1
    whole[CUTS] = m


@kernel
def hand_on(data, path, d):
    """Bounds of one cut's sides for the sides of its column's other cuts."""
    low, up, cuts, sums, m = path.low[d], path.up[d], path.cuts[d], path.sums[d], path.whole[d, CUTS]
    i = 0
    for j in range(data.codes.shape[0]):
        first = i
        while i < m and cuts[i] < data.offset[j + 1]:
            i += 1
        for k in range(first + 1, i):
            a, b = cuts[k - 1], cuts[k]
            further = sums[b, WORST] - sums[a, WORST]
            low[0, b] = min(up[0, b], max(low[0, b], low[0, a]))
            low[1, b] = min(up[1, b], max(low[1, b], low[1, a] - further))
        for k in range(i - 2, first - 1, -1):
            a, b = cuts[k], cuts[k + 1]
            further = sums[b, WORST] - sums[a, WORST]
            low[1, a] = min(up[1, a], max(low[1, a], low[1, b]))
            low[0, a] = min(up[0, a], max(low[0, a], low[0, b] - further))


@kernel(separate=True)
def enter_ranking(data, path, d, table, always):
    """Bounds of the set of level d, and of the sides of its cuts if they matter (or always)."""
    whole, numbers = path.whole[d], path.numbers[d]
    add_up_level(data, path, d)
    total, depth = path.total[d], whole[DEPTH]
    leaf = cost_of(data.costs, total[POSITIVE], total[NEGATIVE]) + data.price
    numbers[BEST], numbers[LEFT_OUT] = leaf, MUCH
    numbers[BOUND] = least_of(data, leaf, total[LEAST], total[DUAL], depth)
    if len(data.boxes.least) > 0:
        box = path.box[d]
        within = least_within(data.boxes, other_digits(data.boxes, box, 0), 0, box[0, 0], box[0, 1], data.price)
        numbers[BOUND] = max(numbers[BOUND], min(leaf, within))
    whole[SPLIT] = LEAF
    whole[CUTS] = 0
    known = table[place_of(table, path.key[d, 0], path.key[d, 1])]
    if is_known(known):
        numbers[BOUND] = max(numbers[BOUND], known.low)
        if known.up < leaf:
            numbers[BEST] = known.up
            whole[SPLIT] = known.split
    if depth > 0 and (always or numbers[BOUND] < min(numbers[BEST], numbers[CUTOFF]) - CLOSE):
        find_cuts(data, path, d, table, always)
        hand_on(data, path, d)
        if whole[CUTS] == 0:
            numbers[BOUND] = max(numbers[BOUND], min(numbers[BEST], numbers[LEFT_OUT]))


@kernel
def column_of(data, t):
    """The column of a cut."""
    j = 0
    while data.offset[j + 1] <= t:
        j += 1
    return j


@kernel
def descend_ranking(data, path, d, t, side):
    """Make one side of a cut the set of the next level."""
    j = column_of(data, t)
    cut = t - data.offset[j]
    n = rows_of_side(data.codes[j], cut, side, path.rows[d], path.whole[d, SIZE], path.rows[d + 1])
    path.box[d + 1] = path.box[d]
    path.box[d + 1, j, 1 - side] = cut + 1
    path.whole[d + 1, SIZE] = n
    path.whole[d + 1, DEPTH] = path.whole[d, DEPTH] - 1


@kernel(takes=(RankingRows, RankingPath, known_real_1d, i8, f8, long_1d, long_1d), separate=True)
def bound_ranking(data, path, table, base, slack, counters, control):
    """Work on the set of level ``base`` until its least cost is found or no less than its cutoff.

    Returns a bound of the least cost, and the cost of the best tree found. A side is worked on until it costs
    ``slack`` more than what makes another cut better. Once the stop flag is raised levels close with what they have.
    """
    d = base
    fresh = True
    while True:
        numbers, whole = path.numbers[d], path.whole[d]
        if fresh:
            fresh = False
            counters[SETS] += 1
            enter_ranking(data, path, d, table, False)
        low, up = path.low[d], path.up[d]
        one, two, t = least_two(path.cuts[d], whole[CUTS], low, None, MUCH)
        bound = numbers[BOUND] if t < 0 else max(min(one, numbers[LEFT_OUT]), numbers[BOUND])
        most = min(numbers[CUTOFF], numbers[BEST])
        if t >= 0 and bound < most - CLOSE and control[STOP] == 0:
            side = wider_side(low, up, t)
            # Otherwise the cut's sides are known up to rounding: no work would raise its bound to the least known cost.
            if up[side, t] - low[side, t] > CLOSE / 4:
                whole[PLACE], whole[SIDE] = t, side
                path.numbers[d + 1, CUTOFF] = min(most, max(two, bound) + slack) - low[1 - side, t]
                descend_ranking(data, path, d, t, side)
                d += 1
                fresh = True
                continue
        bound = min(bound, numbers[BEST])
        takes_new, key = not is_full(table, counters[KEPT_SETS]), path.key[d]
        counters[KEPT_SETS] += keep(table, key[0], key[1], bound, numbers[BEST], whole[SPLIT], takes_new)
        if d == base:
            return bound, numbers[BEST]
        d -= 1
        t, v, above = path.whole[d, PLACE], path.whole[d, SIDE], path.numbers[d]
        low, up = path.low[d], path.up[d]
        tighten(low, up, v, t, bound, numbers[BEST])
        if up[0, t] + up[1, t] < above[BEST]:
            above[BEST] = up[0, t] + up[1, t]
            path.whole[d, SPLIT] = t
        hand_on(data, path, d)


@kernel(takes=(RankingRows, RankingPath, known_real_1d, long_1d))
def best_known(data, path, table, chosen):
    """The best tree of the set of level 0 that the table has, in preorder; returns the number of its nodes."""
    d, count, fresh = 0, 0, True
    while d >= 0:
        whole = path.whole[d]
        if fresh:
            add_up_level(data, path, d)
            known = table[place_of(table, path.key[d, 0], path.key[d, 1])]
            split = known.split if whole[DEPTH] > 0 and is_known(known) else LEAF
            if count + 2 * d + 3 > len(chosen):
                split = LEAF
            chosen[count] = split
            count += 1
            whole[PLACE], whole[SIDE] = split, 0
        elif whole[SIDE] == 0:
            whole[SIDE] = 1
        else:
            d -= 1
            continue
        if whole[PLACE] == LEAF:
            d -= 1
            fresh = False
            continue
        descend_ranking(data, path, d, whole[PLACE], whole[SIDE])
        d += 1
        fresh = True
    return count
