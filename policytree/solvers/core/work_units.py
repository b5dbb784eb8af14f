"""Estimated seconds of work on a usual machine, by counting it.

Parts of a search take turns by these numbers and not by the clock, so that the same problem is searched in the same
way, and has the same tree among equals, wherever and whenever it is solved.
"""

from __future__ import annotations

import numpy as np

from policytree.solvers.core.rows import Node
from policytree.solvers.kernels.base.layout import CUTS, NODES, TWO
from policytree.solvers.kernels.subsets.layout import SUMMED

A_PAIR = 2e-9  # of a row, or a word, and a split in the subset search
A_NODE, OF_A_CUT, OF_A_CODE = 2e-6, 5e-8, 1e-9  # of a search over depths: itself, every cut, every row's code
A_SUBTREE, OF_A_ROOT = 1e-3, 1e-4  # solved by itself, beside its nodes: itself, and every root feature
DEPTH_TWO = 3e-3  # of all first splits together, roughly
A_CELL = 2e-9  # row or cell that pricing boxes looks at
A_ROUND = 2e-3  # of pricing and fitting, whatever its size
MOST_GROWTH, SOLVED_BELOW = 30.0, 0.25  # from one depth to the next: so many times, or as many as that share of cuts
A_STEP = 5e-10  # row of a box in one sweep of a fit


def of_depth(node: Node, before: np.ndarray, after: np.ndarray) -> float:
    """Of a search over depths, by its counters."""
    nodes = int((after - before)[[NODES, CUTS, TWO]].sum())
    each = A_NODE + OF_A_CUT * int((node.bins - 1).sum()) + OF_A_CODE * node.codes.size
    return nodes * each * len(node.losses)


def of_next_depth(node: Node, last: float) -> float:
    """Of the next depth at most, about, given the seconds of the last one."""
    cuts = int((node.bins - 1).sum())
    return last * min(max(SOLVED_BELOW * cuts, 1.0), MOST_GROWTH)


def of_sets(counters: np.ndarray) -> float:
    """Of a subset search."""
    return int(counters[SUMMED]) * A_PAIR
