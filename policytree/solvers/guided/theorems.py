"""Upper bounds of the cost of guesses, in numbers: Theorems 4.1 and A.1 of McTavish et al. (AAAI 2022)."""

from __future__ import annotations

import math

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.types import Guesses, Problem, Solution
from policytree.solvers.core.rescore import equivalent_points_bound


def theorem_4_1(problem: Problem, guesses: Guesses) -> dict[str, float | str]:
    """Bounds by a single tree as reference (Theorem 4.1), for the guarantees of a solution.

    Parameters
    ----------
    problem : Problem
        With the guessed thresholds and depth.
    guesses : Guesses

    Returns
    -------
    dict
        Empty without ``guesses.reference_tree``. ``reference_tree_leaves``, the number H of its leaves; and
        ``theorem_4_1``: no optimum, guessed lower bounds or not, has an objective above this number, in the unit of
        summed losses; or a sentence that says why the theorem does not apply.

    Notes
    -----
    Let T be the reference, fitted on the kept thresholds, and t' a single tree with its predictions on all rows. Then
    ``R(t*) <= L(T) + penalty * H(t')``, since t' is one of the trees that are searched (Theorem 4.1). With guessed
    lower bounds the same holds of the tree found (Corollary 4.3.1): what is minimised, ``max(r_i, l_i)`` summed over
    rows, is ``L(T)`` for t'. It is needed that the problem allows t'.
    """
    tree = guesses.reference_tree
    if tree is None:
        return {}
    n, K = problem.losses.shape
    actions = np.asarray(tree.actions)
    if actions.shape != (n,) or actions.dtype.kind not in "iu" or actions.min() < 0 or actions.max() >= K:
        raise InputError(f"actions of reference_tree must be {n} integers from 0 to {K - 1}, one per row.")
    obstacle = _obstacle(problem, guesses)
    if obstacle:
        return {"reference_tree_leaves": float(tree.leaves), "theorem_4_1": f"does not apply: {obstacle}"}
    loss = float(problem.losses[np.arange(n), actions].sum())
    return {
        "reference_tree_leaves": float(tree.leaves),
        "theorem_4_1": loss + problem.leaf_penalty * tree.leaves,
    }


def _obstacle(problem: Problem, guesses: Guesses) -> str:
    """Why the problem may not allow the reference tree."""
    tree = guesses.reference_tree
    assert tree is not None
    if problem.max_depth is not None and problem.max_depth < tree.depth:
        return f"the reference's tree has depth {tree.depth}, and {problem.max_depth} is allowed"
    if problem.max_leaf_nodes is not None and problem.max_leaf_nodes < tree.leaves:
        return f"the reference's tree has {tree.leaves} leaves, and {problem.max_leaf_nodes} are allowed"
    if tree.smallest_leaf < problem.min_leaf or problem.min_leaf_per_arm > 0:
        return "a leaf of the reference's tree may have fewer rows than are asked for"
    if problem.feature_costs is not None or problem.root_features is not None:
        return "splits have a price, or the first split is not free"
    return ""


def theorem_a_1(problem: Problem, solution: Solution) -> dict[str, float]:
    """By how much at most a deeper tree is better than the one that was found, for the guarantees of a solution.

    Parameters
    ----------
    problem : Problem
        With the guessed thresholds and depth.
    solution : Solution
        Of it.

    Returns
    -------
    dict
        ``theorem_a_1``, in the unit of summed losses: no tree of any depth on the same thresholds has an objective that
        is smaller by more.

    Notes
    -----
    Let t* be the optimum without the guessed limit d, H its leaves, and E what rows lose that no split tells apart and
    that therefore get the same action. If t* is deeper than d, the theorem bounds what is lost by ``L(t') - E - penalty
    * (H - leaves of t')``, t' being t* without what is below depth d. t* is not known, but the tree found, t, is no
    worse than t', and a tree deeper than d has at least ``d + 2`` leaves. So the loss is at most ``L(t) - E - penalty *
    (d + 2 - leaves of t)``. If t* is not deeper, it is at most the gap of the search.
    """
    assert problem.max_depth is not None, "the depth was guessed"
    fewest = problem.max_depth + 2
    deeper = math.inf
    if fewest <= (problem.max_leaf_nodes or problem.data.n_rows):
        deeper = equivalent_points_bound(problem) + problem.leaf_penalty * (fewest - 1)  # one leaf is in it
    return {"theorem_a_1": max(0.0, solution.objective - min(solution.lower_bound, deeper))}
