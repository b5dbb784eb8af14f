"""Entering a node: solve it outright where cache, bounds or depth allow it; otherwise order its features.

Bounds of a whole node: the cost of a leaf, or of two leaves above the floor (every row gets its best action); row
duals; cached results for the same rows after other splits; the leaf penalty, since a tree of h leaves costs at least
floor + h * penalty and is at most h - 1 deep.

Cost: a pass over the rows; depth two where the node is not solved before.
Symbols: see base/layout.py and stack.py.
"""

import numpy as np
from numba import types

from policytree.solvers.kernels.base.addresses import by_address, loaded
from policytree.solvers.kernels.base.layout import (
    CACHE,
    DEEP_BOUND,
    FEASIBLE,
    HITS,
    INF,
    INTERVALS,
    SIMILAR,
    TWO,
    UNLIMITED,
    WORD,
    Rules,
    Special,
    i8,
    long_1d,
)
from policytree.solvers.kernels.base.sums import best_one_split, costly, dual_bound, node_sums, prefix_sums
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_first.cache import Memory, look_up, size_key
from policytree.solvers.kernels.depth_first.inherited_bounds import (
    call_deep_bound,
    inherited_bound,
    shares_inner,
    side_being_solved,
)
from policytree.solvers.kernels.depth_first.stack import DONE, ENTER, FEATURE, NOT_SEARCHED, Levels, first_at, rows_at
from policytree.solvers.kernels.depth_two.interval_dp import best_intervals
from policytree.solvers.kernels.depth_two.long_pairs import depth_two

# Nodes of depth three raise their cutoff by this fraction of the distance to the best tree of depth two: the stronger
# bound also refutes neighbouring cuts.
MARGIN = 4
MOST_STEPS = 1 << 22  # values times leaves in dynamic programming: some hundredths of a second, 32 MB


@kernel(borrows=True)
def recall(levels, level, memory, size):
    """Take a node's result from the cache: a tree, or a bound that reaches the node's cutoff."""
    node = levels.nodes[level]
    h = look_up(memory, node.key1, node.key2, size, levels.context[level])
    if h < 0:
        return False
    # ``enough`` and not the cutoff, which may be INF: a bound need only refute the parent's cut.
    known = memory.solved[h]
    if known.length == 0 and known.value < node.enough:
        return False
    node.best = known.value
    node.tree_length = known.length
    for i in range(known.length):
        levels.tree[level, i, 0] = memory.pool[known.start + i, 0]
        levels.tree[level, i, 1] = memory.pool[known.start + i, 1]
    return True


@kernel(borrows=True)
def payable_leaves(top, floor, penalty):
    """The most leaves of a tree that costs less than ``top``: h leaves cost at least floor + h * penalty."""
    # The quotient is rounded up and then lowered by one: h leaves must cost less than ``top``, and not as much.
    return (top - floor + penalty - 1) // penalty - 1


@kernel(separate=True, borrows=True)
def take_one_split(levels, level, rules):
    """Solve a node that may split once."""
    node = levels.nodes[level]
    rows = rows_at(levels, level)
    value, f, t = best_one_split(rows, rules)
    if value + 2 * rules.penalty < node.best:
        tree = levels.tree[level]
        node.best = value + 2 * rules.penalty
        node.tree_length = 3
        tree[0, 0] = levels.columns[level, f]
        tree[0, 1] = levels.cuts[level, rows.offset[f] + t]
        tree[1, 0] = -1
        tree[2, 0] = -1


@kernel(separate=True)
def take_two_splits(levels, level, rules, control, special):
    """Solve a node of depth two, or start a deeper one from its best tree of depth two; False if stopped.

    A node of depth two needs an exact value or a bound that reaches the cutoff. A deeper node needs a good tree and an
    order of the features; with a leaf penalty it needs the exact value, which limits the useful depth.
    """
    node = levels.nodes[level]
    rows = rows_at(levels, level)
    enough = node.enough
    if node.useful_depth > 2:
        enough = INF if rules.penalty > 0 else -INF
    best, bound, finished = depth_two(rows, rules, node.leaves, enough, first_at(levels, level), control, special)
    if not finished:
        return False
    if bound < best.value and node.useful_depth == 2:
        node.best = bound
        node.tree_length = 0
        return True
    node.best = best.value
    if best.feature >= 0:
        tree = levels.tree[level]
        cut = levels.cuts[level, rows.offset[best.feature] + best.cut]
        tree[0, 0] = -2 - levels.columns[level, best.feature]
        tree[0, 1] = -1 - cut if node.leaves == 3 else cut
    return True


