"""Depth three and more: depth first through features and cuts, with bounds.

:func:`advance` works on a stack of nodes (stack.py) until the root is done, a number of cuts is solved, or the stop
flag is raised; Python owns clock, threads and incumbent. A node whose trees have three levels is *swept*: depth two on
both sides of many cuts at once (depth_three/sweep.py).

    level 0   root feature, a cut         phases of a node: ENTER -> FEATURE -> CUT -> LEFT, RIGHT -> CUT ... -> DONE
       |- left side    level 1                                        ^___________|  (no cut is open)
       |- right side   level 1, after the left one or before

Trees are rows (column, cut) in preorder:

    (column, cut)          a split;   (-1, .) a leaf
    (-2 - column, cut)     the root of a subtree of depth two whose lower splits are left to the caller; cut -1 - t:
                           only one side may have one
    (OPEN - h, .)          such a subtree of which only the largest number h of leaves is stated

Cost: that of the nodes entered and of the cuts that no bound refutes.
Symbols: see base/layout.py and stack.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.addresses import loaded
from policytree.solvers.kernels.base.layout import (
    CACHE,
    CUTS,
    MOVE,
    NODES,
    OPEN,
    SIMILAR,
    STOP,
    SWEEPS,
    UNLIMITED,
    Rules,
    Special,
    i8,
    long_1d,
    long_2d,
)
from policytree.solvers.kernels.base.sums import rows_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_first.cache import (
    Memory,
    recall_sides,
    remember,
    remember_side,
    side_keys,
    size_key,
)
from policytree.solvers.kernels.depth_first.inherited_bounds import (
    call_move_inner,
    choose_near,
    forget_inner,
    inherit_inner,
    keep_inner,
    shares_inner,
)
from policytree.solvers.kernels.depth_first.node_bounds import enter
from policytree.solvers.kernels.depth_first.stack import (
    BOTH,
    CUT,
    DONE,
    ENTER,
    FEATURE,
    LEFT,
    LEFT_SIDE,
    NO_SIDE,
    NOT_SEARCHED,
    RIGHT_SIDE,
    Levels,
    bounds_at,
    cutoff_of,
    deep_at,
    open_feature,
    push_child,
    rows_at,
    take_side,
    widest_side,
)
from policytree.solvers.kernels.depth_three.sweep import MOST_CUTS, Swept, best_share, cuts_per_round, sweep
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables, make_tables
from policytree.solvers.kernels.depth_two.similarity_bounds import (
    bound_of_cut,
    bounds_by_deep_side,
    choose_cut,
    choose_many,
    include,
    least_bound,
    spread_bounds,
)


class Progress(NamedTuple):
    """State that the search keeps from one set of tables to the next."""

    swept: Swept  # cuts of the last sweep: of one node, since those below a node of depth three are terminal
    keys: long_2d  # names of the sides of a feature's cuts
    counts: long_1d  # SOLVED, BATCH, NEEDED


# Cuts of level 0 that are solved, cuts of the last sweep, and whether the node at hand needs tables of its own.
SOLVED, BATCH, NEEDED = 0, 1, 2


@kernel(
    takes=(Levels, i8, SweepTables, Swept, long_2d, Memory, long_1d, Special),
    for_python=False,
    separate=True,
)
def sweep_next(levels, level, tables, swept, keys, memory, control, special):
    """Sweep the cuts that promise most and bound all others; returns how many were swept, -1 if stopped.

    ``keys``: names of all cuts' sides, if sides are remembered.
    """
    node = levels.nodes[level]
    rows, bounds, deep = rows_at(levels, level), bounds_at(levels, level), deep_at(levels, level)
    cutoff = cutoff_of(node)
    f = node.feature
    cuts = rows.bins[f] - 1
    hint = levels.first_cuts[level, f]
    levels.first_cuts[level, f] = -1
    batch = cuts_per_round(bounds, deep, cuts, cutoff, tables)
    batch = choose_many(bounds, deep, cuts, cutoff, batch, swept.cuts)
    if hint >= 0 and bound_of_cut(bounds, deep, hint) < cutoff:
        batch = include(swept.cuts, batch, hint)
    if batch == 0:
        return 0
    if not sweep(rows_below(rows, f), tables, levels.index[level], levels.ends[level], swept, batch, control, special):
        return -1
    # Place h - 1 of a swept side is for at most h leaves. Depth two has four at most, and the other side has one.
    most = min(node.leaves - 1, 4) - 1
    for j in range(batch):
        t = swept.cuts[j]
        left, right = swept.left[j], swept.right[j]
        swept.joint[j] = left[most] + right[most]
        if node.leaves != UNLIMITED:
            swept.joint[j] = best_share(left, right, node.leaves)[0]
        # Names of sides know no limit of leaves. A tree of depth two has four at most, so this bound holds for all.
        if remembers_sides(memory, control):
            remember_side(memory, keys[0, t], keys[1, t], left[3])
            remember_side(memory, keys[2, t], keys[3, t], right[3])
        spread_bounds(bounds, cuts, t, left[most], right[most], tables.rules, control[SIMILAR] != 0)
    return batch


@kernel(inline="always")
def remembers_sides(memory, control):
    """Whether bounds of swept sides are kept: where test costs are shared, they hold for the path only."""
    return len(memory.sides) > 1 and memory.context.shape[1] == 0 and control[CACHE] != 0


@kernel(borrows=True)
def best_swept(bounds, deep, swept, batch, cutoff):
    """Of the swept cuts the one with the least bound below the cutoff (-1: none); the others are closed."""
    best = -1
    least = cutoff
    for j in range(batch):
        t = swept.cuts[j]
        # One side is raised for both: from here on only the sum of the cut's two bounds holds.
        if swept.joint[j] >= cutoff:
            bounds.right[t] = max(bounds.right[t], cutoff - bounds.left[t])
        v = max(bound_of_cut(bounds, deep, t), swept.joint[j])
        if v < least:
            best = j
            least = v
    return best


@kernel(borrows=True)
def take_swept(levels, level, swept, j):
    """Take a swept cut's tree: swept bounds are exact, so that its sides need no search for their values."""
    node, tree = levels.nodes[level], levels.tree[level]
    share = 4
    if node.leaves != UNLIMITED:
        share = best_share(swept.left[j], swept.right[j], node.leaves)[1]
    node.best = swept.joint[j] + node.paid
    node.tree_length = 3
    tree[0, 0] = levels.columns[level, node.feature]
    tree[0, 1] = levels.cuts[level, levels.offset[level, node.feature] + swept.cuts[j]]
    # Sweeps know what the sides cost and not their trees, which ``core.rows.expand`` finds for the final tree alone.
    tree[1, 0] = OPEN - share
    tree[2, 0] = OPEN - min(node.leaves - share, 4)


