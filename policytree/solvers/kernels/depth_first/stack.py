"""The stack of the search: one level for every split on the path, and the steps that change one level.

Each level holds a node: its rows, their order by the feature that is being tried, bounds of that feature's cuts, and
the best tree so far. A node goes through these phases (search.py):

    ENTER --- solved outright: by the cache, as a leaf, by depth two ---------------------> DONE
      |                                                                                      ^
      +--> FEATURE: the next feature --- none left ------------------------------------------+
              ^  |
              |  +--> CUT: choose a cut, or sweep many --> LEFT: solve one side --> RIGHT: solve the other
              |        ^  |                                 |                         |
              |        +--|--- bounds refute the cut -------+-------------------------+
              +-----------+    no cut left below the cutoff

With a limit of leaves that binds, the sides of a cut are first bounded as if each could have all leaves but one
(share BOTH). A cut that this does not refute is solved share by share: ``share`` leaves left, the others right.

Where a node needs deep trees, one side of its cuts has to be deep (see depth_two/similarity_bounds.py); ``deep`` says
which. The other side is solved first, which is quick, as a deep tree leaves little to it.

Cost: n steps for every feature and plane when a feature is opened or a child made, otherwise as many as there are cuts.
Symbols: see base/layout.py; ``cutoff`` is what the best tree so far leaves to both sides of a cut.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.child_rows import Packed, order_rows, pack_rows
from policytree.solvers.kernels.base.layout import (
    INF,
    LOOK_AHEAD,
    SIMILAR,
    UNLIMITED,
    Bounds,
    Deep,
    Rows,
    Rules,
    codes_3d,
    i8,
    int_2d,
    long_1d,
    long_2d,
    long_3d,
    long_4d,
    nodes_1d,
)
from policytree.solvers.kernels.base.sums import charge, rows_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.similarity_bounds import (
    row_bounds,
    spread_bounds,
    spread_deep,
    start_bounds,
    start_deep,
)
from policytree.solvers.kernels.depth_two.solve import FirstSplits

ENTER, FEATURE, CUT, LEFT, RIGHT, DONE = 0, 1, 2, 3, 4, 5  # phases
LEAST_NEED = 3  # up to this depth needed, both sides are searched for any tree: they are solved at once
BOTH = -1  # share: either side may have all leaves but one
NOT_SEARCHED = -1  # to_try: a leaf, or known from the cache; nothing to remember
NO_SIDE, LEFT_SIDE, RIGHT_SIDE = -1, 0, 1  # which side to solve next


class Levels(NamedTuple):
    """Arrays with one entry for every level of the stack."""

    nodes: nodes_1d
    codes: codes_3d
    planes: long_3d
    bins: long_2d
    offset: long_2d
    groups: long_2d
    owners: long_2d
    columns: long_2d  # of the problem, by feature
    cuts: long_2d  # of the problem, by place
    index: int_2d  # rows in the order of the feature being tried
    ends: long_2d  # and how many have a code below t
    left: long_2d  # bounds of its cuts, see Bounds
    right: long_2d
    least: long_2d
    most: long_2d
    deep_left: long_2d  # see Deep
    deep_right: long_2d
    order: long_2d  # in which features are tried
    first_values: long_2d  # of depth two, see FirstSplits
    first_cuts: long_2d
    tree: long_3d  # (column, cut) in preorder: the best so far
    first_tree: long_3d  # of the side that was solved first
    inner_at: long_2d  # (levels, 4): for which cut each side's inner bounds hold (-1: none), and how much more than
    # needed each side is refuted by; see inherited_bounds.py
    context: long_2d  # (levels, words): the test groups that were paid for, as bits; see node_bounds.name_context
    # Of either side of the node's last cut, for every cut (g, u) of it: its rows of code <= u, and the others.
    inner: long_4d  # (levels, 2, 2, places of the problem); see inherited_bounds.py


@kernel(inline="always")
def rows_at(levels, level):
    """The rows of a level's node."""
    node = levels.nodes[level]
    p = node.features
    return Rows(
        levels.codes[level], levels.planes[level], levels.bins[level, :p], levels.offset[level, : p + 1],
        levels.groups[level, :p], levels.owners[level, :p], node.rows,
    )  # fmt: skip


