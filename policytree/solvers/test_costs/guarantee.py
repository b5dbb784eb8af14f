"""The approximation factor of a greedy tree's expected test cost, as a number."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from policytree.solvers.test_costs.grow import LEAF, CostObjects, CostTests, GreedyRules, GreedyTree


def approximation_factor(tree: GreedyTree, tests: CostTests, objects: CostObjects, rules: GreedyRules) -> float:
    """A factor F: the tree's expected cost is at most F times the least of all trees with leaves as pure.

    "As pure" means what the tree's own leaves were grown to be: of one class, or of probability at most
    ``min_probability``. The factor is that of the proof of Theorem 1, F = 20 * 15 * (1 + ln(1/delta) + log2 n +
    complexity_weight * h) with h the largest surprise of a class (log2(1/p_min) for entropy, 1 for Gini) and delta the
    smallest step of the submodular functions. It is large: the growth with n is what the theorem is about.

    Returns
    -------
    float
        NaN where the theorem does not apply: another rule, tests that are free or become so, a limit of depth, a larger
        ``min_distinct_split``, or leaves that no test could make as pure.
    """
    if not _applies(tree, tests, objects, rules):
        return math.nan
    n = len(objects.labels)
    weights = objects.weights
    rarest = float(weights.min() / weights.sum())
    surprise = math.log2(1.0 / rarest) if rules.criterion == "entropy" else 1.0
    by_class = np.bincount(objects.labels, minlength=objects.n_classes)
    pairs = (n * n - int((by_class.astype(object) ** 2).sum())) // 2
    steps = math.log(max(pairs, 1)) - _log_of_least_probability(weights, rules.min_probability)
    gamma = 15.0 * (1.0 + steps + math.log2(n) + rules.complexity_weight * surprise)
    return 20.0 * gamma


def _applies(tree: GreedyTree, tests: CostTests, objects: CostObjects, rules: GreedyRules) -> bool:
    if rules.split_rule != "regularized" or rules.max_depth is not None or rules.min_distinct_split > 2:
        return False
    if not (tests.column_costs > 0).all():
        return False
    if tests.groups is not None:
        each = np.where(tests.multiway, 1, tests.data.n_bins - 1)
        if np.bincount(tests.column_groups, weights=each).max(initial=0) > 1:
            return False  # a second test of a group would be free
    leaves = np.array(tree.column) == LEAF
    weights = tree.weights[leaves]
    mass = weights.sum(axis=1) / objects.weights.sum()
    return bool(((np.count_nonzero(weights, axis=1) <= 1) | (mass <= rules.min_probability)).all())


def _log_of_least_probability(weights: np.ndarray, threshold: float) -> float:
    """Natural logarithm of a lower bound of p(S) - threshold over sets S of objects with more, and of p_min.

    Steps of the submodular functions are at least that, over the number of pairs. Weights are binary fractions, and so
    is the threshold: no difference of their sums is smaller than one unit of their last places.
    """
    total = sum(map(Fraction, weights.tolist()), Fraction())
    rarest = Fraction(float(weights.min())) / total
    at = Fraction(threshold)
    if (weights == np.floor(weights)).all():
        least = (math.floor(at * total) + 1) / total - at
    else:
        unit = max(Fraction(w).denominator for w in weights.tolist())
        least = 1 / (unit * at.denominator * total)
    least = min(least, rarest)
    return math.log(least.numerator) - math.log(least.denominator)
