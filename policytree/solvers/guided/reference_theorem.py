"""Bounds by a single tree as reference: Theorem 4.1 of McTavish et al. (AAAI 2022)."""

from __future__ import annotations

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.types import Guesses, Problem


def theorem_4_1(problem: Problem, guesses: Guesses) -> dict[str, float | str]:
    """The theorem in numbers, for the guarantees of a solution.

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