@kernel(inline="always")
def most_leaves(node):
    """The largest number of leaves that depth and leaf limit allow."""
    return min(node.leaves, 1 << min(node.depth, 30))


@kernel(borrows=True)
def intervals_apply(levels, level, rules):
    """Whether a node is solved by dynamic programming: one feature is left, its splits are free, and it is quick.

    Dynamic programming does not poll the stop flag; with a leaf limit that may bind it makes a pass per leaf.
    """
    node, B = levels.nodes[level], levels.bins[level, 0]
    return node.features == 1 and not costly(rules) and (most_leaves(node) >= B or most_leaves(node) * B <= MOST_STEPS)


@kernel(takes=(Levels, i8, Rules), for_python=False)
def take_intervals(levels, level, rules):
    """Solve a node with one feature left, whose splits are free: any partition into intervals is a tree."""
    node = levels.nodes[level]
    rows, tree = rows_at(levels, level), levels.tree[level]
    P, B = rules.n_losses, rows.bins[0]
    ahead = prefix_sums(rows, 0, P + len(rules.minima))
    sums, counts = np.zeros((B + 1, P + 1), np.int64), np.zeros((B + 1, len(rules.minima)), np.int64)
    for t in range(B):
        for k in range(P):
            sums[t + 1, 1 + k] = ahead[k, t]
        for c in range(len(rules.minima)):
            counts[t + 1, c] = ahead[P + c, t]
    value, ends = best_intervals(sums, counts, rules.minima, rules.penalty, most_leaves(node))
    if value >= node.best:
        return
    node.best = value
    # Parts are halved, so that at most one waits at each of some 60 levels. The left half is put on last and taken
    # next: the tree is written in preorder.
    open_parts = np.empty((64, 2), np.int64)
    open_parts[0, 0], open_parts[0, 1] = 0, len(ends)
    waiting = 1
    at = 0
    while waiting > 0:
        waiting -= 1
        first, end = open_parts[waiting, 0], open_parts[waiting, 1]
        tree[at, 0] = -1
        if end - first > 1:
            middle = (first + end) // 2
            tree[at, 0] = levels.columns[level, 0]
            tree[at, 1] = levels.cuts[level, ends[middle - 1] - 1]
            open_parts[waiting, 0], open_parts[waiting, 1] = middle, end
            open_parts[waiting + 1, 0], open_parts[waiting + 1, 1] = first, middle
            waiting += 2
        at += 1
    node.tree_length = at


call_intervals = by_address((Levels, i8, Rules), types.none)


@kernel(borrows=True)
def name_rows(levels, level):
    """Sums of the keys of a node's rows."""
    node = levels.nodes[level]
    planes = levels.planes[level]
    first = planes.shape[0] - 2
    # Sums wrap around at 64 bits, by which names are as random as the keys; the order of the rows does not matter.
    key1 = 0
    key2 = 0
    for i in range(node.rows):
        key1 += planes[first, i]
        key2 += planes[first + 1, i]
    node.key1 = key1
    node.key2 = key2


