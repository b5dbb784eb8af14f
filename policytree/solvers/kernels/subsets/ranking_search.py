"""All trees whose leaf costs add up to little enough, one after the other; complete ones are scored exactly.

A state is an unfinished tree: leaves, and open nodes of which the first is decided next. It may become a leaf, or be
cut where the least costs of both sides (ranking_bounds.py) leave the sum small enough. Leaves count what they cost
together. Of cuts that divide the rows in
the same way one is enough.

Cost: the sets that are entered for the bounds; few hundred operations for every state.
Symbols: see ranking_layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import STOP, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.ranking_bounds import (
    bound_ranking,
    column_of,
    descend_ranking,
    enter_ranking,
    hand_on,
)
from policytree.solvers.kernels.subsets.ranking_costs import cost_of, cost_together, sort_by_share
from policytree.solvers.kernels.subsets.ranking_layout import (
    AREA,
    BETTER,
    CHOICE,
    CHOICES,
    CLOSE,
    CUTOFF,
    CUTS,
    DEPTH,
    DONE,
    KEY1,
    KEY2,
    LEAF,
    LEAST,
    LEAVES,
    NEGATIVE,
    NODE_FIRST,
    NODE_NEXT,
    NODE_ROWS,
    NODE_SIZE,
    OPEN_NODE,
    POSITIVE,
    SIZE,
    STATES,
    STOPPED,
    TOO_DEEP,
    TREES,
    Judge,
    OpenTrees,
    RankingPath,
    RankingRows,
    f8,
)
from policytree.solvers.kernels.subsets.table import known_real_1d, tighten


@kernel
def area_lost(leaves, m, order, limit):
    """One minus the area under the ROC curve of ranked leaves up to a false positive rate, divided by that rate."""
    sort_by_share(leaves, m, order)
    x, y, area = 0.0, 0.0, 0.0
    for k in range(m):
        p, n = leaves[order[k], POSITIVE], leaves[order[k], NEGATIVE]
        width = min(n, limit - x)
        if width > 0.0:
            area += width * (y + 0.5 * p * width / n)
        x += n
        y += p
    return 1.0 - area / limit


@kernel
def omega_lost(leaves, m, numbers):
    """One minus the F-score of leaves labelled by omega.

    Sums of whole weights are rounded to whole numbers, so that ties are ties. Where sums are not exact, a leaf within
    ``doubt`` of a tie counts as if it had no errors: its label is decided outside.
    """
    omega, b, P, N, doubt = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    false_positives, missed = 0.0, 0.0
    for i in range(m):
        p, n = np.rint(leaves[i, POSITIVE] * P), np.rint(leaves[i, NEGATIVE] * N)
        over = omega * p - n
        if over > doubt:
            false_positives += n
        elif over < -doubt or doubt == 0.0:
            missed += p
    return (false_positives + b * missed) / ((1.0 + b) * P - missed + false_positives)


@kernel
def ranking_loss(judge, leaves, m, order):
    """The loss of leaf statistics, leaf penalties included."""
    if judge.kind == AREA:
        return area_lost(leaves, m, order, judge.numbers[0]) + judge.price * m
    return omega_lost(leaves, m, judge.numbers) + judge.price * m


@kernel
def same_division(path, t, trees, s, count):
    """Whether one of the choices of state s divides the rows of level 0 as cut t does."""
    names, name = path.names[0], path.name[0]
    for c in range(count):
        u = trees.cut[s, c]
        if u == LEAF:
            continue
        equal = names[u, KEY1] == names[t, KEY1] and names[u, KEY2] == names[t, KEY2]
        flipped = name[KEY1] - names[u, KEY1] == names[t, KEY1] and name[KEY2] - names[u, KEY2] == names[t, KEY2]
        if equal or flipped:
            return True
    return False


@kernel
def settle_cut(data, path, table, t, most, slack, counters, control):
    """Work on the sides of a cut of level 0 until both least costs are found, or sum up to more than ``most``."""
    low, up = path.low[0], path.up[0]
    for v in range(2):
        if low[0, t] + low[1, t] <= most and up[v, t] - low[v, t] > CLOSE:
            path.numbers[1, CUTOFF] = most - low[1 - v, t] + CLOSE
            descend_ranking(data, path, 0, t, v)
            bound, best = bound_ranking(data, path, table, 1, slack, counters, control)
            tighten(low, up, v, t, bound, best)
            if low[0, t] + low[1, t] > most:
                hand_on(data, path, 0)


@kernel
def find_choices(data, path, table, trees, s, most, slack, counters, control):
    """Find the choices for the first open node of state s that cost at most so much."""
    node = trees.at[s, OPEN_NODE]
    size, first, source = trees.node[node, NODE_SIZE], trees.node[node, NODE_FIRST], trees.node[node, NODE_ROWS]
    count, least = 0, 0.0
    for q in range(size):
        i = trees.rows[source, first + q]
        path.rows[0, q] = i
        least += data.sums[i, LEAST]
    if trees.cost[node, 0] <= most:
        trees.cut[s, 0] = LEAF
        count = 1
    if trees.depth[node] > 0 and size > 1 and least + 2.0 * data.price <= most:
        path.whole[0, SIZE], path.whole[0, DEPTH], path.numbers[0, CUTOFF] = size, trees.depth[node], most + CLOSE
        path.box[0] = trees.box[node]
        enter_ranking(data, path, 0, table, True)
        for k in range(path.whole[0, CUTS]):
            t = path.cuts[0, k]
            if path.low[0, 0, t] + path.low[0, 1, t] > most or (s == 0 and data.first[column_of(data, t)] == 0):
                continue
            if same_division(path, t, trees, s, count):
                continue
            settle_cut(data, path, table, t, most, slack, counters, control)
            if path.low[0, 0, t] + path.low[0, 1, t] <= most:
                trees.cut[s, count] = t
                trees.least[s, 0, count], trees.least[s, 1, count] = path.low[0, 0, t], path.low[0, 1, t]
                count += 1
    trees.at[s, CHOICE], trees.at[s, CHOICES] = 0, count


@kernel
def become_leaf(data, trees, s):
    """The next state if the first open node becomes a leaf."""
    node, m = trees.at[s, OPEN_NODE], trees.at[s, LEAVES]
    trees.leaves[m] = trees.shares[node]
    trees.chosen[s] = LEAF
    after = trees.node[node, NODE_NEXT]
    trees.at[s + 1, OPEN_NODE], trees.at[s + 1, LEAVES] = after, m + 1
    trees.spent[s + 1, 0] = cost_together(data.costs, trees.leaves, m + 1, trees.order) + data.price * (m + 1)
    trees.spent[s + 1, 1] = 0.0 if after < 0 else trees.spent[s, 1] - trees.cost[after, 1]


@kernel
def cut_node(data, trees, s, choice):
    """The next state if the first open node is cut."""
    node, t, x = trees.at[s, OPEN_NODE], trees.cut[s, choice], 2 * s + 2
    j = column_of(data, t)
    codes, cut = data.codes[j], t - data.offset[j]
    source, first, size = trees.node[node, NODE_ROWS], trees.node[node, NODE_FIRST], trees.node[node, NODE_SIZE]
    end = 0
    for v in range(2):
        begin = end
        p, n = 0.0, 0.0
        for q in range(first, first + size):
            i = trees.rows[source, q]
            if (codes[i] <= cut) == (v == 0):
                trees.rows[s + 1, end] = i
                p += data.sums[i, POSITIVE]
                n += data.sums[i, NEGATIVE]
                end += 1
        trees.node[x + v, NODE_ROWS], trees.node[x + v, NODE_FIRST] = s + 1, begin
        trees.node[x + v, NODE_SIZE] = end - begin
        trees.depth[x + v] = trees.depth[node] - 1
        trees.box[x + v] = trees.box[node]
        trees.box[x + v, j, 1 - v] = cut + 1
        trees.shares[x + v, POSITIVE], trees.shares[x + v, NEGATIVE] = p, n
        trees.cost[x + v, 0] = cost_of(data.costs, p, n) + data.price
        trees.cost[x + v, 1] = trees.least[s, v, choice]
    trees.node[x, NODE_NEXT], trees.node[x + 1, NODE_NEXT] = x + 1, trees.node[node, NODE_NEXT]
    trees.chosen[s] = t
    trees.at[s + 1, OPEN_NODE], trees.at[s + 1, LEAVES] = x, trees.at[s, LEAVES]
    trees.spent[s + 1, 0] = trees.spent[s, 0]
    trees.spent[s + 1, 1] = trees.spent[s, 1] + trees.cost[x + 1, 1]


@kernel
def open_nodes(trees, s):
    """Number of open nodes of a state."""
    count, node = 0, trees.at[s, OPEN_NODE]
    while node >= 0:
        count += 1
        node = trees.node[node, NODE_NEXT]
    return count


@kernel(takes=(RankingRows, RankingPath, known_real_1d, OpenTrees, Judge, f8, f8, i8, long_1d, long_1d))
def search_ranking(data, path, table, trees, judge, best, slack, s, counters, control):
    """Search for a tree whose loss is below ``best``.

    Returns how the search ended, and the state of the tree that is better (its choices stand in ``trees.chosen``).
    State 0 holds the root as its open node; from a later state, that of a whole tree, the search goes on after it.
    """
    fresh = s == 0
    while True:
        if control[STOP] != 0:
            return STOPPED, s
        node, m = trees.at[s, OPEN_NODE], trees.at[s, LEAVES]
        most = judge.most - trees.spent[s, 0] - trees.spent[s, 1]
        if fresh:
            fresh = False
            counters[STATES] += 1
            trees.at[s, CHOICES] = 0
            trees.at[s, CHOICE] = 0
            if node < 0:
                counters[TREES] += 1
                spent = trees.spent[s, 0] - data.price * m
                if spent <= judge.cutoff[m] and ranking_loss(judge, trees.leaves, m, trees.order) < best:
                    return BETTER, s
            else:
                find_choices(data, path, table, trees, s, most, slack, counters, control)
        choice = trees.at[s, CHOICE]
        if choice >= trees.at[s, CHOICES]:
            if s == 0:
                return DONE if control[STOP] == 0 else STOPPED, s
            s -= 1
            continue
        trees.at[s, CHOICE] += 1
        if trees.cut[s, choice] == LEAF:
            become_leaf(data, trees, s)
        else:
            if m + open_nodes(trees, s) >= judge.largest:
                continue
            if s + 3 >= len(trees.chosen):
                return TOO_DEEP, s
            cut_node(data, trees, s, choice)
        s += 1
        fresh = True
