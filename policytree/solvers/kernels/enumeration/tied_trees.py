"""All trees of depth two or less that cost no more than a limit: they are counted, and the best are written down.

First cuts are swept along each feature, while the sums of the left side grow. Each side has a best tree of depth one.
If the two together exceed the limit, no tree with this first cut is a near-tie. Else each side may cost what the other
one's best tree leaves of the limit: its splits within that are sorted, and two pointers count the pairs.

Two trees differ if they ask different questions or give different actions. Two cuts of one feature are one question at
a node if they divide its rows alike. No leaf is empty, and two leaves of one split have different actions.

A side's tree is a number: -1 - action for a leaf, (place * K + action left) * K + action right for a split.

Cost: O(p^2 n + S^2) sums to bound all first cuts; for an open one its m splits within the limit are sorted.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.child_rows import order_rows
from policytree.solvers.kernels.base.layout import (
    INF,
    STOP,
    Rows,
    Rules,
    i8,
    int_1d,
    int_2d,
    long_1d,
    long_2d,
)
from policytree.solvers.kernels.base.sums import costly
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.enumeration.side_splits import (
    Questions,
    Side,
    feasible,
    leaf_value,
    least_value,
    node_side,
    price_of,
    rows_to_exceed,
    splits_within,
)

COUNTED, CARRIED, KEPT, CUTOFF = 0, 1, 2, 3  # places in Ties.state
CARRY = 1 << 62
NOTHING = -(1 << 31)  # of a tree's place that it does not have


class Goal(NamedTuple):
    """Limits of the trees to count, and how many of them to keep."""

    limit: i8  # largest value, penalties included
    depth: i8  # 0, 1 or 2
    leaves: i8  # most leaves
    most: i8  # the best so many are kept; 0: only values, as long as there is room
    begin: i8  # columns of the first split, from here
    end: i8  # to before here; the tree of one leaf belongs to column 0


class Ties(NamedTuple):
    """Trees found. ``state``: trees counted, in two words; how many are kept; the largest cost of the next one."""

    values: long_1d  # (room,), at least twice goal.most
    sizes: int_1d  # (room,) leaves
    trees: int_2d  # (room, 7) root, its children, theirs: place of a split, -1 - action of a leaf; (0, 7): values only
    state: long_1d


class Sides(NamedTuple):
    """Both sides of a first cut, and what the best tree on either costs."""

    left: Side
    right: Side
    least: long_1d  # (2,)


class Task(NamedTuple):
    """Rows, rules, questions and goal of a count."""

    rows: Rows
    rules: Rules
    questions: Questions
    goal: Goal


@kernel(separate=True)
def drop_worst(ties, most):
    """Keep the best of what was kept, of ties the first ones; what comes later has to be better than the worst."""
    kept = ties.state[KEPT]
    worst = np.sort(ties.values[:kept])[most - 1]
    below = 0
    for i in range(kept):
        below += 1 if ties.values[i] < worst else 0
    ties_left = most - below
    m = 0
    for i in range(kept):
        v = ties.values[i]
        if v < worst or (v == worst and ties_left > 0):
            ties_left -= 1 if v == worst else 0
            ties.values[m] = v
            ties.sizes[m] = ties.sizes[i]
            ties.trees[m] = ties.trees[i]
            m += 1
    ties.state[KEPT] = m
    ties.state[CUTOFF] = worst - 1


@kernel
def write_side(tree, at, code, K):
    """Write a side's tree to its place in the tree; returns its leaves."""
    if code < 0:
        tree[at] = code
        return 1
    tree[at] = code // (K * K)
    tree[2 * at + 1] = -1 - (code // K) % K
    tree[2 * at + 2] = -1 - code % K
    return 2


@kernel
def keep(ties, most, K, value, root, left, right):
    """Write down one tree; ``root`` below 0 is a tree of one leaf."""
    state = ties.state
    if most > 0 and state[KEPT] == len(ties.values):
        drop_worst(ties, most)
    k = state[KEPT]
    if k == len(ties.values):  # values only, and no room: the count tells
        state[CUTOFF] = -INF
    if value > state[CUTOFF]:
        return
    state[KEPT] = k + 1
    ties.values[k] = value
    size = 1 if root < 0 else (1 if left < 0 else 2) + (1 if right < 0 else 2)
    ties.sizes[k] = size
    if len(ties.trees) > 0:
        tree = ties.trees[k]
        for j in range(7):
            tree[j] = NOTHING
        tree[0] = root
        if root >= 0:
            write_side(tree, 1, left, K)
            write_side(tree, 2, right, K)


@kernel
def add(state, count):
    """Add to the number of trees."""
    state[COUNTED] += count
    if state[COUNTED] >= CARRY:
        state[COUNTED] -= CARRY
        state[CARRIED] += 1


@kernel(separate=True)
def pair_up(x, x_codes, y, y_codes, paid, root, K, goal, ties):
    """Count all pairs of a left and a right tree, each ascending, within the limit; keep those that are good enough."""
    j = len(y)
    for i in range(len(x)):
        rest = goal.limit - paid - x[i]
        while j > 0 and y[j - 1] > rest:
            j -= 1
        if j == 0:
            break
        add(ties.state, j)
    for i in range(len(x)):
        if len(y) == 0 or x[i] + y[0] + paid > ties.state[CUTOFF]:
            break
        for k in range(len(y)):
            value = x[i] + y[k] + paid
            if value > ties.state[CUTOFF]:
                break
            keep(ties, goal.most, K, value, root, x_codes[i], y_codes[k])


class Lists(NamedTuple):
    """Room for the trees of both sides of a first cut: values, and what they are."""

    values: long_2d  # (2, most)
    codes: long_2d


@kernel(separate=True)
def try_cut(root, paid, sides, task, lists, ties):
    """All trees with one first cut, whose split costs ``paid``."""
    rules, questions, goal = task.rules, task.questions, task.goal
    K = rules.n_losses + 1
    leaves = np.empty((2, K), np.int64)
    names = np.empty((2, K), np.int64)
    n_left = 0
    n_right = 0
    for a in range(K):
        if feasible(sides.left, rules):
            leaves[0, n_left] = leaf_value(sides.left, rules, a)
            names[0, n_left] = -1 - a
            n_left += 1
        if feasible(sides.right, rules):
            leaves[1, n_right] = leaf_value(sides.right, rules, a)
            names[1, n_right] = -1 - a
            n_right += 1
    for i in range(n_left):
        for j in range(n_right):
            value = leaves[0, i] + leaves[1, j] + paid
            if names[0, i] != names[1, j] and value <= goal.limit:
                add(ties.state, 1)
                keep(ties, goal.most, K, value, root, names[0, i], names[1, j])
    if goal.depth < 2 or goal.leaves < 3:
        return
    v, c = lists.values, lists.codes
    rest = goal.limit - paid
    x = splits_within(sides.left, task.rows, rules, questions, rest - sides.least[1], v[0], c[0])
    y = splits_within(sides.right, task.rows, rules, questions, rest - sides.least[0], v[1], c[1])
    for i in range(n_left):
        pair_up(leaves[0, i : i + 1], names[0, i : i + 1], v[1, :y], c[1, :y], paid, root, K, goal, ties)
    for j in range(n_right):
        pair_up(v[0, :x], c[0, :x], leaves[1, j : j + 1], names[1, j : j + 1], paid, root, K, goal, ties)
    if goal.leaves >= 4:
        pair_up(v[0, :x], c[0, :x], v[1, :y], c[1, :y], paid, root, K, goal, ties)


@kernel
def divide(node, grown, rows, sides):
    """The sums of both sides from the sums of the rows that moved left, which are not cumulated."""
    left, right = sides.left, sides.right
    for q in range(len(node.total)):
        h = grown[q]
        whole = node.sums[q]
        x = left.sums[q]
        y = right.sums[q]
        for f in range(len(rows.bins)):
            o = rows.offset[f]
            s = 0
            for u in range(o, o + rows.bins[f]):
                s += h[u]
                x[u] = s
                y[u] = whole[u] - s
        right.total[q] = node.total[q] - left.total[q]


@kernel(takes=(Rows, Rules, Questions, Goal, Ties, long_1d))
def tied_trees(rows, rules, questions, goal, ties, control):
    """Count and keep all trees within the limit whose first split is on columns goal.begin to goal.end.

    Cuts are refuted by the last one that was evaluated, as if leaves might have any rows: the rows D that have moved
    left since then add at least what they cost at best, and take at most what they cost at worst from the right side,
    with the dearest split. Minima are left out of that, since a part of a tree's rows may be too few for its leaves.
    """
    n, p, P = rows.n, len(rows.bins), rules.n_losses
    node = node_side(rows, rules)
    free = Rules(P, np.zeros_like(rules.minima), rules.prices, rules.penalty, rules.beyond, rules.uneven, rules.loose)
    K, Q1, S = P + 1, len(node.total), rows.offset[p]
    if goal.begin == 0 and goal.leaves >= 1 and feasible(node, rules):
        for a in range(K):
            value = leaf_value(node, rules, a)
            if value <= goal.limit:
                add(ties.state, 1)
                keep(ties, goal.most, K, value, -1 - a, 0, 0)
    if goal.depth == 0 or goal.leaves < 2:
        return
    left = Side(np.empty((Q1, S), np.int64), np.empty(Q1, np.int64))
    right = Side(np.empty((Q1, S), np.int64), np.empty(Q1, np.int64))
    sides = Sides(left, right, np.empty(2, np.int64))
    task = Task(rows, rules, questions, goal)
    room = S * K * (K - 1) if goal.depth > 1 else 0
    lists = Lists(np.empty((2, room), np.int64), np.empty((2, room), np.int64))
    grown = np.empty((Q1, S), np.int64)
    order = np.empty(n, np.int32)
    ends = np.empty(rows.bins.max() + 1 if p > 0 else 1, np.int64)
    for f in range(goal.begin, goal.end):
        exceed = rows_to_exceed(questions, node, rows, f)
        if exceed == n or not questions.first[f]:
            continue
        order_rows(rows, f, order, ends)
        grown[:] = 0
        left.total[:] = 0
        paid = price_of(node, rules, rows, f)
        known_left = -INF
        known_right = -INF
        for t in range(rows.bins[f] - 1):
            start, at = ends[t], ends[t + 1]
            for j in range(start, at):
                i = order[j]
                low = 0
                high = 0
                for q in range(Q1):
                    v = rows.planes[q, i] if q < Q1 - 1 else 1
                    left.total[q] += v
                    if q < P:
                        low = min(low, v)
                        high = max(high, v)
                    for g in range(p):
                        grown[q, rows.offset[g] + np.int64(rows.codes[g, i])] += v
                known_left += low
                known_right -= high + (rows.planes[Q1 - 2, i] if costly(rules) else 0)
            if at == start or at <= exceed:
                continue
            if at == n or control[STOP] != 0:
                break
            if known_left + known_right + paid > goal.limit:
                continue
            divide(node, grown, rows, sides)
            known_left = least_value(left, rows, free, goal.depth - 1)
            known_right = least_value(right, rows, free, goal.depth - 1)
            if known_left + known_right + paid > goal.limit:
                continue
            sides.least[0] = known_left
            sides.least[1] = known_right
            if len(rules.minima) > 0:
                sides.least[0] = least_value(left, rows, rules, goal.depth - 1)
                sides.least[1] = least_value(right, rows, rules, goal.depth - 1)
            if sides.least[0] + sides.least[1] + paid <= goal.limit:
                try_cut(rows.offset[f] + t, paid, sides, task, lists, ties)
