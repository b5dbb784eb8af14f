"""Maximum-box pricing: the boxes with the largest sums of reduced costs, by branch and bound.

A node is a pair of an outer and an inner box (see layout.py). It is pruned if the best rectangle of its table does not
exceed the least sum of interest. Without open rows of positive reduced cost the rectangles of its table are boxes, and
the node is solved. Otherwise it branches: an end of the inner box moves outwards, or one of the outer box inwards,
where most of the witness's reduced cost is open. A feature whose inner interval is empty branches first, on the code
of largest reduced cost.

A child inherits its parent's witness. While the witness exceeds the bound on the child's rows too, the child cannot be
pruned, and branches without a table of its own.

Cost: a few passes over the open rows of every node and of the rows that come inside there, and a table for every node
that is pruned or solved.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import STOP, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.pricing.layout import (
    DONE,
    FIRST_COLUMN,
    FIRST_ROW,
    INNER_HIGH,
    INNER_LOW,
    INSIDE_SUM,
    KEPT,
    LARGEST_SUM,
    LAST_COLUMN,
    LAST_ROW,
    N_ALL,
    N_BEFORE,
    N_ENTERED,
    N_INSIDE,
    N_NUMBERS,
    NOWHERE,
    OUTER_HIGH,
    OUTER_LOW,
    SEEN,
    TOP,
    BestBoxes,
    BoxRows,
    BoxScratch,
    BoxStack,
)
from policytree.solvers.kernels.pricing.max_rectangle import fill_table, next_rectangle


@kernel
def open_in_witness(rows, reduced_costs, stack, s, everywhere, picked):
    """Pick the open rows of level s with positive reduced costs, in the witness or everywhere; returns how many."""
    index, numbers, row, column = stack.index[s], stack.numbers[s], rows.row, rows.column
    p1, p2, a1, a2 = numbers[FIRST_ROW], numbers[LAST_ROW], numbers[FIRST_COLUMN], numbers[LAST_COLUMN]
    # Every row is written, and stays if n moves on: no branch to guess wrong, and ``picked`` has one place more than
    # there are rows.
    n = 0
    for q in range(numbers[N_INSIDE] - numbers[N_BEFORE], numbers[N_ALL] - numbers[N_BEFORE]):
        i = index[q]
        p, a = row[i], column[i]
        picked[n] = i
        n += (reduced_costs[i] > 0) & (everywhere | ((p1 <= p) & (p <= p2) & (a1 <= a) & (a <= a2)))
    return n


@kernel(separate=True)
def open_sums(rows, reduced_costs, stack, s):
    """Add up the positive reduced costs of level s's open rows: in the witness, and in all."""
    index, numbers, row, column = stack.index[s], stack.numbers[s], rows.row, rows.column
    p1, p2, a1, a2 = numbers[FIRST_ROW], numbers[LAST_ROW], numbers[FIRST_COLUMN], numbers[LAST_COLUMN]
    in_witness, everywhere = 0, 0
    for q in range(numbers[N_INSIDE] - numbers[N_BEFORE], numbers[N_ALL] - numbers[N_BEFORE]):
        i = index[q]
        p, a, r = row[i], column[i], max(reduced_costs[i], 0)
        everywhere += r
        in_witness += r if (p1 <= p) & (p <= p2) & (a1 <= a) & (a <= a2) else 0
    return in_witness, everywhere


@kernel
def copy_box(boxes, source, target):
    """Write one box over another; assigning parts of arrays takes numba two seconds more to compile."""
    for f in range(boxes.shape[1]):
        for e in range(2):
            boxes[target, f, e] = boxes[source, f, e]