@kernel(inline="always")
def bounds_at(levels, level):
    """The bounds of the feature that a level tries."""
    return Bounds(levels.left[level], levels.right[level], levels.least[level], levels.most[level])


@kernel(inline="always")
def deep_at(levels, level):
    """Bounds of these cuts' sides with a deep tree; with any tree, where no depth is needed."""
    needed = levels.nodes[level].need > 0
    left = levels.deep_left[level] if needed else levels.left[level]
    right = levels.deep_right[level] if needed else levels.right[level]
    return Deep(left, right)


@kernel(inline="always")
def first_at(levels, level):
    """Return the values of the first splits of a level's node at depth two."""
    return FirstSplits(levels.first_values[level], levels.first_cuts[level])


@kernel(inline="always")
def cutoff_of(node):
    """Return the cost that both sides of a cut must stay below together to be of use."""
    return min(node.cutoff, node.best) - node.paid


@kernel(inline="always")
def widest_side(node):
    """The most leaves that one side of a cut may have."""
    most = node.leaves - 1
    return min(most, 1 << (node.useful_depth - 1)) if node.useful_depth < 30 else most


@kernel(takes=(Levels, i8, Rules, long_1d), for_python=False, separate=True, borrows=True)
def open_feature(levels, level, rules, control):
    """Order the rows by the next feature, and bound its cuts."""
    node = levels.nodes[level]
    f = levels.order[level, node.next]
    node.feature = f
    rows, bounds = rows_at(levels, level), bounds_at(levels, level)
    order_rows(rows, f, levels.index[level], levels.ends[level])
    row_bounds(rows, rules, f, node.useful_depth - 1, bounds, 0)
    node.paid = charge(rows, rules, f)
    start_bounds(rows, rules, f, bounds, level == 0, control[LOOK_AHEAD] != 0)
    if node.need > 0:
        start_deep(bounds, deep_at(levels, level), rows.bins[f] - 1, node.need, rules.penalty, level == 0)


@kernel(inline="always")
def first_is_shallow(levels, level):
    """Whether the first side's tree is surely not deep.

    An entry stands for depth two at most, so k splits come to a depth of k + 2 at most.
    """
    node, tree = levels.nodes[level], levels.first_tree[level]
    if node.first_length == 3 and tree[1, 0] == -1 and tree[2, 0] == -1:
        return True
    return node.first_length > 0 and 2 + node.first_length // 2 <= node.need - 2


@kernel(borrows=True)
def bound_of_side(levels, level, side):
    """Bound the cost of one side of the chosen cut below, more where its tree has to be deep."""
    node = levels.nodes[level]
    bound = levels.left[level, node.cut] if side == LEFT_SIDE else levels.right[level, node.cut]
    if node.deep == side:
        deep = deep_at(levels, level)
        bound = max(bound, deep.left[node.cut] if side == LEFT_SIDE else deep.right[node.cut])
    return bound


@kernel(takes=(Levels, i8, i8), for_python=False, separate=True)
def push_child(levels, level, side):
    """Make the rows of one side of the chosen cut the node of the next level."""
    node = levels.nodes[level]
    t = node.cut
    start = 0 if side == LEFT_SIDE else levels.ends[level, t + 1]
    end = levels.ends[level, t + 1] if side == LEFT_SIDE else node.rows
    other = node.first_value if node.phase == RIGHT else bound_of_side(levels, level, 1 - side)
    below = level + 1
    to = Packed(
        levels.codes[below], levels.planes[below], levels.bins[below], levels.offset[below], levels.groups[below],
        levels.owners[below], levels.columns[below], levels.cuts[below],
    )  # fmt: skip
    rows = rows_below(rows_at(levels, level), node.feature)
    child = levels.nodes[below]
    child.features = pack_rows(rows, levels.columns[level], levels.cuts[level], levels.index[level], start, end, to)
    child.rows = end - start
    child.leaves = node.leaves
    if node.leaves != UNLIMITED and node.share == BOTH:
        child.leaves = node.leaves - 1
    elif node.leaves != UNLIMITED:
        child.leaves = node.share if side == LEFT_SIDE else node.leaves - node.share
    child.depth = node.useful_depth - 1
    # A child that costs this much refutes the cut: with its other side, which costs ``other`` at least.
    child.enough = cutoff_of(node) - other
    # The exact value of a terminal child bounds more of the other cuts than a bound that only refutes the child.
    child.cutoff = INF if min(child.depth, child.leaves - 1) <= 2 else child.enough
    child.need = 0
    if node.deep == side and node.need > LEAST_NEED and first_is_shallow(levels, level):
        child.need = node.need - 1
    child.share = 0
    child.paid = 0
    child.phase = ENTER


