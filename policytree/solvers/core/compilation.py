"""Sets of kernels that belong together, compiled or loaded before a search starts.

Compiling is no search: it counts neither as its seconds nor against its limits. It is done once on a machine for every
version of the kernels, and kept on disk.
"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.kernels.base.binning import all_codes_occur, code_steps
from policytree.solvers.kernels.base.child_rows import pack_rows
from policytree.solvers.kernels.base.exact_sums import add_exactly, exponent_range
from policytree.solvers.kernels.base.merging import add_columns, group_hashes, hash_rows, same_as
from policytree.solvers.kernels.base.sums import best_one_split, node_sums
from policytree.solvers.kernels.binary.search import bound_across, solve_four
from policytree.solvers.kernels.binary.sums import best_column, fill_products, open_three, open_two, refill_products
from policytree.solvers.kernels.compiling import Kernel, are_ready, compile_in_background, compile_kernels
from policytree.solvers.kernels.conflicts.fit import fit_numbers
from policytree.solvers.kernels.depth_first.inherited_bounds import choose_near, inherited_deep_bound, move_inner
from policytree.solvers.kernels.depth_first.node_bounds import enter, take_intervals
from policytree.solvers.kernels.depth_first.search import advance, run_stack, sweep_next
from policytree.solvers.kernels.depth_first.stack import open_feature, push_child, take_side
from policytree.solvers.kernels.depth_three.sweep import sweep
from policytree.solvers.kernels.depth_three.sweep_side import SWEEPING_KERNELS
from policytree.solvers.kernels.depth_three.sweep_tables import make_tables, relaxed_rules
from policytree.solvers.kernels.depth_two.binary_pairs import FEWEST
from policytree.solvers.kernels.depth_two.interval_dp import add_leaf, best_intervals, useful_ends
from policytree.solvers.kernels.depth_two.long_pairs import long_pairs, long_parts
from policytree.solvers.kernels.depth_two.pair_tables import ROOM, ROOM_OF_PLANES
from policytree.solvers.kernels.depth_two.similarity_bounds import choose_cut
from policytree.solvers.kernels.depth_two.solve import short_pairs
from policytree.solvers.kernels.enumeration.cuts import bound_cuts, list_two_levels
from policytree.solvers.kernels.enumeration.lists import join, thin
from policytree.solvers.kernels.enumeration.stumps import least_bound, list_stumps
from policytree.solvers.kernels.enumeration.tied_trees import tied_trees
from policytree.solvers.kernels.level_groups.first_groupings import best_first_grouping
from policytree.solvers.kernels.out_of_core.code_tables import add_pairs, add_triples, find_leaves, scan_cuts
from policytree.solvers.kernels.pricing.dual_projection import add_boxes, drop_idle, find_runs, project
from policytree.solvers.kernels.pricing.max_box import price_boxes
from policytree.solvers.kernels.sharing import patience
from policytree.solvers.kernels.subsets.ranking_bounds import best_known, bound_ranking
from policytree.solvers.kernels.subsets.ranking_boxes import fill_boxes
from policytree.solvers.kernels.subsets.ranking_costs import costs_of_rows
from policytree.solvers.kernels.subsets.ranking_search import search_ranking
from policytree.solvers.kernels.subsets.search import search_subsets
from policytree.solvers.kernels.subsets.table import copy_table, place_of
from policytree.solvers.kernels.test_costs.scores import best_test, class_totals, divide

PLAIN, SPECIAL = "plain", "special"  # see kernels/base/layout.py, Special
BLOCKS = ("int16", "int32", "int64")  # numbers of blocks of pair sums

MERGING = (hash_rows, group_hashes, same_as, add_columns)
EXACT_SUMS = (exponent_range, add_exactly)  # of losses: the scale, and the values of a tree
ALWAYS = (*MERGING, *EXACT_SUMS, node_sums, best_one_split)
# A node of depth two; the same where a feature is long; the search below the root, at depth three and more.
TWO_LEVELS = (short_pairs,)
LONG = (long_pairs,)
LONG_PARTS = (long_parts,)  # in place of these, where whole problems of depth two have columns in parts
GROUPINGS = (best_first_grouping,)  # of levels, beside the terminal solver
RELAXED = (relaxed_rules,)  # where leaves must have so many rows
DEEPER = (
    pack_rows, sweep, make_tables, sweep_next, enter, take_side, open_feature, push_child, choose_near, choose_cut,
    run_stack, advance,
)  # fmt: skip
FROM_DEPTH_FOUR = (take_intervals, move_inner, inherited_deep_bound)
# Versions of a sweep, of sums of two and of four bytes: one cut after the other; in lanes without, and with a count.
SWEEPS, SWEEPS_IN_LANES, SWEEPS_COUNTED = SWEEPING_KERNELS[:2], SWEEPING_KERNELS[2:4], SWEEPING_KERNELS[4:]
PAIRS = (pack_rows, fill_products, open_two, open_three)
PAIRS_DEEP = (solve_four, bound_across)

PAIR_ROUNDS = (refill_products, best_column)  # beside PAIRS, where losses change

SUBSETS = (search_subsets, best_intervals)
SET_TABLE = (copy_table, place_of)
SUBSET_VERSIONS: list[tuple[tuple[Kernel, ...], str]] = [(SUBSETS, "lists"), (SUBSETS, "bits")]
SUBSET_KERNELS = [(SET_TABLE, ""), *SUBSET_VERSIONS]
CONFLICT_PAIRS = (fit_numbers,)

ROW_DUALS = (
    price_boxes, find_runs, add_boxes, drop_idle, project,
)  # fmt: skip
RANKING = (
    *MERGING, *EXACT_SUMS, costs_of_rows, fill_boxes,
    bound_ranking, best_known, search_ranking,
)  # fmt: skip
ONE_FEATURE = (*EXACT_SUMS, add_columns, useful_ends, add_leaf)
CODING = (code_steps,)  # of every table of numbers
GAPS = (all_codes_occur,)  # of every table of codes
# Greedy trees that are cheap to apply.
LOW_COST = (*MERGING, class_totals, best_test, divide)
RASHOMON = (tied_trees,)
# Trees judged by several sums: see multi_objective/pareto_front.py.
PARETO = (thin, join, least_bound, list_stumps, list_two_levels)
PARETO_TABLES = (bound_cuts,)
# Rows that stream by: their codes are bytes, or two bytes.
STREAMED = (add_pairs, add_triples, find_leaves)
STREAMED_TREES = (scan_cuts,)
CODES = ("uint8", "uint16")
# Kernels that take longest to compile come before their callers and before kernels that wait for nothing: processes
# that share the work take unbegun kernels from the front, so that a caller finds most of its callees done, and the end
# is divided finely. The process that needs the search over subsets compiles it, since helpers do not know its version
# when they start.
LONGEST_FIRST = (
    search_subsets, long_parts, long_pairs, short_pairs, *SWEEPS_IN_LANES, *SWEEPS_COUNTED, *SWEEPS, sweep, make_tables,
    take_intervals, sweep_next, enter, move_inner, inherited_deep_bound, take_side, open_feature, push_child,
    choose_near, choose_cut, run_stack, advance,
)  # fmt: skip
PLACE = {kernel: i for i, kernel in enumerate(LONGEST_FIRST)}
WIDTHS = (*CODES, "uint32")  # of codes in memory; the last one of a feature with very many values

# Kinds of problems by parts of the modules of their kernels; the rarest first: others are needed beside these.
EVERY_PROBLEM = "trees of every kind"
PROBLEMS = (
    ("born_again", "born-again trees"),
    ("test_costs", "trees of cheap tests"),
    ("out_of_core", "rows that memory does not hold"),
    ("tied_trees", "trees that do as well"),
    ("enumeration", "trees of several objectives"),
    ("subsets.ranking", "trees that rank"),
    ("subsets.search", "deep trees"),
    ("interval_dp", "trees of one covariate"),
    ("kernels.binary", "covariates of two values"),
    ("depth_three", "trees of depth three and more"),
    ("depth_first", "trees of depth three and more"),
    ("depth_two", "trees of depth two"),
)

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


def width_of(problem: Problem) -> str:
    """The type of a problem's codes; of those that kernels do not take, the one that they are turned into."""
    width = problem.data.codes.dtype.name
    return width if width in WIDTHS else "uint16"


