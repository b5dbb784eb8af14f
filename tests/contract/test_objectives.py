"""Contract of every objective: the best tree of all, a bound that holds, consistent predictions."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from policytree import OptimalTreeClassifier
from policytree.exceptions import SearchWarning
from policytree.objectives import FScore, MonotoneObjective, OmegaFScore, PartialAUC, WeightedAccuracy
from policytree.objectives.accuracy import BalancedAccuracy
from policytree.objectives.auc import AUC
from policytree.problem.types import Status
from tests.support import ranking_oracles


def worse_rate(false_positives, missed, positives, negatives):
    """The larger of two error rates."""
    return max(false_positives / negatives, missed / positives)


#: Objectives, and what a bag of leaves loses by definition.
OBJECTIVES = {
    "auc": (AUC(), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats)),
    "partial_auc": (PartialAUC(0.25), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats, Fraction(1, 4))),
    "steep": (PartialAUC(0.6), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats, Fraction(0.6))),
    "f_score": (FScore(), lambda leaf_stats: 1 - ranking_oracles.best_f_score(leaf_stats, 1)),
    "recall": (FScore(2.5), lambda leaf_stats: 1 - ranking_oracles.best_f_score(leaf_stats, 2.5)),
    "precision": (FScore(0.5), lambda leaf_stats: 1 - ranking_oracles.best_f_score(leaf_stats, 0.5)),
    "omega": (OmegaFScore(1.0, 1.5), lambda leaf_stats: 1 - ranking_oracles.omega_f_score(leaf_stats, 1, 1.5)),
    "weighted": (WeightedAccuracy(3.0), lambda leaf_stats: ranking_oracles.weighted_error(leaf_stats, 3)),
    "monotone": (MonotoneObjective(worse_rate), lambda leaf_stats: ranking_oracles.errors_of(leaf_stats, worse_rate)),
    "balanced": (BalancedAccuracy(), ranking_oracles.balanced_error),
}
PRICES = (0.0, 0.01, 0.1)


def random_problem(rng):
    """Some rows, with ties, missing values, and weights that are whole or not; both classes occur."""
    n, p = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    X = rng.integers(0, 3, size=(n, p)).astype(float)
    X[rng.random((n, p)) < rng.choice([0.0, 0.1])] = np.nan
    y = rng.integers(0, 2, size=n)
    y[:2] = 0, 1
    weight = rng.integers(1, 4, size=n).astype(float) if rng.random() < 0.6 else rng.uniform(0.2, 2.0, size=n)
    limits = {"max_depth": int(rng.integers(1, 4))}
    if rng.random() < 0.3:
        limits["min_samples_leaf"] = 2
    if rng.random() < 0.3:
        limits["max_leaf_nodes"] = int(rng.integers(1, 5))
    if rng.random() < 0.2:
        limits["root_feature"] = [int(rng.integers(p))]
    return X, y, weight, limits


def stats_of_trees(X, y, weight, limits):
    exact = [Fraction(float(w)) for w in weight]
    return ranking_oracles.all_leaf_stats(
        X, y == 1, exact, limits["max_depth"], limits.get("min_samples_leaf", 1), limits.get("max_leaf_nodes"),
        limits.get("root_feature"),
    )  # fmt: skip


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_tree_is_the_best_of_all(name, rng):
    objective, lost = OBJECTIVES[name]
    for _ in range(25):
        X, y, weight, limits = random_problem(rng)
        all_stats = stats_of_trees(X, y, weight, limits)
        price = float(rng.choice(PRICES))
        best = min(float(lost(leaf_stats)) + price * len(leaf_stats) for leaf_stats in all_stats)
        tree = OptimalTreeClassifier(regularization=price, objective=objective, **limits).fit(X, y, weight)
        assert tree.objective_value_ == pytest.approx(best, abs=1e-9)
        assert tree.status_ is Status.OPTIMAL
        assert best - 1e-9 <= tree.objective_bound_ + 2e-9 <= best + 3e-9
        check_consistency(tree, X, y, weight, price)


def check_consistency(tree, X, y, weight, price):
    """Score, predictions and their margins say the same; limits are obeyed."""
    score = tree.score(X, y, weight)
    assert 1 - score + price * tree.get_n_leaves() == pytest.approx(tree.objective_value_, abs=1e-9)
    assert ((tree.decision_function(X) > 0) == (tree.predict(X) == 1)).all()
    assert np.allclose(tree.predict_proba(X).sum(axis=1), 1.0)
    assert tree.get_depth() <= tree.max_depth
    assert tree.tree_.n_node_samples[tree.tree_.is_leaf].min() >= min(tree.min_samples_leaf, len(X))
    assert tree.get_n_leaves() <= (tree.max_leaf_nodes or len(X))


THIN = {  # scores that rest on few of the rows, so that small changes of weights move them far
    "recall of few": (
        OmegaFScore(1e-5, 2.0),
        lambda leaf_stats: 1 - ranking_oracles.omega_f_score(leaf_stats, 1e-5, 2),
    ),
    "thirds": (OmegaFScore(1e-4, 1 / 3), lambda leaf_stats: 1 - ranking_oracles.omega_f_score(leaf_stats, 1e-4, 1 / 3)),
    "first of the curve": (PartialAUC(1e-9), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats, Fraction(1e-9))),
    "auc": (AUC(), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats)),
}


@pytest.mark.parametrize("name", THIN)
def test_the_stated_rounding_holds_for_weights_that_are_no_multiples_of_one(name, rng):
    """In exact arithmetic: the tree's value is what it says, and no tree, and no bound, is off by more than is said."""
    objective, lost = THIN[name]
    for _ in range(60):
        X, y, _, limits = random_problem(rng)
        limits.pop("min_samples_leaf", None)  # which may leave no split
        weight = rng.choice([1 / 3, 2 / 3, 1.0, 1e-10 / 3, 2e-10 / 3, 1e-5, 0.1], len(y))
        weight[:2] = 1 / 3, 0.7
        price, exact = float(rng.choice([0.0, 0.01])), [Fraction(w) for w in weight.tolist()]
        tree = OptimalTreeClassifier(regularization=price, objective=objective, **limits).fit(X, y, weight)
        solution, rule = tree.solution_, tree.tree_
        own = [[Fraction(0), Fraction(0)] for _ in range(rule.node_count)]
        for leaf, label, w in zip(rule.apply(X), y, exact, strict=True):
            own[leaf][label] += w
        own = [tuple(leaf) for leaf in own if sum(leaf)]
        value = lost(own) + Fraction(price) * len(own)
        best = min(
            lost(leaf_stats) + Fraction(price) * len(leaf_stats) for leaf_stats in stats_of_trees(X, y, weight, limits)
        )
        stated, ulp = Fraction(solution.resolution), Fraction(1e-14)
        assert abs(Fraction(solution.objective) - value) <= ulp
        assert value - best <= stated + ulp
        assert Fraction(solution.lower_bound) - best <= stated + ulp


def test_area_is_concordance(rng):
    """The oracle's two ways to the same number."""
    for _ in range(50):
        leaf_stats = [(Fraction(int(a)), Fraction(int(b))) for a, b in rng.integers(0, 5, size=(4, 2)) if a + b]
        if sum(n for n, _ in leaf_stats) and sum(p for _, p in leaf_stats):
            assert (
                ranking_oracles.area(leaf_stats)
                == ranking_oracles.concordance(leaf_stats)
                == 1 - AUC().loss(leaf_stats)
            )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_stopped_search_has_a_valid_tree_and_bound(name, rng):
    objective, _ = OBJECTIVES[name]
    X = rng.normal(size=(300, 4))
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0] * X[:, 1]))).astype(int)
    full = OptimalTreeClassifier(2, 0.005, objective=objective).fit(X, y)
    stopped = OptimalTreeClassifier(2, 0.005, objective=objective, time_limit=0.0)
    with warnings.catch_warnings():  # what takes no time at all may be finished
        warnings.simplefilter("ignore", SearchWarning)
        stopped.fit(X, y)
    assert stopped.objective_bound_ <= full.objective_value_ + 1e-9
    assert stopped.objective_value_ >= full.objective_value_ - 1e-9