@kernel(borrows=True)
def join_sides(levels, level, second_length):
    """Make a node's best tree of its cut and the trees of both sides."""
    node = levels.nodes[level]
    tree, first_tree, second_tree = levels.tree[level], levels.first_tree[level], levels.tree[level + 1]
    tree[0, 0] = levels.columns[level, node.feature]
    tree[0, 1] = levels.cuts[level, levels.offset[level, node.feature] + node.cut]
    # Preorder: the left side's tree stands first, whichever side was solved first.
    at = 1 if node.right_first == 0 else 1 + second_length
    for i in range(node.first_length):
        tree[at + i, 0] = first_tree[i, 0]
        tree[at + i, 1] = first_tree[i, 1]
    at = 1 if node.right_first == 1 else 1 + node.first_length
    for i in range(second_length):
        tree[at + i, 0] = second_tree[i, 0]
        tree[at + i, 1] = second_tree[i, 1]
    node.tree_length = 1 + node.first_length + second_length


@kernel(takes=(Levels, i8, Rules, long_1d), for_python=False, separate=True, borrows=True)
def take_side(levels, level, rules, control):
    """Use the result of the side that was just solved; returns the side to solve next.

    ``rules``: those that the side was solved under.
    """
    node, child = levels.nodes[level], levels.nodes[level + 1]
    bounds = bounds_at(levels, level)
    t = node.cut
    value, length = child.best, child.tree_length
    first = node.phase == LEFT
    on_left = first == (node.right_first == 0)
    cutoff = cutoff_of(node)
    if first:
        node.first_value = value
        node.first_length = length
        for i in range(length):
            levels.first_tree[level, i, 0] = levels.tree[level + 1, i, 0]
            levels.first_tree[level, i, 1] = levels.tree[level + 1, i, 1]
    # Bounds of cuts must hold for every share of leaves. A side's value under a share bounds it only if no share gives
    # the side more leaves.
    unshared = node.leaves == UNLIMITED or node.share == BOTH
    deep = deep_at(levels, level)
    cuts = levels.bins[level, node.feature] - 1
    similar = control[SIMILAR] != 0
    # Shallow trees of a deep side were not searched: with the first side's tree they are no better, so cost ``enough``.
    of_any = min(value, child.enough) if child.need > 0 else value
    if unshared or (node.share if on_left else node.leaves - node.share) == node.leaves - 1:
        spread_bounds(bounds, cuts, t, of_any if on_left else -INF, -INF if on_left else of_any, rules, similar)
    if child.need > 0:
        spread_deep(bounds, deep, cuts, t, value, on_left, rules, similar)
    node.phase = CUT
    own = max(of_any, bounds.left[t] if on_left else bounds.right[t])
    if first and own + bound_of_side(levels, level, RIGHT_SIDE if on_left else LEFT_SIDE) < cutoff:
        node.phase = RIGHT
        return LEFT_SIDE if node.right_first == 1 else RIGHT_SIDE
    # Under relaxed rules the trees may break minima, and under BOTH they may have too many leaves together. The first
    # side has a tree: a bound without one is at least ``enough``, so that the second side would not have been solved.
    if not first and node.relaxed == 0 and node.share != BOTH and length > 0 and node.first_value + value < cutoff:
        node.best = node.first_value + value + node.paid
        join_sides(levels, level, length)
    return NO_SIDE
