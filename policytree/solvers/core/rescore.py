"""Trees found for other losses (rounded, sampled, bounded), scored by the problem's own losses."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import Problem
from policytree.solvers.core.columns import equal_rows, group_sums, preorder_splits
from policytree.solvers.core.scoring import paid_below, scored_tree, split_cost
from policytree.trees.tree import Tree


def rescore(problem: Problem, tree: Tree) -> tuple[Tree, float]:
    """The tree's splits with the best actions for the problem's losses, and its objective in float64.

    Splits that do not pay for their leaves under these losses are taken back, which only lowers the objective.

    Parameters
    ----------
    problem : Problem
    tree : Tree
        Its thresholds must be cuts of ``problem.data``; its losses and actions do not matter.
    """
    return scored_tree(problem, _prune(problem, preorder_splits(tree, problem.data)))


def _prune(problem: Problem, splits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    entries = iter(splits)

    def walk(rows: np.ndarray, paid: frozenset) -> tuple[float, list[tuple[int, int]]]:
        column, cut = next(entries)
        leaf = float(problem.losses[rows].sum(axis=0).min()) + problem.leaf_penalty
        if column < 0:
            return leaf, [(-1, 0)]
        left = problem.data.codes[column, rows] <= cut
        below = paid_below(problem, column, paid)
        one, first = walk(rows[left], below)
        other, second = walk(rows[~left], below)
        both = one + other + split_cost(problem, column, rows, paid)
        if leaf <= both:
            return leaf, [(-1, 0)]
        return both, [(column, cut), *first, *second]

    return walk(np.arange(problem.data.n_rows), frozenset())[1]


def equivalent_points_bound(problem: Problem) -> float:
    """A lower bound that always holds: rows no split can tell apart take one action, and there is at least one leaf.

    (The equivalent-points bound of Angelino et al., "Certifiably optimal rule lists", JMLR 2018, section 3.14.)
    """
    first, group = equal_rows(problem.data)
    floor = float(group_sums(problem.losses, group, len(first)).min(axis=1).sum())
    rounding = 1e-14 * float(np.abs(problem.losses).max(axis=1).sum())
    return floor + problem.leaf_penalty - rounding
