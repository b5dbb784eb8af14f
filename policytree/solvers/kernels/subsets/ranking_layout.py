"""Trees judged by their leaf statistics, such as by the area under their ROC curve: words and tuples.

Every row has a share of all positives and of all negatives, float64. The loss of a tree's leaf statistics is no sum
over leaves. But a *reference*, a curve of steps, gives a leaf with shares (p, n) a *cost* (ranking_costs.py), and trees
whose leaf costs sum up to too much are no better than the best tree known, whatever their leaf statistics
(objectives/references.py says why). A leaf costs at least what its parts cost as leaves, and costs do not fall as p or
n rise:

- a set of rows costs, as any tree, at least the sum of its rows' own costs (*least*), and at least two prices of a leaf
  if it is split;
- with numbers u of rows that no leaf's cost exceeds by more than the price less the *room* (*dual*, see row_duals.py),
  a tree of h leaves costs at least the sum of u and h times the room;
- more rows cost no less, and at most what the further rows cost where they cost most (*worst*): what is known of one
  cut's sides bounds those of the other cuts of its column.

Symbols: n rows; S places, one for every code of every column; level: a set of rows on the way down; a cut is a place.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import codes_2d, f8, i8, int_2d, long_1d, long_2d, long_3d, real_1d, real_2d

MUCH = 1e300  # more than anything costs
CLOSE = 1e-11  # what sums of shares may be off by
LEAF = -1  # instead of a cut
# Sums of one side of a cut: shares, least and worst costs, numbers u; and whole numbers.
POSITIVE, NEGATIVE, LEAST, DUAL, WORST = range(5)
KEY1, KEY2, COUNT = range(3)
# Numbers of a level: cutoff, cost of the best tree found, bound, the least bound of cuts that were left out.
CUTOFF, BEST, BOUND, LEFT_OUT = range(4)
# Whole numbers of a level: rows, cuts, depth left, the cut and the side that are worked on, the best tree's cut.
SIZE, CUTS, DEPTH, PLACE, SIDE, SPLIT = range(6)
# Counters: sets entered, sets in the table, trees written out, states of unfinished trees.
SETS, KEPT_SETS, TREES, STATES = range(4)
# How the search over trees ended.
DONE, BETTER, STOPPED, TOO_DEEP = range(4)
# Objectives that the search can score: the area under the ROC curve up to a rate, and the F-score labelled by omega.
AREA, OMEGA = range(2)

if TYPE_CHECKING:  # what Python hands over for them
    real_3d = np.ndarray
else:
    real_3d = types.float64[:, :, ::1]


class LeafCosts(NamedTuple):
    """The steps of a reference, by rising slope; the last one has no end and the height 0."""

    ends: real_1d  # (K,): the slopes where steps begin, the first one 0
    heights: real_1d  # (K,): rates of negatives, falling
    areas: real_1d  # (K,): integral of the heights up to the step
    squares: real_1d  # (K,): of their squares
    limit: f8  # the largest rate of negatives that counts
    curved: i8  # whether leaves larger than the heights cost more than in proportion


class CoarseBoxes(NamedTuple):
    """Boxes of strips of codes, and bounds of what they cost (ranking_boxes.py); none if there are too many columns."""

    least: real_1d  # (boxes,), prices of leaves included
    strips: long_1d  # (columns,)
    gap: long_1d  # (columns,): 1 where cuts lie within strips, 0 where strips are single codes
    stride: long_1d  # (columns,): boxes between neighbours in a column's digit
    up: int_2d  # (columns, codes + 1): the first strip that begins at a code or after it
    down: int_2d  # the strip after the last one that ends before a code


class RankingRows(NamedTuple):
    """Merged rows, what they share and cost, and what trees have to obey."""

    codes: codes_2d  # (columns, n)
    offset: long_1d  # (columns + 1,)
    sums: real_2d  # (n, 5): POSITIVE ... WORST
    names: long_2d  # (n, 3): KEY1, KEY2, COUNT
    costs: LeafCosts
    boxes: CoarseBoxes
    price: f8  # of a leaf
    room: f8  # what every leaf costs at least beside its rows' numbers u
    min_leaf: i8
    first: long_1d  # (columns,): whether the first split may be on the column


class RankingPath(NamedTuple):
    """The stack of the search over sets: one set of rows per level, and the sums and bounds of its cuts' sides."""

    rows: int_2d  # (levels, n)
    low: real_3d  # (levels, 2, S): lower bounds of the cost of both sides of a cut
    up: real_3d  # (levels, 2, S): upper bounds of it
    sums: real_3d  # (levels, S, 5): POSITIVE ... WORST of side 0
    names: long_3d  # (levels, S, 3): KEY1, KEY2, COUNT of side 0
    total: real_2d  # (levels, 5): sums of the whole set
    name: long_2d  # (levels, 3): KEY1, KEY2, COUNT of the whole set
    key: long_2d  # (levels, 2): in the table
    cuts: int_2d  # (levels, S): those below which a better tree may lie
    box: long_3d  # (levels, columns, 2): the codes between which the set's rows lie, the second excluded
    numbers: real_2d  # (levels, 4): CUTOFF ... LEFT_OUT
    whole: long_2d  # (levels, 6): SIZE ... SPLIT


class OpenTrees(NamedTuple):
    """An unfinished tree at every state on the way; two nodes can be added in every state."""

    rows: int_2d  # (states, n): those of the two nodes added, one after the other
    node: long_2d  # (2 states, 4): state whose rows they are, first, number, next open node
    box: long_3d  # (2 states, columns, 2): as a level's
    depth: long_1d  # (2 states,): depth left
    shares: real_2d  # (2 states, 2)
    cost: real_2d  # (2 states, 2): as a leaf, and at least
    cut: int_2d  # (states, S + 1): what may become of the open node
    least: real_3d  # (states, 2, S + 1): of the sides of these cuts
    at: long_2d  # (states, 4): open node, next choice, number of choices, leaves
    spent: real_2d  # (states, 2): cost of the leaves together, least cost of the open nodes but the first
    leaves: real_2d  # (states, 2): shares of the leaves
    chosen: long_1d  # (states,): cut, or LEAF
    order: long_1d  # (states,): room for sorting the leaves


NODE_ROWS, NODE_FIRST, NODE_SIZE, NODE_NEXT = range(4)
OPEN_NODE, CHOICE, CHOICES, LEAVES = range(4)


class Judge(NamedTuple):
    """How whole bags are scored, and which are better."""

    kind: i8  # AREA or OMEGA
    numbers: real_1d  # AREA: the largest false positive rate; OMEGA: omega, beta squared, positives, negatives, doubt
    price: f8  # of a leaf, in the unit of the score
    cutoff: real_1d  # by number of leaves: what a better tree's leaf costs sum up to at most
    most: f8  # the largest sum of costs and prices of a better tree, whatever its number of leaves
    largest: i8  # number of leaves