def terminal_kernels(bins: np.ndarray, signed: bool, in_parts: bool = False) -> Needed:
    """Kernels that solve problems of depth two, without minima of leaves."""
    kind = SPECIAL if are_special(bins, signed) else PLAIN
    return [(TWO_LEVELS, kind)] + [(LONG_PARTS if in_parts else LONG, "")] * is_long(bins, signed)


def sweeping_kernels(problem: Problem, short: bool, gates: SizeGates = GATES) -> Needed:
    """The versions of a sweep that a search from depth three on may call.

    ``short``: whether all sums of losses fit two bytes, which then holds in every node. Where they do not, four bytes
    always do; deeper nodes than that of depth three may have few enough rows for two.
    """
    minima = (problem.min_leaf > 1) + (problem.losses.shape[1] if problem.min_leaf_per_arm > 0 else 0)
    ways = [SWEEPS]
    if problem.losses.shape[1] == 2 and (minima == 0 or gates.loose_minimum > 0):
        ways.append(SWEEPS_IN_LANES)
    if problem.losses.shape[1] == 2 and minima == 1:
        ways.append(SWEEPS_COUNTED)
    short_counts = minima == 0 or problem.data.n_rows < 1 << 15
    two_bytes = short or problem.max_depth is None or problem.max_depth > 3
    return [(way[0 if two_bytes else 1 : 1 if short and short_counts else 2], "") for way in ways]


