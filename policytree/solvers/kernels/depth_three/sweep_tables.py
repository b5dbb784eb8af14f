"""Shared tables of all sweeps over one set of rows: tables of every pair over all rows.

A sweep (sweep.py) builds the tables of the left side of a root cut; those of the right side are these totals less the
left.

Minima are costly to count: every arm of which leaves must have some rows is a plane more beside the losses. In many
rows they hardly ever bind. Then the sides of a cut are bounded without them first (a relaxation: trees that ignore the
minima cost no more than trees that obey), and only cuts that this does not refute are solved under all rules. Without
minima bounds spread to smaller and to larger sides alike.

Cost: up to n additions for every pair and sum, once.
Symbols: see base/layout.py; the table of features f < g begins at where[f, g], and its rows belong to the feature with
fewer codes, so that rows are long.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import (
    Rounded,
    Rows,
    Rules,
    Special,
    i4,
    i8,
    int_1d,
    int_2d,
    long_2d,
)
from policytree.solvers.kernels.base.sums import round_planes, rounded_sums
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_three.simd_sides import BYTES
from policytree.solvers.kernels.depth_two.binary_pairs import Block, block_size, make_block, no_block
from policytree.solvers.kernels.depth_two.charges import Units, sum_charges, units_of_charges
from policytree.solvers.kernels.depth_two.pair_tables import cumulate
from policytree.solvers.kernels.depth_two.sparse_tables import fill_pair, list_all_others


class SweepTables(NamedTuple):
    """Totals over all rows, and what sweeping them costs."""

    rules: Rules  # what sides obey when they are bounded first: all rules, or all but the minima
    relaxed: i8  # whether these are not all rules
    exact: i8  # whether a sweep says what the best trees cost, and not only a bound
    rounded: Rounded
    where: long_2d  # (p, p): where a pair's table begins; -1: both features are in the block
    totals: int_1d  # cumulated tables of all pairs, one after the other
    sums: int_2d  # cumulated sums of single features
    charges: long_2d  # see Sums
    units: Units  # of the charges
    block: Block  # the two-valued features
    pays: i8  # whether sweeping pays at all: otherwise there are no tables
    fill_cost: i8  # ns that filling all tables takes, for all root cuts together (measured)
    cut_cost: i8  # ns that reading them takes, for each root cut (measured)
    largest: i8  # cells of the largest table
    pairs: i8  # how many pairs have a table
    sum_bytes: i8  # of all sums: 2 where they fit, else 4
    in_lanes: i8  # whether root cuts go side by side: of two actions, with one minimum at most


@kernel(takes=(Rows, Rules), separate=True)
def relaxed_rules(rows, rules):
    """The rules without their minima where the rows meet each of them ``rules.loose`` times; else all of them.

    Charges and row duals stand behind the counts in the planes: these rules must read neither.
    """
    if rules.loose == 0 or len(rules.minima) == 0 or rules.prices > 0:
        return rules
    for c in range(len(rules.minima)):
        count = 0
        for i in range(rows.n):
            count += rows.planes[rules.n_losses + c, i]
        if count < rules.loose * rules.minima[c]:
            return rules
    return Rules(rules.n_losses, np.empty(0, np.int64), 0, rules.penalty, -1, 0, 0)


@kernel(inline="always")
def shorter_first(bins, f, g):
    """Put the feature of a pair that gives the rows of its table first."""
    return (g, f) if bins[f] > bins[g] else (f, g)


@kernel(borrows=True)
def place_tables(rows, K, has_block, where):
    """Lay the tables out one after the other; returns the cells of all, of the largest, and how many there are."""
    bins = rows.bins
    p = len(bins)
    size = 0
    largest = 1
    pairs = 0
    for f in range(p):
        for g in range(f + 1, p):
            where[f, g] = -1
            if has_block and bins[f] == 2 and bins[g] == 2:
                continue
            where[f, g] = size
            cells = K * bins[f] * bins[g]
            size += cells
            largest = max(largest, cells)
            pairs += 1
    return size, largest, pairs


@kernel
def fill_totals(rows, rounded, sums, where, totals):
    """Cumulated tables of all rows, of every pair; ``sums``: of single features."""
    bins, K = rows.bins, len(sums)
    others = list_all_others(rows, len(totals) > 0)
    for f0 in range(len(bins)):
        for g0 in range(f0 + 1, len(bins)):
            at = where[f0, g0]
            if at < 0:
                continue
            f, g = shorter_first(bins, f0, g0)
            R = bins[f]
            W = bins[g]
            h = np.empty((R, W), np.int32)
            for k in range(K):
                h[:] = i4(0)
                fill_pair(h, f, g, rows, rounded.planes[k], others, sums[k])
                cumulate(h, totals[at + k * R * W : at + (k + 1) * R * W].reshape((R, W)), R, W)


@kernel(borrows=True)
def sums_are_short(planes, rules):
    """Whether all sums of losses, under any actions, and of counts fit int16."""
    P = rules.n_losses
    below = 0
    above = 0
    for i in range(planes.shape[1]):
        x = 0
        y = 0
        for k in range(P):
            x = min(x, np.int64(planes[k, i]))
            y = max(y, np.int64(planes[k, i]))
        below -= x
        above += y
    most = max(below, above)
    for j in range(P, len(planes)):
        counted = 0
        for c in planes[j]:
            counted += np.int64(c)
        most = max(most, counted)
    return most < 1 << 15


@kernel(takes=(Rows, Rules, Special), separate=True)
def make_tables(rows, all_rules, special):
    """Round the losses, add up the tables of all rows, and estimate what sweeps will cost."""
    p = len(rows.bins)
    rules = relaxed_rules(rows, all_rules)
    K = rules.n_losses + len(rules.minima)
    n_block = 0 if special is None else block_size(rows, rules)
    rounded = round_planes(rows, rules)
    in_lanes = rules.n_losses == 1 and len(rules.minima) <= 1
    where = np.empty((p, p), np.int64)
    size, largest, pairs = place_tables(rows, K, n_block > 0, where)
    fill_cost = (K * rows.n * (pairs + p)) // 2
    tenths_per_cell = 12 if not in_lanes else 5 if K == 1 else 7
    cut_cost = tenths_per_cell * size // 10 + 200 * pairs + 5 * rows.offset[p] + 2 * n_block * (n_block + 100) + 1
    pays = size <= 8 * K * rows.n * max(pairs, 1) and size <= 1 << 27
    if not pays:
        size = 0
        n_block = 0
    sums = rounded_sums(rows, rounded)
    totals = np.empty(size + BYTES, np.int32)[:size]  # simd_sides.py reads so many numbers beyond the end
    block = no_block() if special is None else make_block(rows, rounded, rules, n_block)
    if pays:
        fill_totals(rows, rounded, sums, where, totals)
    units = units_of_charges(rows, rules)
    relaxed = len(rules.minima) < len(all_rules.minima)
    # The first of a side's splits need not divide its rows. Such a split saves nothing, unless it pays for its test
    # group at a lower price than the second one.
    exact = rounded.error == 0 and not relaxed and rules.uneven == 0
    return SweepTables(
        rules, 1 if relaxed else 0, 1 if exact else 0, rounded, where, totals, sums,
        sum_charges(rows, rules, units, block),
        units, block, 1 if pays else 0, fill_cost, cut_cost, largest, pairs,
        2 if sums_are_short(rounded.planes, rules) else 4, 1 if in_lanes else 0,
    )  # fmt: skip
