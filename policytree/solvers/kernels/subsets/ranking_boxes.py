"""The least costs of all boxes of strips: bounds of sets of rows, for tables of few columns.

Codes of a column are put together to *strips*. Whatever the cut of a set of rows, it lies within one strip, and
without the rows of that strip the two sides are sets of whole strips that cost no more. So the least cost of a box of
strips is bounded by its cost as a leaf, or the sum over the strips on either side of one that is dropped. Where strips
are single codes, cuts lie between them and none is dropped. A set of rows between codes costs at least what the
largest box of whole strips within it does.

Boxes are numbered by one digit for every column, the narrow intervals first: the parts of a box come before it.

Cost: boxes times their strips.
Symbols: see ranking_layout.py.
"""

from policytree.solvers.kernels.base.layout import STOP, f8, long_1d, long_2d, real_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.ranking_costs import cost_of
from policytree.solvers.kernels.subsets.ranking_layout import MUCH, CoarseBoxes, LeafCosts

OFTEN = 4095  # boxes between looks at the stop flag


@kernel
def digit_of(strips, first, end):
    """The number of the interval ``first`` to ``end - 1`` among those of a column."""
    w = end - first - 1
    return w * strips - w * (w - 1) // 2 + first


@kernel
def sums_from_parts(boxes, box, i, positive, negative):
    """Shares of a box from those of two parts; those of single cells are known."""
    for j in range(len(boxes.strips)):
        first, end = box[j, 0], box[j, 1]
        if end - first > 1:
            here = digit_of(boxes.strips[j], first, end)
            one = i - (here - digit_of(boxes.strips[j], first, end - 1)) * boxes.stride[j]
            two = i - (here - digit_of(boxes.strips[j], end - 1, end)) * boxes.stride[j]
            positive[i] = positive[one] + positive[two]
            negative[i] = negative[one] + negative[two]
            return


@kernel
def least_cut(boxes, box, i, j, price):
    """The least sum of two sides over the cuts of one column."""
    first, end, strips, stride, least = box[j, 0], box[j, 1], boxes.strips[j], boxes.stride[j], boxes.least
    base = i - digit_of(strips, first, end) * stride
    gap = boxes.gap[j]
    best = MUCH
    for t in range(first + 1 - gap, end):
        below = least[base + digit_of(strips, first, t) * stride] if t > first else price
        above = least[base + digit_of(strips, t + gap, end) * stride] if t + gap < end else price
        best = min(best, below + above)
    return best


@kernel
def next_box(boxes, box):
    """The box after this one; the first column's digit changes fastest."""
    for j in range(len(boxes.strips)):
        first, end, strips = box[j, 0], box[j, 1], boxes.strips[j]
        if end < strips:
            box[j, 0], box[j, 1] = first + 1, end + 1
            return
        width = end - first
        if width < strips:
            box[j, 0], box[j, 1] = 0, width + 1
            return
        box[j, 0], box[j, 1] = 0, 1


@kernel(takes=(CoarseBoxes, LeafCosts, f8, real_1d, real_1d, long_2d, long_1d))
def fill_boxes(boxes, costs, price, positive, negative, box, control):
    """Fill in ``boxes.least``, prices of leaves included, from ``box``, the first; what a stop leaves is 0."""
    for i in range(len(boxes.least)):
        if i & OFTEN == 0 and control[STOP] != 0:
            return
        sums_from_parts(boxes, box, i, positive, negative)
        least = cost_of(costs, positive[i], negative[i]) + price
        if least > 2.0 * price:
            for j in range(len(boxes.strips)):
                if box[j, 1] - box[j, 0] > 1 - boxes.gap[j]:
                    least = min(least, max(least_cut(boxes, box, i, j, price), 2.0 * price))
        boxes.least[i] = least
        next_box(boxes, box)


@kernel
def other_digits(boxes, box, j):
    """Return the part of a box's number from the columns but j; -1 if no whole strip lies within."""
    total = 0
    for f in range(len(boxes.strips)):
        first, end = boxes.up[f, box[f, 0]], boxes.down[f, box[f, 1]]
        if f != j:
            if first >= end:
                return -1
            total += digit_of(boxes.strips[f], first, end) * boxes.stride[f]
    return total


@kernel
def least_within(boxes, others, j, code, end, price):
    """A bound of the rows of a box whose codes of column j are ``code`` to ``end - 1``."""
    first, last = boxes.up[j, code], boxes.down[j, end]
    if others < 0 or first >= last:
        return price
    return boxes.least[others + digit_of(boxes.strips[j], first, last) * boxes.stride[j]]