def all_kernels() -> Needed:
    """Kernels of every search over trees; those of born-again trees are ``born_again.needed_kernels.BORN_AGAIN``."""
    tables = [(TWO_LEVELS + DEEPER + PARETO_TABLES, kind) for kind in (PLAIN, SPECIAL)]
    blocks = [(PAIRS + PAIRS_DEEP + PAIR_ROUNDS, kind) for kind in BLOCKS]
    by_address = SWEEPING_KERNELS + FROM_DEPTH_FOUR
    rest = (
        CODING + GROUPINGS + RELAXED + CONFLICT_PAIRS + ROW_DUALS + ONE_FEATURE + RASHOMON + PARETO + LOW_COST + RANKING
    )
    streamed = [pair for codes in CODES for pair in streamed_kernels(codes)]
    gaps = [(GAPS, codes) for codes in WIDTHS]
    long = (LONG + LONG_PARTS, "")
    return [(ALWAYS, ""), *gaps, *tables, long, *blocks, *SUBSET_KERNELS, (by_address + rest, ""), *streamed]


def streamed_kernels(codes: str) -> Needed:
    """Kernels of a search over rows that stream by, whose codes are of this type: "uint8" or "uint16"."""
    return [(STREAMED, codes), (STREAMED_TREES + EXACT_SUMS, "")]


def pareto_kernels(bins: np.ndarray, signed: bool, depth: int) -> Needed:
    """Kernels that a search for trees judged by several sums (``multi_objective/pareto_front.py``) may call."""
    needed: Needed = [(ALWAYS + PARETO, "")]
    kind = SPECIAL if are_special(bins, signed) else PLAIN
    if depth > 1:
        needed += [(PARETO_TABLES, kind)]
    if depth > 2:
        needed += [*terminal_kernels(bins, signed), ((pack_rows,), "")]
    return needed


def kernel_folder() -> str | None:
    """Where compiled kernels are kept; None if there is no place that may be written to."""
    load_kernels([(ALWAYS, "")])
    return getattr(ALWAYS[0].stats, "cache_path", None)


def load_kernels(needed: Needed, then: Needed | None = None) -> float:
    """Load kernels from disk or compile them, which is announced; returns the seconds that this took.

    Loading from disk counts as nothing; waiting for another process that compiles them does count. Helpers that compile
    go on with those that are needed ``then``.
    """
    if are_loaded(needed):  # an order for them takes as long as a small search
        return 0.0
    with ExitStack() as line:

        def announce() -> None:
            from policytree.common.progress import compiling_line  # rich, only where there is something to say

            line.enter_context(compiling_line())

        def announce_wait(others: str) -> None:
            from policytree.common.progress import waiting_line

            line.enter_context(waiting_line(others, kind_of_problem(needed), patience()))

        return compile_kernels(_one_by_one(needed), announce, announce_wait, then=_one_by_one(then or []))


def kind_of_problem(needed: Needed) -> str:
    """Problems that need these kernels, in words: what is not loaded yet says more than what every search needs."""
    missing = [pair for pair in _one_by_one(needed) if not are_ready([pair])]
    modules = [kernel.py_func.__module__ for kernel, _ in missing]
    return next((words for part, words in PROBLEMS if any(part in module for module in modules)), EVERY_PROBLEM)


def are_loaded(needed: Needed) -> bool:
    """Whether :func:`load_kernels` has nothing to do."""
    return are_ready((kernel, kind) for kernels, kind in needed for kernel in kernels)


def load_in_background(needed: Needed) -> None:
    """Begin to compile in another process what is not on the disk, while this one does something else."""
    compile_in_background(_one_by_one(needed))


def _one_by_one(needed: Needed) -> list[tuple[Kernel, str]]:
    """Kernels and their kinds, in the order in which they are compiled."""
    each = dict.fromkeys((kernel, kind) for kernels, kind in needed for kernel in kernels)
    return sorted(each, key=lambda pair: PLACE.get(pair[0], len(PLACE)))