@kernel(separate=True)
def keep_box(best, state, total, ends, rectangle):
    """Put a box into the heap, instead of the least one if it is full."""
    sums, boxes = best.sums, best.boxes
    M = len(sums)
    if state[KEPT] < M:
        k = state[KEPT]
        state[KEPT] += 1
        while k > 0 and sums[(k - 1) // 2] > total:
            sums[k] = sums[(k - 1) // 2]
            copy_box(boxes, (k - 1) // 2, k)
            k = (k - 1) // 2
    else:  # callers only hand over sums above the least one, which is at the top
        k = 0
        while 2 * k + 1 < M:
            c = 2 * k + 1
            if c + 1 < M and sums[c + 1] < sums[c]:
                c += 1
            if sums[c] >= total:
                break
            sums[k] = sums[c]
            copy_box(boxes, c, k)
            k = c
    sums[k] = total
    F = len(ends)
    for f in range(F):
        boxes[k, f, 0] = ends[f, INNER_LOW]
        boxes[k, f, 1] = ends[f, INNER_HIGH]
    for e in range(4):
        boxes[k, F + e // 2, e % 2] = rectangle[e]
    state[LARGEST_SUM] = max(state[LARGEST_SUM], total)


@kernel
def looked_for(best, state, least):
    """Return the sum that a box must exceed to be kept."""
    sums = best.sums
    return max(sums[0], least) if state[KEPT] == len(sums) else least


@kernel(separate=True)
def keep_best_boxes(rows, stack, s, best, scratch, least, state):
    """Boxes of a level without open rows: the best one for every first row of its table."""
    p1, below = rows.height, 0
    while True:
        p1 = next_rectangle(rows, scratch, p1 - 1, below, looked_for(best, state, least))
        if p1 < 0:
            break
        below = scratch.rectangle[4]
        keep_box(best, state, below, stack.ends[s], scratch.rectangle)


@kernel(separate=True)
def reduced_costs_by_code(rows, reduced_costs, ends, f, scratch, n):
    """Sum the reduced costs of the picked rows by the codes of a feature."""
    picked, by_code, codes = scratch.picked, scratch.by_code, rows.codes[f]
    for c in range(ends[f, OUTER_LOW], ends[f, OUTER_HIGH] + 1):
        by_code[c] = 0
    for q in range(n):
        i = picked[q]
        by_code[np.int64(codes[i])] += reduced_costs[i]


@kernel(separate=True)
def choose_first_code(rows, reduced_costs, ends, scratch, n):
    """The code of largest reduced cost among features whose inner interval is empty; feature -1 if there is none."""
    by_code = scratch.by_code
    most, feature, code = -1, -1, 0
    for f in range(len(ends)):
        if ends[f, INNER_LOW] > ends[f, INNER_HIGH]:
            reduced_costs_by_code(rows, reduced_costs, ends, f, scratch, n)
            for c in range(ends[f, OUTER_LOW], ends[f, OUTER_HIGH] + 1):
                if by_code[c] > most:
                    most = by_code[c]
                    feature = f
                    code = c
    return feature, code


@kernel(separate=True)
def choose_end(rows, reduced_costs, ends, scratch, n):
    """The end with the largest reduced costs beyond it: feature, side, and the code that halves these costs."""
    picked, by_code = scratch.picked, scratch.by_code
    # No inner interval is empty here, and picked rows are open: each lies beyond some end, so ``most`` gets positive.
    most, feature, side = 0, 0, 0
    for f in range(len(ends)):
        codes, low, high = rows.codes[f], ends[f, INNER_LOW], ends[f, INNER_HIGH]
        below, above = 0, 0
        for q in range(n):
            i = picked[q]
            c, r = np.int64(codes[i]), reduced_costs[i]
            below += r if c < low else 0
            above += r if c > high else 0
        if max(below, above) > most:
            most = max(below, above)
            feature = f
            side = 0 if below >= above else 1
    reduced_costs_by_code(rows, reduced_costs, ends, feature, scratch, n)
    step = 1 if side == 0 else -1
    code = ends[feature, OUTER_LOW + side]
    last = ends[feature, INNER_LOW + side] - step
    part = by_code[code]
    while code != last and 2 * part < most:
        code += step
        part += by_code[code]
    return feature, side, code


@kernel(separate=True)
def make_part(rows, reduced_costs, stack, s, d, f, low, high):
    """Begin level d as the part of level s whose interval of feature f is (low, high), outer and inner.

    A part never loses rows inside, as its inner box contains its parent's. index[d] holds those that it gains, which
    are in all its boxes, and then those in some of its boxes.
    """
    F = len(rows.codes)
    ends, index, to = stack.ends[d], stack.index[s], stack.index[d]
    for g in range(F):
        for e in range(4):
            ends[g, e] = stack.ends[s, g, e]
    ends[f, OUTER_LOW], ends[f, INNER_LOW] = low
    ends[f, OUTER_HIGH], ends[f, INNER_HIGH] = high
    for k in range(N_NUMBERS):
        stack.numbers[d, k] = stack.numbers[s, k]
    all_codes = rows.codes
    before, numbers, codes = stack.numbers[s, N_BEFORE], stack.numbers[d], all_codes[f]
    n_all = 0
    for q in range(numbers[N_INSIDE] - before, numbers[N_ALL] - before):
        i = index[q]
        c = np.int64(codes[i])
        to[n_all] = i
        n_all += (low[0] <= c) & (c <= high[0])
    n_inside, inside_sum = 0, 0
    if low[1] != stack.ends[s, f, INNER_LOW] or high[1] != stack.ends[s, f, INNER_HIGH]:
        row, column = rows.row, rows.column
        p1, p2, a1, a2 = numbers[FIRST_ROW], numbers[LAST_ROW], numbers[FIRST_COLUMN], numbers[LAST_COLUMN]
        for q in range(n_all):
            i = to[q]
            inside = True
            for g in range(F):
                c = np.int64(all_codes[g, i])
                inside &= (ends[g, INNER_LOW] <= c) & (c <= ends[g, INNER_HIGH])
            to[q] = to[n_inside]  # rows inside first: to[:n_inside]; those that are not move behind them
            to[n_inside] = i
            n_inside += inside
            p, a = row[i], column[i]
            within = inside & (p1 <= p) & (p <= p2) & (a1 <= a) & (a <= a2)
            inside_sum += reduced_costs[i] if within else 0
    numbers[N_BEFORE] = numbers[N_INSIDE]
    numbers[N_ALL] = numbers[N_INSIDE] + n_all
    numbers[N_INSIDE] += n_inside
    numbers[DONE] = 0
    numbers[INSIDE_SUM] += inside_sum


@kernel(separate=True)
def enter_level(rows, reduced_costs, stack, s, scratch, state):
    """Take in the rows inside level s, in the place of those of the level that was entered before.

    ``entered[:N_BEFORE]`` are the rows inside the parent of level s: the stack is worked on depth first, and whatever
    was entered since the parent lies within it, and wrote behind these rows alone.
    """
    numbers, index, entered, inside, cell = stack.numbers[s], stack.index[s], scratch.entered, scratch.inside, rows.cell
    before = numbers[N_BEFORE]
    for q in range(before, state[N_ENTERED]):
        i = entered[q]
        inside[np.int64(cell[i])] -= reduced_costs[i]
    for q in range(numbers[N_INSIDE] - before):
        i = index[q]
        entered[before + q] = i
        inside[np.int64(cell[i])] += reduced_costs[i]
    state[N_ENTERED] = numbers[N_INSIDE]


@kernel(separate=True)
def branch(rows, reduced_costs, stack, s, everywhere, scratch):
    """Put the parts of level s on the stack, the largest boxes last; returns the level of the last.

    Every box of level s belongs to exactly one part: it contains the chosen code or lies on one side of it, or its end
    lies beyond the chosen code or does not. So the boxes of all open levels partition what is left to search.
    """
    n = open_in_witness(rows, reduced_costs, stack, s, everywhere, scratch.picked)
    f, code = choose_first_code(rows, reduced_costs, stack.ends[s], scratch, n)
    d = s
    if f >= 0:
        low, high = stack.ends[s, f, OUTER_LOW], stack.ends[s, f, OUTER_HIGH]
        if low < code:
            d += 1
            make_part(rows, reduced_costs, stack, s, d, f, (low, NOWHERE), (code - 1, -1))
        if code < high:
            d += 1
            make_part(rows, reduced_costs, stack, s, d, f, (code + 1, NOWHERE), (high, -1))
        make_part(rows, reduced_costs, stack, s, d + 1, f, (low, code), (high, code))
        return d + 1
    f, side, code = choose_end(rows, reduced_costs, stack.ends[s], scratch, n)
    low = stack.ends[s, f, OUTER_LOW], stack.ends[s, f, INNER_LOW]
    high = stack.ends[s, f, OUTER_HIGH], stack.ends[s, f, INNER_HIGH]
    if side == 0:
        make_part(rows, reduced_costs, stack, s, d + 1, f, (code + 1, low[1]), high)
        make_part(rows, reduced_costs, stack, s, d + 2, f, (low[0], code), high)
    else:
        make_part(rows, reduced_costs, stack, s, d + 1, f, low, (code - 1, high[1]))
        make_part(rows, reduced_costs, stack, s, d + 2, f, low, (high[0], code))
    return d + 2


@kernel(takes=(BoxRows, long_1d, BoxStack, BestBoxes, BoxScratch, i8, i8, long_1d, long_1d))
def price_boxes(rows, reduced_costs, stack, best, scratch, least, most, state, control):
    """Find the boxes with a sum above ``least``; the M best of them, if there are more.

    Works until about ``most`` more rows were looked at, the stop flag is raised, or the stack is full; the next call
    goes on. Ended once ``state[TOP]`` is -1: then no box has more than the larger of ``least`` and
    ``state[LARGEST_SUM]``.
    """
    most += state[SEEN]
    while state[TOP] >= 0 and state[SEEN] < most and control[STOP] == 0:
        s = state[TOP]
        numbers = stack.numbers[s]
        if numbers[DONE]:
            state[TOP] -= 1
            continue
        if s + 3 >= len(stack.numbers):  # a branch adds up to three levels
            return
        state[SEEN] += numbers[N_ALL] - numbers[N_BEFORE]
        enter_level(rows, reduced_costs, stack, s, scratch, state)
        floor = looked_for(best, state, least)
        open_part, open_all = open_sums(rows, reduced_costs, stack, s)
        # An inherited witness above the floor shows that the best rectangle is, too. Only a table of this level's own
        # rows may prune it: another rectangle may have become the best one.
        if open_all == 0 or numbers[INSIDE_SUM] + open_part <= floor:
            state[SEEN] += rows.height * rows.width
            fill_table(rows, reduced_costs, stack, s, scratch)
            if open_all == 0:  # every rectangle of the table is the sum of a box
                keep_best_boxes(rows, stack, s, best, scratch, least, state)
                state[TOP] -= 1
                continue
            if next_rectangle(rows, scratch, rows.height - 1, 0, floor) < 0:
                state[TOP] -= 1
                continue
            for e in range(4):
                numbers[FIRST_ROW + e] = scratch.rectangle[e]
            open_part, open_all = open_sums(rows, reduced_costs, stack, s)
            numbers[INSIDE_SUM] = scratch.rectangle[4] - open_part
        numbers[DONE] = 1
        state[SEEN] += (len(rows.codes) + 2) * (numbers[N_ALL] - numbers[N_INSIDE])
        state[TOP] = branch(rows, reduced_costs, stack, s, open_part == 0, scratch)