@kernel(borrows=True)
def next_cut(levels, level, bounds, deep, cuts):
    """The cut to solve next without sweeps: the hint, or the middle of the open cuts; -1 if none is open."""
    node = levels.nodes[level]
    cutoff = cutoff_of(node)
    hint = levels.first_cuts[level, node.feature]
    levels.first_cuts[level, node.feature] = -1
    if hint >= 0 and bound_of_cut(bounds, deep, hint) < cutoff:
        return hint
    last = levels.inner_at[level, LEFT_SIDE]
    if last >= 0 and shares_inner(levels, level):
        return choose_near(bounds, deep, cuts, cutoff, last)
    return choose_cut(bounds, deep, cuts, cutoff)


@kernel(borrows=True)
def close_node(levels, level, memory):
    """Leave a node: it keeps a bound if nothing below the cutoff was found; the result goes into the cache."""
    node = levels.nodes[level]
    if levels.nodes[level - 1].relaxed != 0:
        node.tree_length = 0  # the tree may break rules, so that its value is a bound
    # Nothing below the cutoff: then the node's bound is the least of all there is: the best tree seen, all cuts that
    # were refuted, and trees too deep to be searched. Below the cutoff ``best`` is exact: none of these costs less.
    if node.to_try > 0 and node.best >= node.cutoff:
        node.best = min(node.best, node.split_bound, node.too_deep_bound)
        node.tree_length = 0
    if node.to_try != NOT_SEARCHED and node.rows > 1:
        remember(memory, node, size_key(node), levels.context[level], levels.tree[level])


