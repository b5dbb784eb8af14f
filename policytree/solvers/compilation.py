"""Sets of kernels that belong together, compiled or loaded before a search starts.

Compiling is no search: it counts neither as its seconds nor against its limits. It is done once on a machine for every
version of the kernels, and kept on disk.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from policytree.solvers.kernels import (
    bag_bounds,
    bag_boxes,
    bag_costs,
    bag_search,
    block_search,
    block_sums,
    box_pricing,
    code_tables,
    cost_scores,
    depth_two,
    exact_sums,
    intervals,
    merging,
    paid_pairs,
    pareto_cuts,
    pareto_lists,
    pareto_stumps,
    price_fitting,
    row_set_table,
    row_sets,
    rows_of_nodes,
    search,
    sums,
    tied_trees,
    whole_steps,
)
from policytree.solvers.kernels import long_pairs as long_features
from policytree.solvers.kernels import sweep_tables as sweeps
from policytree.solvers.kernels.compiling import Kernel, compile_kernels
from policytree.solvers.kernels.pair_tables import ROOM, ROOM_OF_PLANES
from policytree.solvers.kernels.two_valued import FEWEST
from policytree.types import Problem

PLAIN, SPECIAL = "plain", "special"  # see kernels.layout.Special
BLOCKS = ("int16", "int32", "int64")  # numbers of blocks of pair sums

MERGING = (merging.hash_rows, merging.group_hashes, merging.same_as, merging.add_columns)
EXACT_SUMS = (exact_sums.exponent_range, exact_sums.add_exactly)  # of losses: the scale, and the values of a tree
ALWAYS = (*MERGING, *EXACT_SUMS, sums.node_sums, sums.best_one_split)
# A node of depth two; the same where a feature is long; the search below the root, at depth three and more.
TWO_LEVELS = (depth_two.short_pairs,)
LONG = (long_features.long_pairs,)
RELAXED = (sweeps.relaxed_rules,)  # where leaves must have so many rows
DEEPER = (rows_of_nodes.pack_rows, sweeps.make_tables, search.advance)
PAIRS = (rows_of_nodes.pack_rows, block_sums.fill_products, block_sums.open_two, block_sums.open_three)
PAIRS_DEEP = (block_search.solve_four, block_search.bound_across)

PAIR_ROUNDS = (block_sums.refill_products, block_sums.best_column)  # beside PAIRS, where losses change

SUBSETS = (row_sets.search_subsets, intervals.best_intervals)
SET_TABLE = (row_set_table.copy_table, row_set_table.place_of)
SUBSET_KERNELS = [(SET_TABLE, ""), (SUBSETS, "lists"), (SUBSETS, "bits")]

ROW_DUALS = (
    box_pricing.price_boxes, price_fitting.rows_of_box, price_fitting.drop_idle, price_fitting.project,
)  # fmt: skip
RANKING = (
    *MERGING, *EXACT_SUMS, bag_costs.costs_of_rows, bag_boxes.fill_boxes,
    bag_bounds.bound_ranking, bag_bounds.best_known, bag_search.search_ranking,
)  # fmt: skip
ONE_FEATURE = (*EXACT_SUMS, merging.add_columns, intervals.useful_ends, intervals.add_leaf)
CODING = (whole_steps.code_steps,)  # of every table of numbers
# Where columns are paid for once on a path; and greedy trees that are cheap to apply.
SHARED_COSTS = (
    *MERGING, *EXACT_SUMS, sums.node_sums, rows_of_nodes.pack_rows,
    paid_pairs.solve_two,
)  # fmt: skip
LOW_COST = (*MERGING, cost_scores.class_totals, cost_scores.best_test, cost_scores.divide)
RASHOMON = (tied_trees.tied_trees,)
# Trees judged by several sums: see pareto.py.
PARETO = (
    pareto_lists.thin, pareto_lists.join, pareto_stumps.least_bound, pareto_stumps.list_stumps, pareto_cuts.extremes,
    pareto_cuts.open_cut, pareto_cuts.list_two_levels,
)  # fmt: skip
PARETO_TABLES = (pareto_cuts.bound_cuts,)
# Rows that stream by: their codes are bytes, or two bytes.
STREAMED = (code_tables.add_pairs, code_tables.add_triples, code_tables.find_leaves)
STREAMED_TREES = (code_tables.scan_cuts,)
CODES = ("uint8", "uint16")

Needed = list[tuple[tuple[Kernel, ...], str]]  # kernels, and which version of them


def is_long(bins: np.ndarray, signed: bool = False) -> bool:
    """Whether a node may have a pair of features with more codes than a table pays for, however few its rows.

    Below the root codes only become fewer, and with them the two sides of :func:`table_pays` for no rows at all: what
    pays there pays in every node. Among pairs that do not pay, those of the longest features are worst.
    """
    if len(bins) < 2:
        return False
    second, first = np.sort(bins)[-2:]
    return bool(first * second > (ROOM if signed else ROOM_OF_PLANES) * (first + second))


def is_special(problem: Problem) -> bool:
    """Whether the search needs more than tables: blocks for two-valued features, or strips for long ones."""
    return are_special(problem.data.n_bins, is_signed(problem))


def are_special(bins: np.ndarray, signed: bool) -> bool:
    """The same of features with so many codes."""
    return int(np.count_nonzero(bins == 2)) >= FEWEST or is_long(bins, signed)


def is_signed(problem: Problem) -> bool:
    """Whether one signed loss is all there is: two actions, and no rows that are counted in leaves."""
    return problem.losses.shape[1] == 2 and problem.min_leaf <= 1 and problem.min_leaf_per_arm == 0


def needed_for_rashomon(problem: Problem) -> Needed:
    """Kernels that list trees near the best one, beside those of the search for it."""
    kind = SPECIAL if is_special(problem) else PLAIN
    pairs: Needed = [(TWO_LEVELS, kind)]
    if is_long(problem.data.n_bins, is_signed(problem)):
        pairs += [(LONG, "")]
    return [(ALWAYS, ""), *pairs, ((*RASHOMON, rows_of_nodes.pack_rows), "")]


def all_kernels() -> Needed:
    """Kernels of every search over trees; those of born-again trees are ``born_again.needed_kernels.BORN_AGAIN``."""
    tables = [(TWO_LEVELS + DEEPER + PARETO_TABLES, kind) for kind in (PLAIN, SPECIAL)]
    blocks = [(PAIRS + PAIRS_DEEP + PAIR_ROUNDS, kind) for kind in BLOCKS]
    rest = CODING + RELAXED + ROW_DUALS + ONE_FEATURE + RASHOMON + PARETO + SHARED_COSTS + LOW_COST + RANKING
    streamed = [pair for codes in CODES for pair in streamed_kernels(codes)]
    return [(ALWAYS, ""), *tables, (LONG, ""), *blocks, *SUBSET_KERNELS, (rest, ""), *streamed]


def streamed_kernels(codes: str) -> Needed:
    """Kernels of a search over rows that stream by, whose codes are of this type: "uint8" or "uint16"."""
    return [(STREAMED, codes), (STREAMED_TREES + EXACT_SUMS, "")]


def pareto_kernels(bins: np.ndarray, signed: bool, depth: int) -> Needed:
    """Kernels that a search for trees judged by several sums may call; see :mod:`policytree.solvers.pareto`."""
    needed: Needed = [(ALWAYS + PARETO, "")]
    kind = SPECIAL if are_special(bins, signed) else PLAIN
    if depth > 1:
        needed += [(PARETO_TABLES, kind)]
    if depth > 2:
        needed += [(TWO_LEVELS, kind), ((rows_of_nodes.pack_rows,), "")]
        needed += [(LONG, "")] if is_long(bins, signed) else []
    return needed


def kernel_folder() -> str | None:
    """Where compiled kernels are kept; None if there is no place that may be written to."""
    load_kernels([(ALWAYS, "")])
    return getattr(ALWAYS[0].stats, "cache_path", None)


def load_kernels(needed: Needed) -> float:
    """Load kernels from disk or compile them, which is announced; returns the seconds that compiling took."""
    with ExitStack() as line:

        def announce() -> None:
            from policytree.progress import compiling_line  # rich, only where there is something to say

            line.enter_context(compiling_line())

        each = [(kernel, kind) for kernels, kind in needed for kernel in kernels]
        return compile_kernels(each, announce)
