"""An estimate of the direct solver's time before it starts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.columns import single_cuts
from policytree.solvers.exact.binary_features import blocks_for
from policytree.solvers.exact.interval_dp import one_feature_applies

LONG = 600.0  # seconds: a search beyond is worth a warning, or another solver
PER_ROW = 1.5e-9  # seconds to add a row to a table, measured
PER_CELL = 0.8e-9  # seconds to cumulate and read a cell, measured
SOLVED = 0.4  # share of the root's cuts that bounds leave to solve, measured on the benchmark's cases
MOST_SOLVED = 100  # of one feature's
FEW = 9  # values of a feature whose cuts are all swept at once
IN_BLOCK = 0.04  # what a pair of two-valued features costs beside other pairs
PER_SCAN = 1e-10  # seconds to read an entry of a block of pair sums, measured
PER_SUM = 4e-11  # seconds to add to one
MULTIPLIERS = 40  # prices that are tried where one feature may have so many leaves only
SOLVED_BELOW = 0.25  # the same on deeper levels, whose nodes have fewer rows


def by_single_cuts(problem: Problem, gates: SizeGates = GATES) -> Problem:
    """The same problem with a column of two values for every cut, if blocks of these are estimated to be much faster.

    Every tree of one problem is one of the other. Where columns have few cuts, blocks of pair sums do less for each
    than tables of pairs; where they have many, bounds between neighbouring cuts save more.
    """
    bins = problem.data.n_bins
    cuts = int((bins - 1).sum())
    depth = problem.max_depth
    if depth is None or not max(3, gates.least_bits_depth) <= depth <= gates.most_block_depth or not (bins > 2).any():
        return problem
    if problem.losses.shape[1] != 2 or cuts**3 > gates.most_block_bytes or one_feature_applies(problem):
        return problem
    if gates.bits_gain * seconds_of_blocks(problem) > _seconds_by_codes(problem, gates):
        return problem
    split = replace(problem, data=single_cuts(problem.data))
    return problem if blocks_for(split, gates) is None else split


def estimated_seconds(problem: Problem, gates: SizeGates = GATES) -> float:
    """Rough time of the direct solver on one core, in seconds: right within a factor of about ten.

    Depth two fills a table of every pair of columns and reads its cells, or those of a few chosen cuts where that is
    less; depth three does so for a share of all cuts, and every further level multiplies by a share of the cuts. The
    first split of deeper trees may be held to some features: then only their cuts count there.
    """
    n_actions = problem.losses.shape[1]
    if one_feature_applies(problem):
        most, values = problem.most_leaves, int(problem.data.n_bins[0])
        passes = 1 if most >= values else MULTIPLIERS + 2 * most
        return PER_ROW * 10 * n_actions * (problem.data.n_rows + passes * values)
    return _seconds_by_codes(by_single_cuts(problem, gates), gates)


def _seconds_by_codes(problem: Problem, gates: SizeGates) -> float:
    """:func:`estimated_seconds` of a problem with the columns that it has."""
    n_actions = problem.losses.shape[1]
    bins = np.sort(problem.data.n_bins.astype(float))
    p, n = len(bins), problem.data.n_rows
    cuts = float((bins - 1).sum())
    depth = min(math.inf if problem.max_depth is None else problem.max_depth, n - 1, cuts, 60)
    if problem.max_leaf_nodes is not None:
        depth = min(depth, problem.max_leaf_nodes - 1)
    if problem.max_depth is None and problem.leaf_penalty > 0:
        spread = float((problem.losses.max(axis=1) - problem.losses.min(axis=1)).sum())
        depth = min(depth, max(0.0, spread / problem.leaf_penalty - 1))
    if depth < 2 or p == 0:
        return PER_ROW * p * n * n_actions
    if blocks_for(problem, gates) is not None:
        return seconds_of_blocks(problem)
    # A long feature is solved at some 200 chosen cuts instead of all; two-valued ones share one block of products.
    larger = np.concatenate([np.cumsum(bins[::-1])[::-1][1:], [0.0]])
    cells = float((np.minimum(bins, 200.0) * larger).sum())
    two_valued = float((bins == 2).sum())
    pairs = p * (p + 1) / 2 - (1 - IN_BLOCK) * two_valued**2 / 2
    fill, read = max(n_actions - 1, 1) * PER_ROW * n * pairs, max(n_actions - 1, 1) * PER_CELL * cells
    if depth == 2:
        return fill + read
    rounds = float(np.where(bins <= FEW, 1, 4).sum())
    solved = float(np.minimum(SOLVED * (bins - 1), MOST_SOLVED).sum())
    three = (fill * rounds + read * solved) * _share_of_roots(problem, cuts)
    return math.exp(min(math.log(max(three, 1e-9)) + (depth - 3) * math.log(max(SOLVED_BELOW * cuts, 1.0)), 700.0))


def seconds_of_blocks(problem: Problem) -> float:
    """Estimate the time of a search by blocks, with a column of two values for every cut.

    The search takes a scan for every set of ``depth - 2`` literals, and the sums.
    """
    assert problem.max_depth is not None, "blocks are for problems with a depth"
    data, depth = problem.data, problem.max_depth
    if (data.n_bins == 2).all():
        share = data.codes.mean(axis=1)
    else:
        left = [np.cumsum(np.bincount(c, minlength=b))[:-1] for c, b in zip(data.codes, data.n_bins, strict=True)]
        share = np.concatenate(left) / max(data.n_rows, 1)
    p = len(share)
    n = min(data.n_rows, 2**p)
    on = float(np.minimum(share, 1.0 - share).sum())  # columns of a row that are on
    scans = math.comb(p, depth - 2) * 2.0 ** (depth - 2) * p**2
    sums = n * on**2 * p if depth == 3 else n * on**3 / 2 * p ** (depth - 3)
    return PER_SCAN * scans + PER_SUM * sums


def _share_of_roots(problem: Problem, cuts: float) -> float:
    """Return the share of the cuts that the first split may be on."""
    if problem.root_features is None:
        return 1.0
    columns = zip(problem.data.columns, problem.data.n_bins, strict=True)
    return sum(float(bins) - 1 for column, bins in columns if column.feature in problem.root_features) / cuts


def in_words(seconds: float) -> str:
    """Round a duration to the unit that people use: minutes to years."""
    for unit, size in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}" if seconds < 1e4 * size else "thousands of years"
    return f"{seconds:.0f} seconds"