@kernel(borrows=True)
def start_cut(levels, level, t, sweeps):
    """Start a cut; return the side to solve first."""
    node = levels.nodes[level]
    node.cut = t
    if node.leaves != UNLIMITED and node.share == 0:
        node.share = node.leaves - widest_side(node) if sweeps else BOTH
    node.right_first = 1 if 2 * node.share > node.leaves else 0
    node.deep = NO_SIDE
    if node.need > 0:  # one side must be deep; the other one, of any depth, comes first
        left, right = bounds_by_deep_side(bounds_at(levels, level), deep_at(levels, level), t)
        node.deep = LEFT_SIDE if left <= right else RIGHT_SIDE
        node.right_first = 1 if node.deep == LEFT_SIDE else 0
    node.phase = LEFT
    return RIGHT_SIDE if node.right_first == 1 else LEFT_SIDE


@kernel(borrows=True)
def next_share(levels, level, bounds):
    """After a cut's sides: go to the next share of leaves, if there is one; return whether the cut is finished."""
    node = levels.nodes[level]
    limited = node.leaves != UNLIMITED
    if node.share > 0:
        node.share += 1
        return False
    if limited and bounds.left[node.cut] + bounds.right[node.cut] < cutoff_of(node):
        node.share = node.leaves - widest_side(node)
        return False
    node.share = 0
    return True


@kernel
def make_swept():
    """Arrays for the cuts of one sweep."""
    left, right = np.empty((MOST_CUTS, 4), np.int64), np.empty((MOST_CUTS, 4), np.int64)
    return Swept(np.empty(MOST_CUTS, np.int64), left, right, np.empty(MOST_CUTS, np.int64))


