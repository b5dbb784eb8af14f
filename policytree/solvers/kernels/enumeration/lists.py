"""Lists of trees of which none is as good as another in every criterion (Pareto fronts): thinned and joined.

Cost: thinning sorts; two criteria take one pass more, of three and more every tree is compared with those that are
kept. Joining takes a step for every pair of trees whose bounds add up to no more
than what is asked for; for the best tree alone and two criteria, one binary search for every tree of one side.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, STOP, i4, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.enumeration.layout import Points, Wanted

SMALLEST = 64  # capacity of a list


@kernel(separate=True)
def make_points(capacity, V, R):
    """Room for trees."""
    return Points(np.empty((capacity, V), np.int64), np.empty((capacity, R), np.int32))


@kernel(separate=True)
def moved(points, order, count, capacity):
    """The trees at ``order[:count]``, in a list of their own."""
    V, R = points.values.shape[1], points.trees.shape[1]
    out = make_points(max(capacity, SMALLEST), V, R)
    for i in range(count):
        k = order[i]
        for v in range(V):
            out.values[i, v] = points.values[k, v]
        for r in range(R):
            out.trees[i, r] = points.trees[k, r]
    return out


@kernel(separate=True)
def sorted_by(values, count, v, order):
    """``order`` sorted by one number of the vectors; equal ones stay in their order."""
    keys = np.empty(count, np.int64)
    for i in range(count):
        keys[i] = values[order[i], v]
    return order[np.argsort(keys, kind="mergesort")]


@kernel(separate=True)
def is_covered(values, kept, n_kept, k):
    """Whether one of the kept trees is as good as tree k in every criterion."""
    V = values.shape[1]
    for i in range(n_kept - 1, -1, -1):
        covered = True
        for v in range(2, V):  # sorted by the first: it is not larger
            if values[kept[i], v] > values[k, v]:
                covered = False
                break
        if covered:
            return True
    return False


@kernel(takes=(Points, i8, long_1d), separate=True)
def thin(points, count, control):
    """The trees that no other is as good as in every criterion, sorted by criteria, and their number.

    Of equal ones the first stays. If stopped, trees may be left that others are as good as.
    """
    values = points.values
    V = values.shape[1]
    order = np.arange(count)
    for v in range(V - 1, 0, -1):
        order = sorted_by(values, count, v, order)
    kept = np.empty(count, np.int64)
    n_kept = 0
    least = INF
    for i in range(count):
        k = order[i]
        if V == 2:
            good = n_kept == 0
        elif V == 3:
            good = n_kept == 0 or values[k, 2] < least
        else:
            good = control[STOP] != 0 or not is_covered(values, kept, n_kept, k)
        if good:
            kept[n_kept] = k
            n_kept += 1
            if V > 2:
                least = values[k, 2]
    return moved(points, kept, n_kept, 2 * n_kept), n_kept


@kernel(separate=True)
def with_room(points, count, control):
    """The list with room for one more: thinned, and longer if that does not help."""
    capacity = len(points.values)
    if count < capacity:
        return points, count
    points, count = thin(points, count, control)
    if 2 * count > capacity:
        capacity *= 2
    return moved(points, np.arange(count), count, capacity), count


@kernel(separate=True)
def put(x, left, y, right, paid, split, out, count):
    """Write the tree of two trees under a split, and its vector, to a place of a list."""
    V, R = len(x), len(left)
    for v in range(V):
        out.values[count, v] = x[v] + y[v] + paid[v]
    tree = out.trees[count]
    tree[0] = i4(split[0])
    tree[1] = i4(split[1])
    for r in range(R):
        tree[2 + r] = left[r]
        tree[2 + R + r] = right[r]


@kernel(separate=True)
def join_all(left, n_left, right, n_right, paid, wanted, split, out, count, control):
    """See :func:`join`; the trees found are not thinned."""
    V, caps = left.values.shape[1], wanted.caps
    by_left = sorted_by(left.values, n_left, 0, np.arange(n_left))
    by_right = sorted_by(right.values, n_right, 0, np.arange(n_right))
    for i in range(n_left):
        if control[STOP] != 0:
            break
        x = left.values[by_left[i]]
        for j in range(n_right):
            y = right.values[by_right[j]]
            if x[0] + y[0] + paid[0] > caps[0]:
                break
            useful = True
            for v in range(1, V):
                useful = useful and x[v] + y[v] + paid[v] <= caps[v]
            if useful:
                out, count = with_room(out, count, control)
                put(x, left.trees[by_left[i]], y, right.trees[by_right[j]], paid, split, out, count)
                count += 1
    return out, count


@kernel(separate=True)
def first_within(right, n_right, x, paid, caps):
    """The first of thinned trees that is within the caps beside a tree x; n_right if there is none."""
    V = len(x)
    if V == 3:  # the second criterion falls
        low = 0
        high = n_right
        while low < high:
            middle = (low + high) // 2
            if x[2] + right.values[middle, 2] + paid[2] <= caps[2]:
                high = middle
            else:
                low = middle + 1
        return low
    for j in range(n_right):
        if x[1] + right.values[j, 1] + paid[1] > caps[1]:
            break
        useful = True
        for v in range(2, V):
            useful = useful and x[v] + right.values[j, v] + paid[v] <= caps[v]
        if useful:
            return j
    return n_right


@kernel(separate=True)
def join_best(left, n_left, right, n_right, paid, wanted, split, out, count, control):
    """See :func:`join`; the list holds one tree at most, and the caps fall. Both lists are thinned, so sorted."""
    caps = wanted.caps
    for i in range(n_left):
        x = left.values[i]
        if control[STOP] != 0 or x[1] + right.values[0, 1] + paid[1] > caps[1]:
            break
        j = first_within(right, n_right, x, paid, caps)
        if j == n_right or x[1] + right.values[j, 1] + paid[1] > caps[1]:
            continue
        put(x, left.trees[i], right.values[j], right.trees[j], paid, split, out, 0)
        count = 1
        lower = caps[1] - (out.values[0, 1] - 1)
        caps[1] -= lower
        caps[0] -= lower >> wanted.shift
    return out, count


@kernel(takes=(Points, i8, Points, i8, long_1d, Wanted, long_1d, Points, i8, long_1d), separate=True)
def join(left, n_left, right, n_right, paid, wanted, split, out, count, control):
    """Put the trees with one of the left and one of the right trees under a split into a list, if they are wanted.

    Parameters
    ----------
    paid : (V,)
        Charges of the split itself.
    wanted : Wanted
        Its caps are changed if one tree is all that is wanted.
    split : (2,)
        Its feature and cut.

    Returns
    -------
    out : Points
    count : int
    """
    if n_left == 0 or n_right == 0:
        return out, count
    if wanted.shift < 0:
        return join_all(left, n_left, right, n_right, paid, wanted, split, out, count, control)
    return join_best(left, n_left, right, n_right, paid, wanted, split, out, count, control)
