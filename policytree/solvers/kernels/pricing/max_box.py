"""Maximum-box pricing: the boxes with the largest sums of reduced costs, by branch and bound.

A node is a pair of an outer and an inner box (see layout.py). It is pruned if the best rectangle of its table does not
exceed the least sum of interest. Without open rows of positive reduced cost the rectangles of its table are boxes, and
the node is solved. Otherwise it branches: an end of the inner box moves outwards, or one of the outer box inwards,
where most of the witness's reduced cost is open. A feature whose inner interval is empty branches first, on the code
of largest reduced cost.

A child inherits its parent's witness. While the witness exceeds the bound on the child's rows too, the child cannot be
pruned, and branches without a table of its own.

Cost: a few passes over the rows of every node, and a table for every node that is pruned or solved.
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
    KEPT,
    LARGEST_SUM,
    LAST_COLUMN,
    LAST_ROW,
    N_ALL,
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
from policytree.solvers.kernels.pricing.max_rectangle import best_rectangle, fill_table


@kernel
def open_in_witness(rows, reduced_costs, stack, s, everywhere, picked):
    """Pick the open rows of level s with positive reduced costs, in the witness or everywhere; returns how many."""
    index, numbers, row, column = stack.index[s], stack.numbers[s], rows.row, rows.column
    p1, p2, a1, a2 = numbers[FIRST_ROW], numbers[LAST_ROW], numbers[FIRST_COLUMN], numbers[LAST_COLUMN]
    n = 0
    for q in range(numbers[N_INSIDE], numbers[N_ALL]):
        i = index[q]
        p, a = row[i], column[i]
        picked[n] = i
        n += (reduced_costs[i] > 0) & (everywhere | ((p1 <= p) & (p <= p2) & (a1 <= a) & (a <= a2)))
    return n


@kernel(separate=True)
def witness_sums(rows, reduced_costs, stack, s):
    """Sum of the witness of level s, the part of it that open rows have, and what open rows have in all."""
    index, numbers, row, column = stack.index[s], stack.numbers[s], rows.row, rows.column
    p1, p2, a1, a2 = numbers[FIRST_ROW], numbers[LAST_ROW], numbers[FIRST_COLUMN], numbers[LAST_COLUMN]
    n_inside = numbers[N_INSIDE]
    total, open_part, open_all = 0, 0, 0
    for q in range(n_inside):
        i = index[q]
        p, a = row[i], column[i]
        total += reduced_costs[i] if (p1 <= p) & (p <= p2) & (a1 <= a) & (a <= a2) else 0
    for q in range(n_inside, numbers[N_ALL]):
        i = index[q]
        p, a, r = row[i], column[i], max(reduced_costs[i], 0)
        open_all += r
        open_part += r if (p1 <= p) & (p <= p2) & (a1 <= a) & (a <= a2) else 0
    return total + open_part, open_part, open_all


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
    else:
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
    """What a box must exceed to be kept."""
    sums = best.sums
    return max(sums[0], least) if state[KEPT] == len(sums) else least


@kernel(separate=True)
def keep_best_boxes(rows, stack, s, best, scratch, least, state):
    """Boxes of a level without open rows: the best one for every first row of its table."""
    positive = scratch.positive
    rest = 0
    for p in range(rows.height):
        rest += positive[p]
    for p1 in range(rows.height):
        floor = looked_for(best, state, least)
        if rest <= floor:
            break
        rest -= positive[p1]
        if positive[p1] > 0 and best_rectangle(rows, scratch, p1, floor, False):
            keep_box(best, state, scratch.rectangle[4], stack.ends[s], scratch.rectangle)


@kernel(separate=True)
def find_witness(rows, stack, s, scratch, floor):
    """Give level s a witness above ``floor``; returns whether there is one."""
    positive = scratch.positive
    rest = 0
    for p in range(rows.height):
        rest += positive[p]
    for p1 in range(rows.height):
        if rest <= floor:
            return False
        rest -= positive[p1]
        if positive[p1] > 0 and best_rectangle(rows, scratch, p1, floor, True):
            for e in range(4):
                stack.numbers[s, FIRST_ROW + e] = scratch.rectangle[e]
            return True
    return False


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
def make_part(rows, stack, s, d, f, low, high):
    """Begin level d as the part of level s whose interval of feature f is (low, high), outer and inner.

    index[d, :N_INSIDE] are the rows in every box of the part, index[d, N_INSIDE:N_ALL] those in some box of it. A part
    never loses rows inside: its inner box contains its parent's.
    """
    F = len(rows.codes)
    ends, index, to = stack.ends[d], stack.index[s], stack.index[d]
    for g in range(F):
        for e in range(4):
            ends[g, e] = stack.ends[s, g, e]
    ends[f, OUTER_LOW], ends[f, INNER_LOW] = low
    ends[f, OUTER_HIGH], ends[f, INNER_HIGH] = high
    all_codes = rows.codes
    codes = all_codes[f]
    was_inside = stack.numbers[s, N_INSIDE]
    n_inside, n_all = 0, 0
    for q in range(stack.numbers[s, N_ALL]):
        i = index[q]
        c = np.int64(codes[i])
        if c < low[0] or c > high[0]:
            continue
        inside = q < was_inside
        if not inside and low[1] <= c and c <= high[1]:
            inside = True
            for g in range(F):
                c = np.int64(all_codes[g, i])
                inside &= (ends[g, INNER_LOW] <= c) & (c <= ends[g, INNER_HIGH])
        to[n_all] = i
        n_all += 1
        if inside:
            to[n_all - 1] = to[n_inside]
            to[n_inside] = i
            n_inside += 1
    for k in range(N_NUMBERS):
        stack.numbers[d, k] = stack.numbers[s, k]
    stack.numbers[d, N_INSIDE] = n_inside
    stack.numbers[d, N_ALL] = n_all
    stack.numbers[d, DONE] = 0


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
            make_part(rows, stack, s, d, f, (low, NOWHERE), (code - 1, -1))
        if code < high:
            d += 1
            make_part(rows, stack, s, d, f, (code + 1, NOWHERE), (high, -1))
        make_part(rows, stack, s, d + 1, f, (low, code), (high, code))
        return d + 1
    f, side, code = choose_end(rows, reduced_costs, stack.ends[s], scratch, n)
    low = stack.ends[s, f, OUTER_LOW], stack.ends[s, f, INNER_LOW]
    high = stack.ends[s, f, OUTER_HIGH], stack.ends[s, f, INNER_HIGH]
    if side == 0:
        make_part(rows, stack, s, d + 1, f, (code + 1, low[1]), high)
        make_part(rows, stack, s, d + 2, f, (low[0], code), high)
    else:
        make_part(rows, stack, s, d + 1, f, low, (code - 1, high[1]))
        make_part(rows, stack, s, d + 2, f, low, (high[0], code))
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
        if s + 3 >= len(stack.numbers):
            return
        state[SEEN] += numbers[N_ALL]
        floor = looked_for(best, state, least)
        total, open_part, open_all = witness_sums(rows, reduced_costs, stack, s)
        # An inherited witness above the floor shows that the best rectangle is, too. Only a table of this level's own
        # rows may prune it: another rectangle may have become the best one.
        if open_all == 0 or total <= floor:
            state[SEEN] += rows.height * rows.width
            fill_table(rows, reduced_costs, stack, s, scratch)
            if open_all == 0:  # every rectangle of the table is the sum of a box
                keep_best_boxes(rows, stack, s, best, scratch, least, state)
                state[TOP] -= 1
                continue
            if not find_witness(rows, stack, s, scratch, floor):
                state[TOP] -= 1
                continue
            total, open_part, open_all = witness_sums(rows, reduced_costs, stack, s)
        numbers[DONE] = 1
        state[TOP] = branch(rows, reduced_costs, stack, s, open_part == 0, scratch)