@kernel(borrows=True)
def name_context(levels, level):
    """The test groups that the path has paid for, if a feature of the node would cost something otherwise.

    The rows say which features the node has, and these bits what each of them costs: rows and bits are the subproblem.
    """
    context = levels.context[level]
    for w in range(len(context)):
        context[w] = 0
    for f in range(levels.nodes[level].features if len(context) > 0 else 0):
        owner = levels.owners[level, f]
        if owner >= 0 and levels.groups[level, f] == 0 and levels.groups[0, levels.columns[level, f]] != 0:
            context[owner // WORD] |= 1 << (owner % WORD)


@kernel(borrows=True)
def order_features(levels, level):
    """Try the features with the best value of depth two first (insertion sort: ties keep their order)."""
    order, values = levels.order[level], levels.first_values[level]
    for f in range(levels.nodes[level].features):
        j = f
        while j > 0 and values[order[j - 1]] > values[f]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = f


@kernel(takes=(Levels, i8, Rules, Memory, long_1d, long_1d, Special), for_python=False, separate=True, borrows=True)
def enter(levels, level, rules, memory, counters, control, special):
    """Solve a node outright where cache, bounds or depth allow it, else order its features.

    Returns the next phase: DONE, FEATURE, or ENTER if stopped. After DONE, ``node.best`` is the exact optimum and
    ``node.tree_length > 0``, or ``node.best`` is a lower bound of at least the cutoff and ``node.tree_length == 0``; if
    the node has a least depth (``need``), a bound of trees that deep.
    """
    node = levels.nodes[level]
    penalty = rules.penalty
    depth = node.depth
    if node.leaves != UNLIMITED:
        depth = min(depth, node.leaves - 1)
    # A leaf limit that no tree of this depth exceeds is no limit: bounds of unlimited nodes spread further.
    if depth < 30 and node.leaves >= 1 << depth:
        node.leaves = UNLIMITED
    node.depth = depth
    leaf, floor = node_sums(rows_at(levels, level), rules)
    leaf += penalty
    node.best = leaf
    node.tree_length = 1
    levels.tree[level, 0, 0] = -1
    node.to_try = NOT_SEARCHED
    node.next = 0
    node.split_bound = INF
    node.too_deep_bound = INF
    # A split has two leaves at least, and no tree loses less than the floor: the leaf is optimal if it costs no more.
    if node.features == 0 or depth == 0 or leaf <= floor + 2 * penalty:
        return DONE
    known = -INF  # the best lower bound of the node so far; at level 0 it is already part of Python's bound
    if rules.beyond >= 0 and level > 0:
        known = dual_bound(rows_at(levels, level), rules)
    if node.need > 0:  # a tree of depth d has at least d + 1 leaves
        known = max(known, floor + (node.need + 1) * penalty)
    if known >= min(leaf, node.cutoff):
        node.best = min(leaf, known)
        node.tree_length = 1 if known >= leaf else 0
        return DONE
    # The cache is keyed by the set of rows and the groups that were paid for, not by the path: any order of the same
    # splits finds the entry.
    name_rows(levels, level)
    name_context(levels, level)
    if control[CACHE] != 0 and recall(levels, level, memory, size_key(node)):
        counters[HITS] += 1
        return DONE
    inherits = level > 0 and depth == 3 and control[SIMILAR] != 0 and shares_inner(levels, level - 1)
    if inherits:
        if node.need > 0:
            known = min(leaf, call_deep_bound(loaded(control, DEEP_BOUND), (levels, level, rules)))
        else:
            known = min(leaf, inherited_bound(levels, level))
        if known >= node.cutoff:
            node.best = known
            node.tree_length = 0
            return DONE
        if (
            penalty == 0 and known > -FEASIBLE
        ):  # a neighbouring cut's node has bounds of all features: no order is needed
            node.useful_depth = depth
            node.cutoff += levels.inner_at[level - 1, 2 + side_being_solved(levels.nodes[level - 1])]
            node.to_try = node.features
            for f in range(node.features):
                levels.order[level, f] = f
                levels.first_cuts[level, f] = -1
            return FEATURE
    # Trees with more than so many leaves cannot beat the cutoff, so trees as deep as that need no search; their bound
    # is kept, since the node's own bound must cover them.
    if penalty > 0:
        leaves = payable_leaves(min(node.cutoff, leaf), floor, penalty)
        if leaves - 1 < depth:
            depth = max(leaves - 1, 0)
            node.too_deep_bound = floor + (max(leaves, 1) + 1) * penalty
    # Up to depth three the limit decides how the node is solved: by a sweep, by tables. A deeper node's children find
    # limits of their own, from the floors of their own rows.
    node.useful_depth = depth if depth <= 3 else node.depth
    if depth > 2 and intervals_apply(levels, level, rules):
        node.to_try = 0
        call_intervals(loaded(control, INTERVALS), (levels, level, rules))
        return DONE
    if depth == 1:
        take_one_split(levels, level, rules)
    elif depth >= 2:
        counters[TWO] += 1
        if not take_two_splits(levels, level, rules, control, special):
            return ENTER
        if penalty > 0 and depth > 2:  # again, with depth two solved: three leaves need no more depth
            leaves = payable_leaves(min(node.cutoff, node.best), floor, penalty)
            if leaves - 1 < depth:
                depth = max(leaves - 1, 2)
                node.too_deep_bound = min(node.too_deep_bound, floor + (max(leaves, 3) + 1) * penalty)
                node.useful_depth = depth if depth <= 3 else node.depth
    node.to_try = 0
    # A cutoff that is too high costs work and no truth: what is proved below it is proved. The parent's cut is refuted
    # at ``enough`` already; what comes on top is for its neighbours.
    if depth == node.depth == 3 and level > 0 and control[SIMILAR] != 0 and node.best > node.cutoff:
        more = (node.best - node.cutoff) // MARGIN
        node.cutoff += more
        if inherits:
            levels.inner_at[level - 1, 2 + side_being_solved(levels.nodes[level - 1])] = more
    if depth <= 2:
        if node.best >= node.cutoff and node.too_deep_bound < node.best:
            node.best = node.too_deep_bound
            node.tree_length = 0
        return DONE
    node.to_try = node.features
    order_features(levels, level)
    return FEATURE
