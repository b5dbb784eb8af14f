"""Trees of depth two for two actions that divide the levels of categories at will, as cheaply as numbers in order.

A last split by groups of levels needs no search: each level goes to the action that is better for it, on each side of
each first cut, so that a table of levels and cuts is read once (``kernels/depth_two/pair_tables.py::scan_levels``). A
first split by groups is looked for among all groupings, which share their tables
(``kernels/level_groups/first_groupings.py``). No grouping has a column of codes of its own but those of the tree.

Leaves of a smallest size: the best tree without it is the best with it if its leaves are large enough. Otherwise the
groupings become columns (``problem/split_columns.py::with_every_grouping``), since a side's best grouping may not.

Cost: that of numbers in order, and ``2**(L - 1)`` steps for every code of every other column.
Symbols: a question is a column and a cut; of a column of levels, a column and the levels on the left as bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.problem.split_columns import with_groupings
from policytree.problem.types import BinnedData, Problem, SearchLimits, Solution
from policytree.solvers.core.columns import rows_of_splits
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits, counted_rows, depth_two, prepare, rows_of
from policytree.solvers.core.search_state import Incumbent, SearchState
from policytree.solvers.kernels.base.layout import COUNTERS, TWO
from policytree.solvers.kernels.base.merging import add_columns
from policytree.solvers.kernels.base.sums import best_one_split
from policytree.solvers.kernels.level_groups.first_groupings import best_first_grouping


def levels_apply(problem: Problem) -> bool:
    """Whether the problem has columns of levels that this engine takes."""
    free = problem.feature_costs is None and problem.root_features is None
    some_leaves = problem.max_leaf_nodes is None or problem.max_leaf_nodes > 2
    return (
        bool(problem.data.levels) and free and some_leaves and problem.max_depth == 2 and problem.losses.shape[1] == 2
    )


def solve_levels(
    problem: Problem, fixed: FixedPoint, clock: Clock, limits: SearchLimits, merge: bool
) -> Solution | None:
    """Find the best tree of a problem that :func:`levels_apply` takes; None if its leaves might be too small."""
    relaxed = replace(problem, min_leaf=1, min_leaf_per_arm=0)
    node = prepare(relaxed, fixed, merge, True, limits.gates)
    leaf, floor = node.leaf()
    one_leaf = leaf + node.penalty
    state = SearchState(problem, fixed, clock, limits, Incumbent(one_leaf, [], min(one_leaf, floor + 2 * node.penalty)))
    leaves = 3 if problem.max_leaf_nodes == 3 else 4
    found, finished, _ = depth_two(node, leaves, clock.flag)
    ordered, tree = problem.data.n_ordered, None
    value, question = int(found.value), _question(int(found.feature), int(found.cut), ordered)
    for column in range(ordered, len(node.bins)):
        least, left = best_first_grouping(node.rows, node.rules, leaves, ordered, column, clock.flag)
        if least < value:
            value, question = int(least), (column, int(left))
    if question is not None:
        tree = _with_second_splits(node, question, leaves, ordered)
    state.incumbent.offer(value, [])
    if finished and not clock.stopped:
        state.incumbent.raise_bound(value)
    data, splits = _as_columns(problem.data, tree)
    state.problem = replace(problem, data=data)
    counters = {"merged_rows": node.n_rows, **dict.fromkeys(COUNTERS, 0), COUNTERS[TWO]: 1}
    solution = state.solution(splits, counters)
    return solution if _keeps_minima(state.problem, splits) else None


def _keeps_minima(problem: Problem, splits: Splits) -> bool:
    """Whether every leaf has as many rows as the problem asks for."""
    counted, minima = counted_rows(problem)
    if not minima:
        return True
    reached = rows_of_splits(problem.data, splits)
    leaves = [rows for rows, (column, _) in zip(reached, splits, strict=True) if column < 0]
    return all(plane[rows].sum() >= least for rows in leaves for plane, least in zip(counted, minima, strict=True))


@dataclass(frozen=True, slots=True)
class _Split:
    """A question, and the splits of those on its left and of the others; None for a leaf."""

    question: tuple[int, int]
    left: _Split | None = None
    right: _Split | None = None


def _question(column: int, cut: int, ordered: int) -> tuple[int, int] | None:
    """The question of a cut as kernels state it, which takes codes of levels to be in order; None for column -1."""
    if column < 0:
        return None
    return column, cut if column < ordered else (2 << cut) - 1


def _goes_left(codes: np.ndarray, question: tuple[int, int], ordered: int) -> np.ndarray:
    """Mark the rows of codes (columns, n) on the left."""
    column, cut = question
    here = codes[column]
    return here <= cut if column < ordered else (cut >> here.astype(np.int64)) & 1 == 1


def _with_second_splits(node: Node, question: tuple[int, int], leaves: int, ordered: int) -> _Split:
    """The best tree whose first split is known."""
    left = _goes_left(node.codes, question, ordered)
    sides = [_one_split(rows_of(node, np.flatnonzero(rows)), ordered) for rows in (left, ~left)]
    if leaves == 3:  # the side that saves more may split
        sides[int(sides[0][0] >= sides[1][0])] = (0, None)
    return _Split(question, sides[0][1], sides[1][1])


def _one_split(node: Node, ordered: int) -> tuple[int, _Split | None]:
    """Find the best tree of at most one split; return what it saves over a leaf, and its split."""
    value, column, cut = best_one_split(node.rows, node.rules)
    value, question = int(value), _question(int(column), int(cut), ordered)
    for column in range(ordered, len(node.bins)):
        sums = add_columns(node.losses, node.codes[column].astype(np.int64), int(node.bins[column]))[0]
        least = int(np.minimum(sums, 0).sum())
        if least < value:
            value, question = least, (column, sum(1 << k for k in np.flatnonzero(sums < 0).tolist()))
    saved = node.leaf()[0] - value - node.penalty
    return (saved, _Split(question)) if saved > 0 and question is not None else (0, None)


def _as_columns(data: BinnedData, tree: _Split | None) -> tuple[BinnedData, Splits]:
    """The tree's splits as cuts of columns, groupings being columns of their own."""
    first, grouped = data.n_ordered, [split for split in _preorder(tree) if split.question[0] >= data.n_ordered]
    grouped.sort(key=lambda split: split.question[0])  # as new columns stand
    places = {id(split): first + k for k, split in enumerate(grouped)}
    sides = [list[np.ndarray]() for _ in data.levels]
    for column, left in (split.question for split in grouped):
        sides[column - first].append(left >> np.arange(data.n_bins[column]) & 1 == 1)
    out = with_groupings(data, sides)
    splits: Splits = []

    def write(split: _Split | None) -> None:
        if split is None:
            splits.append((-1, 0))
            return
        (column, cut), one, other = split.question, split.left, split.right
        if column >= first:
            row = int(np.argmax(_goes_left(data.codes, split.question, first)))
            column, cut = places[id(split)], 0
            if out.codes[column, row]:  # a column may send the other side left
                one, other = other, one
        splits.append((column, cut))
        write(one)
        write(other)

    write(tree)
    return out, splits


def _preorder(tree: _Split | None) -> list[_Split]:
    """All splits of a tree."""
    return [] if tree is None else [tree, *_preorder(tree.left), *_preorder(tree.right)]