@kernel(
    takes=(i8, Levels, Rules, i8, SweepTables, Memory, Progress, long_1d, long_1d, Special),
    for_python=False,
    separate=True,
    borrows=True,
)
def run_stack(level, levels, rules, max_cuts, tables, memory, progress, counters, control, special):
    """Run the stack as :func:`advance` does, until a node needs tables of its own (``counts[NEEDED]`` of its progress).

    It is apart from :func:`advance`, which makes the tables, so that it borrows all its arrays.
    """
    swept, keys, counts = progress
    counts[NEEDED] = 0
    while control[STOP] == 0:
        node = levels.nodes[level]
        bounds, deep = bounds_at(levels, level), deep_at(levels, level)
        side = NO_SIDE
        if node.phase == ENTER:
            counters[NODES] += 1
            relaxed = level > 0 and levels.nodes[level - 1].relaxed != 0
            node.phase = enter(levels, level, tables.rules if relaxed else rules, memory, counters, control, special)
            # Only nodes of depth three read tables, and nodes below them are terminal: one set of tables is enough.
            if node.phase == FEATURE and node.useful_depth == 3:
                counts[NEEDED] = 1
                return level
        elif node.phase == FEATURE:
            if node.next == node.to_try:
                node.phase = DONE
                continue
            open_feature(levels, level, rules, control)
            # Inner bounds are of sides of cuts of one feature; a new feature starts without any.
            if shares_inner(levels, level):
                forget_inner(levels, level)
            if node.useful_depth == 3 and control[SIMILAR] != 0 and level > 0 and shares_inner(levels, level - 1):
                inherit_inner(levels, level)
            if node.useful_depth == 3 and tables.pays != 0 and remembers_sides(memory, control):
                side_keys(rows_at(levels, level), node.feature, keys)
                recall_sides(memory, keys, levels.bins[level, node.feature] - 1, bounds)
            counts[BATCH] = 0
            node.phase = CUT
        elif node.phase == CUT:
            t = node.cut
            # With a leaf limit, a cut is solved for every share of leaves of its left side; then the sum of both bounds
            # reaches the cutoff, so that the cut is closed.
            if node.share > widest_side(node):
                bounds.right[t] = max(bounds.right[t], cutoff_of(node) - bounds.left[t])
                node.share = 0
                counts[SOLVED] += level == 0 and counts[BATCH] == 0
            sweeps = node.useful_depth == 3 and tables.pays != 0
            if node.share == 0:
                if level == 0 and counts[SOLVED] >= max_cuts:
                    node.phase = DONE
                    continue
                cuts = levels.bins[level, node.feature] - 1
                t = -1
                if sweeps:
                    # A swept cut is taken if its bound is exact; otherwise the most promising one is solved.
                    j = best_swept(bounds, deep, swept, counts[BATCH], cutoff_of(node))
                    if j >= 0 and tables.exact != 0:
                        take_swept(levels, level, swept, j)
                        continue  # its value is the cutoff now, so that the next look closes this cut
                    if j >= 0:
                        t = swept.cuts[j]
                    else:
                        batch = sweep_next(levels, level, tables, swept, keys, memory, control, special)
                        if batch < 0:
                            return level
                        counts[BATCH] = batch
                        if batch > 0:
                            counters[CUTS] += batch
                            counters[SWEEPS] += 1
                            counts[SOLVED] += level == 0
                            continue
                else:
                    t = next_cut(levels, level, bounds, deep, cuts)
                # No cut is below the cutoff: the least bound of all cuts is that of the feature, and so of the node.
                if t < 0:
                    if node.useful_depth == 3 and level > 0 and shares_inner(levels, level - 1):
                        keep_inner(levels, level)
                    node.split_bound = min(node.split_bound, least_bound(bounds, deep, cuts) + node.paid)
                    node.next += 1
                    node.phase = FEATURE
                    continue
                counters[CUTS] += not sweeps
            side = start_cut(levels, level, t, sweeps)
            relaxes = node.useful_depth == 3 and tables.relaxed != 0 and node.leaves == UNLIMITED
            node.relaxed = 1 if relaxes and not sweeps else 0  # swept cuts are bounded already
        elif node.phase == DONE:
            if level == 0:
                return 0
            close_node(levels, level, memory)
            level -= 1
        else:
            # Under relaxed rules a side's value is a bound only. A cut that this does not refute is solved once more,
            # under all rules.
            relaxed = node.relaxed != 0
            side = take_side(levels, level, tables.rules if relaxed else rules, control)
            if side == NO_SIDE and relaxed and bound_of_cut(bounds, deep, node.cut) < cutoff_of(node):
                node.relaxed = 0
                side = start_cut(levels, level, node.cut, False)
            elif side == NO_SIDE and next_share(levels, level, bounds):
                # Swept cuts were counted when they were swept, unless they are solved share by share.
                counts[SOLVED] += level == 0 and (counts[BATCH] == 0 or node.leaves != UNLIMITED)
        if side != NO_SIDE:
            if shares_inner(levels, level):
                call_move_inner(loaded(control, MOVE), (levels, level, side, node.cut, rules))
            push_child(levels, level, side)
            level += 1
    return level


@kernel(takes=(i8, Levels, Rules, i8, SweepTables, Memory, long_1d, long_1d, Special))
def advance(level, levels, rules, max_cuts, tables, memory, counters, control, special):
    """Run the stack until level 0 is done, ``max_cuts`` of its cuts are solved, or the stop flag is set.

    Level 0 is set up by the caller. Returns the level to resume from (level 0 and phase DONE: finished).
    """
    keys = np.empty((4, levels.left.shape[1]), np.int64)
    progress = Progress(make_swept(), keys, np.zeros(3, np.int64))
    while True:
        level = run_stack(level, levels, rules, max_cuts, tables, memory, progress, counters, control, special)
        if progress.counts[NEEDED] == 0:
            return level
        tables = make_tables(rows_at(levels, level), rules, special)
