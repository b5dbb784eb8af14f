"""Checks what a solver returned, from the definitions: the tree is walked row by row, the objective re-scored exactly.

As in :mod:`tests.support.oracles`, nothing here imports the search, the binning or the methods of ``Tree``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tests.support.oracles import Split, exact_losses, leaf_allowed, split_charges


def rows_of_nodes(tree, X) -> list[list[int]]:
    """The rows that pass each node, walking one row at a time through the tree's arrays."""
    rows: list[list[int]] = [[] for _ in range(len(tree.feature))]
    for i, row in enumerate(np.asarray(X, dtype=np.float64).reshape(len(X), -1).tolist()):
        node = 0
        rows[node].append(i)
        while tree.children_left[node] != -1:
            feature = int(tree.feature[node])
            split = Split(
                feature,
                float(tree.threshold[node]),
                tree.features[feature].kind == "categorical",
                bool(tree.missing_go_to_left[node]),
            )
            node = int(tree.children_left[node] if split.goes_left(row) else tree.children_right[node])
            rows[node].append(i)
    return rows


def leaf_ids(tree) -> list[int]:
    """Nodes without children."""
    return [node for node in range(len(tree.feature)) if tree.children_left[node] == -1]


def tree_depth(tree, node=0) -> int:
    """Largest number of splits on a path below a node."""
    if tree.children_left[node] == -1:
        return 0
    return 1 + max(tree_depth(tree, int(tree.children_left[node])), tree_depth(tree, int(tree.children_right[node])))


def score_tree(tree, X, losses, penalty=0.0, feature_costs=None, weights=None) -> Fraction:
    """Exact ``sum of leaf losses + penalty * leaves + test costs`` of a tree, row by row."""
    losses, price, d = exact_losses(losses, penalty)
    rows = rows_of_nodes(tree, X)
    leaves = leaf_ids(tree)
    total = Fraction(sum(losses[i][int(tree.action[v])] for v in leaves for i in rows[v]) + price * len(leaves), d)
    charges = split_charges(len(tree.features), len(rows[0]), feature_costs, weights)
    splits = set(range(len(tree.feature))) - set(leaves)
    return total + sum(charges[int(tree.feature[node])][i] for node in splits for i in rows[node])


def absolute_total(losses, penalty=0.0, n_leaves=1) -> float:
    """Sum of absolute losses and penalties: the yardstick of rounding errors."""
    return math.fsum(np.abs(np.asarray(losses, dtype=np.float64)).max(axis=1).tolist()) + abs(penalty) * n_leaves


def dearest_level(problem) -> float:
    """Return the cost of testing every row once, on the dearest feature."""
    costs, weights = problem.feature_costs, problem.weights
    if costs is None or not len(costs):
        return 0.0
    return float(costs.max()) * (problem.data.n_rows if weights is None else math.fsum(weights.tolist()))


def check_tree_arrays(tree, X, losses) -> None:
    """The arrays describe one binary tree in preorder, and its counts, sums and actions are those of the rows."""
    losses = np.asarray(losses, dtype=np.float64)
    nodes = len(tree.feature)
    for name in ("children_left", "children_right", "threshold", "missing_go_to_left", "action", "n_node_samples"):
        assert getattr(tree, name).shape == (nodes,), f"{name} must have one entry a node"
    assert tree.value.shape == (nodes, losses.shape[1]), "value must have one column an action"
    assert len(tree.actions) == losses.shape[1], "actions must name every action"

    def preorder(node):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        assert (left == -1) == (right == -1), f"node {node} has one child only"
        return [node] if left == -1 else [node, *preorder(left), *preorder(right)]

    assert preorder(0) == list(range(nodes)), "nodes must stand in preorder, each reached once"
    tolerance = 1e-12 * absolute_total(losses)
    for node, rows in enumerate(rows_of_nodes(tree, X)):
        assert tree.n_node_samples[node] == len(rows) > 0, f"node {node}: {len(rows)} rows reach it"
        sums = [math.fsum(losses[rows, k].tolist()) for k in range(losses.shape[1])]
        assert np.allclose(tree.value[node], sums, rtol=0, atol=tolerance), f"node {node}: value is not the summed loss"
        assert sums[tree.action[node]] <= min(sums) + tolerance, f"node {node}: its action is not the best one"
        if tree.children_left[node] == -1:
            assert tree.feature[node] == -2 and math.isnan(tree.threshold[node]), f"leaf {node} carries a split"
        else:
            assert 0 <= tree.feature[node] < len(tree.features), f"node {node} splits on an unknown feature"
            assert not math.isnan(tree.threshold[node]), f"node {node} has no threshold"


def check_constraints(problem, tree, X) -> None:
    """Depth, leaves and first split are those the problem asks for; no split between two leaves of one action."""
    if problem.max_depth is not None:
        assert tree_depth(tree) <= problem.max_depth, f"depth {tree_depth(tree)} > {problem.max_depth}"
    rows = rows_of_nodes(tree, X)
    leaves = leaf_ids(tree)
    if problem.max_leaf_nodes is not None:
        assert len(leaves) <= problem.max_leaf_nodes, f"{len(leaves)} leaves > {problem.max_leaf_nodes}"
    if problem.root_features is not None and len(leaves) > 1:
        assert tree.feature[0] in problem.root_features, f"the first split is on feature {tree.feature[0]}"
    for leaf in leaves:
        allowed = leaf_allowed(
            rows[leaf], problem.min_leaf, problem.arms, problem.min_leaf_per_arm, problem.losses.shape[1]
        )
        assert allowed, f"leaf {leaf} with rows {rows[leaf]} is too small"
    for node in set(range(len(rows))) - set(leaves):
        left, right = tree.children_left[node], tree.children_right[node]
        if left in leaves and right in leaves:
            assert tree.action[left] != tree.action[right], f"node {node} splits into two leaves of one action"


def check_solution(problem, X, solution) -> None:
    """Everything that can be said about a solution without knowing the optimum.

    ``X`` is the encoded float matrix (n, p) that ``problem.data`` was binned from.
    """
    tree, status = solution.tree, solution.status.name
    check_tree_arrays(tree, X, problem.losses)
    tests = dearest_level(problem)
    scale = absolute_total(problem.losses, problem.leaf_penalty, len(leaf_ids(tree))) + tests * tree_depth(tree)
    rescored = score_tree(tree, X, problem.losses, problem.leaf_penalty, problem.feature_costs, problem.weights)
    assert abs(Fraction(solution.objective) - rescored) <= Fraction(1e-14 * scale), (
        f"objective {solution.objective!r}, but the tree scores {float(rescored)!r}"
    )
    # Sums below the smallest normal float64 have no relative precision to lose.
    coarsest = max(1e-12 * scale, np.finfo(np.float64).tiny)
    if problem.weights is not None and (problem.weights != np.rint(problem.weights)).any():
        # The persons of a row, and what a test costs each, are rounded to what products of int64 can hold.
        coarsest += 2.0**-21 * problem.data.n_rows * tests + 2.0**-22 * scale * (tests > 0)
    assert 0 <= solution.resolution <= coarsest, f"resolution {solution.resolution} is coarse or negative"
    assert solution.lower_bound <= solution.objective, f"bound {solution.lower_bound} > {solution.objective}"
    assert solution.seconds >= 0
    if status == "INFEASIBLE":
        assert len(tree.feature) == 1, "an infeasible problem is answered by a single leaf"
        return
    check_constraints(problem, tree, X)
    if status == "OPTIMAL":
        assert solution.gap <= solution.resolution, f"OPTIMAL with gap {solution.gap} > {solution.resolution}"
