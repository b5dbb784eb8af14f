"""Better subtrees for a tree found for other losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.problem.types import GATES, Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.columns import keep_rows, preorder_splits
from policytree.solvers.core.limits import now
from policytree.solvers.core.scoring import scored_tree, split_cost
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.estimate import estimated_seconds
from policytree.trees.tree import Tree


def polish(
    problem: Problem, tree: Tree, depth: int = 4, time_limit: float | None = None, gates: SizeGates = GATES
) -> tuple[Tree, float]:
    """Replace subtrees, from the leaves up, by the best ones of some depth where these cost less.

    Parameters
    ----------
    problem : Problem
    tree : Tree
        Its thresholds must be cuts of ``problem.data``; it must keep the problem's leaf sizes and depth.
    depth : int
        Depth of the subtrees that are solved anew, where the depth limit leaves room for it; less, down to two, where
        that looks long, by an estimate that does not depend on the machine's load: trees must not, either.
    time_limit : float or None
        Seconds for all of them; subtrees that are not reached by then stay as they are.
    gates : SizeGates, optional

    Returns
    -------
    Tree
        With the best actions for the problem's losses.
    float
        Its objective, in float64.
    """
    entries = iter(preorder_splits(tree, problem.data))
    end = None if time_limit is None else now() + time_limit

    def walk(rows: np.ndarray, level: int) -> tuple[float, list[tuple[int, int]]]:
        column, cut = next(entries)
        cost, splits, leaves = float(problem.losses[rows].sum(axis=0).min()) + problem.leaf_penalty, [(-1, 0)], 1
        if column >= 0:
            left = problem.data.codes[column, rows] <= cut
            one, first = walk(rows[left], level + 1)
            other, second = walk(rows[~left], level + 1)
            both = one + other + split_cost(problem, column, rows)
            leaves = sum(c < 0 for c, _ in first + second)
            if both < cost:
                cost, splits = both, [(column, cut), *first, *second]
        seconds = None if end is None else end - now()
        if seconds is not None and seconds <= 0:
            return cost, splits
        room = depth if problem.max_depth is None else min(depth, problem.max_depth - level)
        part = replace(
            problem,
            data=keep_rows(problem.data, rows),
            losses=problem.losses[rows],
            max_depth=room,
            arms=None if problem.arms is None else problem.arms[rows],
            weights=None if problem.weights is None else problem.weights[rows],
            max_leaf_nodes=None if problem.max_leaf_nodes is None else leaves,
            root_features=None if level > 0 else problem.root_features,
        )
        while room > 2 and estimated_seconds(part, gates) > gates.most_polish_seconds:
            room -= 1
            part = replace(part, max_depth=room)
        found = solve_direct(part, SearchLimits(seconds, gates=gates))
        if found.status is not Status.INFEASIBLE and found.objective < cost:
            cost, splits = found.objective, preorder_splits(found.tree, problem.data)
        return cost, splits

    return scored_tree(problem, walk(np.arange(problem.data.n_rows), 0)[1])
