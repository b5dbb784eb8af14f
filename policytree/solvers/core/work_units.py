"""Estimated seconds of work on a usual machine, by counting it.

Parts of a search take turns by these numbers and not by the clock, so that the same problem is searched in the same
way, and has the same tree among equals, wherever and whenever it is solved.
"""

from __future__ import annotations

import numpy as np

from policytree.solvers.core.rows import Node
from policytree.solvers.kernels.base.layout import CUTS, NODES, TWO
from policytree.solvers.kernels.subsets.layout import SUMMED

# Seconds of a processor. benchmarks/work_units.py holds those of depths against the clock; those of row duals and
# subsets were set with results/row_duals.md, A_SUBTREE and OF_A_ROOT with "First trees" of results/depth_four.md.
A_PAIR = 2e-9  # a row, or a word of bits, and a split that the subset search adds up
A_NODE, OF_A_CUT, OF_A_CODE = 2e-6, 5e-8, 1e-9  # a node of a search over depths: itself, every cut, every row's code
A_SUBTREE, OF_A_ROOT = 1e-3, 1e-4  # depth three of some rows, beside its nodes: itself, and every root feature
DEPTH_TWO = 3e-3  # depth two of all rows, whatever they are: before there is anything to count
A_CELL = 2e-9  # a row or cell that pricing reads
A_STEP = 5e-10  # a row of a box in one sweep of a fit
A_ROUND = 2e-3  # a round of pricing and fitting, whatever its size
# The work of the next depth over that of the last: a share of all cuts is open, and never more times than this. Without
# a limit, coupon with guesses waited seven times as long for subsets (9dc152a3).
SOLVED_BELOW, MOST_GROWTH = 0.25, 30.0


def of_depth(node: Node, counters: np.ndarray) -> float:
    """Of a search over depths on the rows of a node, by its counters."""
    return of_nodes(node, int(counters[[NODES, CUTS, TWO]].sum()))


def of_nodes(node: Node, number: int) -> float:
    """Of so many nodes and cuts, each taken to be as large as ``node``: inner nodes have fewer rows."""
    each = A_NODE + OF_A_CUT * int((node.bins - 1).sum()) + OF_A_CODE * node.codes.size
    return number * each * len(node.losses)


def of_next_depth(node: Node, last: float) -> float:
    """Of the next depth at most, about, given the seconds of the last one."""
    cuts = int((node.bins - 1).sum())
    return last * min(max(SOLVED_BELOW * cuts, 1.0), MOST_GROWTH)


def of_sets(counters: np.ndarray) -> float:
    """Of a subset search."""
    return int(counters[SUMMED]) * A_PAIR
