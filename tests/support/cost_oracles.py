"""Oracles for trees that are cheap to apply, by definition: readable, slow, and none of the package's code."""

from __future__ import annotations

import numpy as np


def pairs(labels):
    """Pairs of objects of different classes."""
    n = len(labels)
    return sum(labels[i] != labels[j] for i in range(n) for j in range(i))


def impurity(labels, p, criterion):
    """Impurity of some objects."""
    share = np.array([p[labels == c].sum() for c in np.unique(labels)]) / p.sum()
    return float(1 - (share**2).sum()) if criterion == "gini" else float(-(share * np.log2(share)).sum())


def coverage(i, rows, labels, p, theta):
    """f_i of the paper for object i, which is still together with ``rows``."""
    by_mass = min(1.0, (1.0 - p[rows].sum()) / (1.0 - max(p[i], theta)))
    by_pairs = 1.0 - pairs(labels[rows]) / pairs(labels)
    return 1.0 - (1.0 - by_mass) * (1.0 - by_pairs)


def score(rows, branches, labels, p, cost, rules):
    """Z of a test that sends the objects ``rows`` into ``branches``, or the score of another rule."""
    mass = p[rows].sum()
    reduction = mass * impurity(labels[rows], p[rows], rules.criterion)
    reduction -= sum(p[b].sum() * impurity(labels[b], p[b], rules.criterion) for b in branches)
    if rules.split_rule == "impurity":
        return reduction
    if rules.split_rule == "impurity_per_cost":
        return reduction / cost
    if rules.split_rule == "impure_pairs":
        return (mass * pairs(labels[rows]) - sum(p[b].sum() * pairs(labels[b]) for b in branches)) / cost
    if rules.split_rule == "balance":
        return min(p[b].sum() for b in branches) - max(p[b].sum() for b in branches)
    balance = mass - p[max(branches, key=len)].sum()  # the first of the largest
    efficiency = 0.0
    for branch in branches:
        for i in branch:
            before = coverage(i, rows, labels, p, rules.min_probability)
            after = coverage(i, branch, labels, p, rules.min_probability)
            efficiency += p[i] * (after - before) / (1.0 - before)
    return (balance + efficiency + rules.complexity_weight * reduction) / cost


def all_tests(codes, multiway):
    """Every test: column, cut (-1: multi-way), and the branch of every object."""
    for j in range(codes.shape[1]):
        if multiway[j]:
            yield j, -1, codes[:, j].astype(int)
        else:
            for cut in range(int(codes[:, j].max())):
                yield j, cut, (codes[:, j] > cut).astype(int)


def split(rows, branch):
    """The non-empty branches of some objects."""
    return [rows[branch[rows] == v] for v in np.unique(branch[rows])]


def least_expected_cost(codes, multiway, labels, p, costs, theta):
    """Least expected cost of a tree whose leaves are of one class or of probability at most theta."""
    tests = list(all_tests(codes, multiway))
    known = {}

    def solve(rows):
        name = tuple(rows)
        if len(np.unique(labels[rows])) == 1 or p[rows].sum() <= theta:
            return 0.0
        if name not in known:
            found = [np.inf]
            for j, _, branch in tests:
                parts = split(rows, branch)
                if len(parts) > 1:
                    found.append(costs[j] * p[rows].sum() + sum(solve(part) for part in parts))
            known[name] = min(found)
        return known[name]

    return solve(np.arange(len(labels)))


def best_shared_costs(problem):
    """Least objective where the first split of a group on a path is paid for; inf if no leaf is allowed.

    Limits of depth and leaves may be None.
    """
    data, (n, K) = problem.data, problem.losses.shape
    weights = np.ones(n) if problem.weights is None else problem.weights
    costs, groups = problem.feature_costs, problem.feature_groups

    def leaf(rows):
        if len(rows) < problem.min_leaf:
            return np.inf
        if problem.min_leaf_per_arm and np.bincount(problem.arms[rows], minlength=K).min() < problem.min_leaf_per_arm:
            return np.inf
        return problem.losses[rows].sum(axis=0).min() + problem.leaf_penalty

    known = {}
    most_depth = n - 1 if problem.max_depth is None else problem.max_depth

    def solve(rows, depth, leaves, paid):
        name = (rows.tobytes(), depth, leaves, paid)
        if name not in known:
            known[name] = search(rows, depth, leaves, paid)
        return known[name]

    def search(rows, depth, leaves, paid):
        best = leaf(rows)
        for j, column in enumerate(data.columns if depth and leaves != 1 else ()):
            f = column.feature
            if depth == most_depth and f not in (problem.root_features or range(len(costs))):
                continue
            price = 0.0 if groups[f] in paid else costs[f] * weights[rows].sum()
            for cut in range(data.n_bins[j] - 1):
                left = data.codes[j, rows] <= cut
                if 0 < left.sum() < len(rows):
                    for share in [None] if leaves is None else range(1, leaves):
                        parts = (rows[left], share), (rows[~left], share and leaves - share)
                        sides = (solve(part, depth - 1, most, paid | {groups[f]}) for part, most in parts)
                        best = min(best, price + sum(sides))
        return best

    return solve(np.arange(n), most_depth, problem.max_leaf_nodes, frozenset())
