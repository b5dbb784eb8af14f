"""Objectives as users meet them: names, metrics of scikit-learn, paths, refusals; and why they are optimal."""

import threading
import time
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, fbeta_score, roc_auc_score

from policytree import OptimalTreeClassifier, tree_path
from policytree.evaluation import near_ties
from policytree.exceptions import InputError, SearchWarning
from policytree.guesses import Guesses
from policytree.objectives import FScore, MonotoneObjective, OmegaFScore, PartialAUC, WeightedAccuracy
from policytree.objectives.accuracy import BalancedAccuracy
from policytree.objectives.auc import AUC
from policytree.objectives.registry import resolve_objective
from policytree.problem.types import SearchLimits, Status
from policytree.solvers.core import limits
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.multi_objective import monotone
from policytree.solvers.multi_objective.monotone import _Monotone
from policytree.solvers.nonadditive import fractional, ranking
from policytree.solvers.nonadditive.registry import solver_for
from tests.support import ranking_oracles


@pytest.fixture
def labelled(rng):
    """Rows of two classes with text labels; the positive one is rare."""
    X = rng.normal(size=(400, 3)).round(1)
    y = np.where(rng.random(400) < 1 / (1 + np.exp(2 - 1.5 * X[:, 0] - X[:, 1] ** 2)), "sick", "fine")
    y = np.where(y == "sick", "z_sick", "a_fine")
    return X, y, rng.uniform(0.5, 2.0, 400)


def fitted(objective, labelled, **arguments):
    X, y, w = labelled
    return OptimalTreeClassifier(2, 0.01, objective=objective, **arguments).fit(X, y, w)


def test_scikit_learn_agrees(labelled):
    X, y, w = labelled
    tree = fitted("f_score", labelled)
    assert tree.score(X, y, w) == pytest.approx(
        fbeta_score(y, tree.predict(X), beta=1, pos_label="z_sick", sample_weight=w)
    )
    tree = fitted(FScore(beta=2), labelled)
    assert tree.score(X, y, w) == pytest.approx(
        fbeta_score(y, tree.predict(X), beta=2, pos_label="z_sick", sample_weight=w)
    )
    tree = fitted("auc", labelled)
    area = roc_auc_score(y, tree.predict_proba(X)[:, 1], sample_weight=w)
    assert (
        area
        == pytest.approx(tree.score(X, y, w))
        == pytest.approx(1.01 - tree.objective_value_ + 0.01 * (tree.get_n_leaves() - 1))
    )
    tree = fitted(PartialAUC(max_fpr=0.3), labelled)
    standard = roc_auc_score(y, tree.decision_function(X), sample_weight=w, max_fpr=0.3)
    assert tree.objective_.standardized(tree.score(X, y, w)) == pytest.approx(standard)
    tree = fitted("balanced_accuracy", labelled)
    assert tree.score(X, y, w) == pytest.approx(balanced_accuracy_score(y, tree.predict(X), sample_weight=w))


def test_scores_count_rows_of_unknown_classes_as_mistakes(labelled):
    X, y, _ = labelled
    other = np.where(np.arange(len(y)) < 40, "new", y)
    for objective in ("accuracy", "balanced_accuracy", WeightedAccuracy(omega=2)):
        tree = fitted(objective, labelled)
        assert tree.score(X, other) < tree.score(X[40:], y[40:])


def test_whole_partial_area_is_the_area(labelled):
    assert fitted(PartialAUC(1.0), labelled).objective_value_ == pytest.approx(fitted(AUC(), labelled).objective_value_)


def test_the_restricted_labelling_is_never_better(labelled):
    best = fitted(FScore(), labelled).objective_value_
    for omega in (0.5, 1.0, 2.0, 4.0):
        assert fitted(OmegaFScore(omega=omega), labelled).objective_value_ >= best - 1e-12


def exact_ratio(leaves, beta):
    """``1 - F`` of leaves (negatives, positives) with the best labels, from fractions."""
    square, positives = Fraction(beta) ** 2, sum(leaf[1] for leaf in leaves)
    found, ranked = [Fraction(1)], sorted(leaves, key=lambda leaf: leaf[0] / (leaf[0] + leaf[1]))
    for k in range(1, len(ranked) + 1):
        false, missed = sum(n for n, _ in ranked[:k]), sum(p for _, p in ranked[k:])
        found.append((false + square * missed) / ((1 + square) * positives + false - missed))
    return min(found)


@pytest.mark.parametrize("beta", [0.001, 1.0])
@pytest.mark.parametrize("seed", [5, 11, 15, 20])
def test_weights_of_eleven_decades(beta, seed):
    """The value is that of the weights as given; what their rounding may hide stands in the certificate."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (30, 2)).astype(float), rng.integers(0, 2, 30)
    weight = np.where(y == 1, 10.0 ** rng.uniform(-6, 0.5, 30), 10.0 ** rng.uniform(-6, 5, 30))
    weight[0], y[0] = 1.0, 1
    tree = OptimalTreeClassifier(2, 0.0, objective=FScore(beta)).fit(X, y, weight)
    exact = [Fraction(w) for w in weight]

    def value(groups):
        sums = [[sum(exact[i] for i in rows if y[i] == label) for label in (0, 1)] for rows in groups if len(rows)]
        return exact_ratio(sums, beta)

    def divisions(rows):
        yield [rows]
        for j in range(2):
            for cut in range(3):
                yield [rows[X[rows, j] <= cut], rows[X[rows, j] > cut]]

    trees = ([*left, *right] for root in divisions(np.arange(30)) for left in divisions(root[0])
             for right in (divisions(root[1]) if len(root) > 1 else [[]]))  # fmt: skip
    leaf = tree.apply(X)
    own = value([np.flatnonzero(leaf == node) for node in np.unique(leaf)])
    assert tree.objective_value_ == pytest.approx(float(own), rel=4e-16)
    assert tree.status_ is Status.OPTIMAL
    unit = tree.solution_.resolution
    assert float(own - min(map(value, trees))) <= unit
    hidden = unit > 1e-9 * tree.objective_value_
    assert ("rounding   trees that differ by less than" in tree.certificate()) == hidden
    assert hidden or beta == 1.0


def test_the_pareto_search_finds_the_same_f_score(labelled):
    for beta in (0.5, 1.0, 2.0):
        b = beta**2
        loss = MonotoneObjective(lambda fp, fn, p, n, b=b: (fp + b * fn) / ((1 + b) * p + fp - fn))
        direct, by_all = fitted(FScore(beta), labelled), fitted(loss, labelled)
        assert by_all.objective_value_ == pytest.approx(direct.objective_value_, abs=1e-9)


def test_weights_of_several_classes(rng):
    X = rng.normal(size=(300, 2))
    y = np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 1.5])
    weighted = OptimalTreeClassifier(2, 0.01, objective=WeightedAccuracy(class_weights={2: 5.0})).fit(X, y)
    by_hand = OptimalTreeClassifier(2, 0.01).fit(X, y, np.where(y == 2, 5.0, 1.0))
    assert weighted.objective_value_ == pytest.approx(by_hand.objective_value_)
    assert weighted.score(X, y) == pytest.approx(by_hand.score(X, y, np.where(y == 2, 5.0, 1.0)))
    assert weighted.decision_function(X).shape == (300, 3)


@pytest.mark.parametrize("objective", ["f_score", "auc"])
def test_paths_end_in_the_best_tree_without_a_price(labelled, objective):
    X, y, w = labelled
    path = tree_path(OptimalTreeClassifier(max_depth=2, objective=objective), X, y, sample_weight=w)
    free = OptimalTreeClassifier(2, 0.0, objective=objective).fit(X, y, w)
    assert path.proved
    assert path.values[-1] == pytest.approx(free.objective_value_, abs=1e-9)
    assert (np.diff(path.n_leaves) > 0).all() and (np.diff(path.values) < 0).all()
    for k, estimator in enumerate(path.estimators):
        price = estimator.regularization
        direct = OptimalTreeClassifier(2, price, objective=objective).fit(X, y, w)
        assert direct.objective_value_ == pytest.approx(path.values[k] + price * path.n_leaves[k], abs=1e-9)


def test_certificates_say_what_is_proved(labelled):
    text = fitted("auc", labelled, max_leaf_nodes=4).certificate()
    assert "optimal: no tree of depth 2 or less and at most 4 leaves is better, among" in text
    assert "1 - area under the ROC curve on the rows that chose the tree, plus 0.01 per leaf: flattered" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"objective": "kappa"}, "objective='kappa' is not known"),
        ({"objective": "auc", "solver": "sampling"}, "leave solver at 'direct'"),
        ({"objective": "f_score", "feature_costs": [1.0, 0.0, 0.0]}, "feature_costs are costs per row"),
        ({"objective": "auc", "guesses": "lower_bounds"}, "guesses of lower bounds"),
        ({"objective": MonotoneObjective(max), "max_depth": 4}, "max_depth up to 3"),
        ({"objective": MonotoneObjective(lambda *_: float("nan"))}, "finite numbers"),
    ],
)
def test_refusals(labelled, arguments, words):
    X, y, _ = labelled
    with pytest.raises(InputError, match=words):
        OptimalTreeClassifier(**{"max_depth": 2, **arguments}).fit(X, y)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FScore(beta=0), "beta must be a finite number > 0"),
        (lambda: PartialAUC(max_fpr=1.5), "max_fpr must be a finite number > 0 and <= 1"),
        (lambda: WeightedAccuracy(omega=-1), "omega must be"),
        (lambda: WeightedAccuracy(omega=2, class_weights={"a": 1}), "give one of them"),
        (lambda: MonotoneObjective("loss"), "must be a function"),
    ],
)
def test_refusals_of_parameters(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_trees_without_a_limit_are_refused(rng):
    X = rng.normal(size=(2500, 2))
    y = (rng.random(2500) < 0.3).astype(int)
    with pytest.raises(InputError, match="needs a limit on the size of trees"):
        OptimalTreeClassifier(regularization=0.0, objective="auc").fit(X, y)


def test_two_classes_are_needed(rng):
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    for objective in ("auc", "f_score", "partial_auc"):
        with pytest.raises(InputError, match="needs two classes"):
            OptimalTreeClassifier(max_depth=2, objective=objective).fit(X, y)


def test_estimators_with_objectives_are_cloned():
    tree = OptimalTreeClassifier(objective=FScore(beta=2.0))
    assert clone(tree).objective == FScore(beta=2.0)
    assert resolve_objective("balanced_accuracy") == BalancedAccuracy()


def test_guessed_thresholds_are_within_the_best(labelled):
    best = fitted("auc", labelled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guessed = fitted("auc", labelled, guesses="thresholds", random_state=0)
    assert guessed.objective_value_ >= best.objective_value_ - 1e-9
    assert guessed.status_.proved


# --- the picture ---


def test_the_curve_of_training_rows_is_its_hull(labelled):
    X, y, w = labelled
    tree = fitted("auc", labelled)
    display = tree.plot_roc(X, y, sample_weight=w)
    x, height = display.line_.get_data()
    assert len(x) == tree.get_n_leaves() + 1
    slopes = np.diff(height) / np.maximum(np.diff(x), 1e-12)
    assert (np.diff(slopes) <= 1e-9).all()
    assert display.curve.area == pytest.approx(tree.score(X, y, w))
    again = fitted(PartialAUC(0.2), labelled).plot_roc(X, y, name="left", ax=display.ax_)
    assert [text.get_text() for text in again.ax_.get_legend().get_texts()][1].startswith("left (AUC")
    assert again.line_.get_color() != display.line_.get_color()


def test_no_curve_of_one_class(labelled):
    X, y, _ = labelled
    with pytest.raises(InputError, match="one class only"):
        fitted("auc", labelled).plot_roc(X[y == "a_fine"], y[y == "a_fine"])


# --- buckets ---


def test_buckets_lose_accuracy():
    """Theorem 3.1 of Lin et al. (ICML 2020): a cut between neighbours of one class can be the one that is needed.

    Left of 4.5 the positives are high up, right of it low down, and there are negatives in between, so that the first
    split must be there. The rows on both sides of it are positive: buckets, which cut the first column between classes
    only, may not cut there.
    """
    first = np.arange(1.0, 9.0)
    second = np.array([0.0, 2.0, -2.0, 2.0, -2.0, 2.0, 0.0, -2.0])
    y = np.where(first < 4.5, second > 1, second < -1).astype(int)
    X = np.column_stack([first, second])
    between_classes = first[:-1][y[:-1] != y[1:]] + 0.5
    assert 4.5 not in between_classes
    buckets = Guesses(thresholds=(between_classes, None))
    free = OptimalTreeClassifier(2, 0.0).fit(X, y)
    bucketed = OptimalTreeClassifier(2, 0.0, guesses=buckets).fit(X, y)
    assert free.score(X, y) == 1.0
    assert bucketed.score(X, y) == 7 / 8


# --- what was mended ---


def test_ties_of_labels_end(rng):
    """Omega times the positives of a leaf equal its negatives: the search used to find the same tree for ever."""
    X = np.array([[1.9], [0.2], [0.0], [0.5], [0.3], [-0.8]])
    y = np.array([1, 0, 0, 0, 1, 1])
    weight = np.array([3.0, 1.0, 2.0, 3.0, 1.0, 1.0])
    objective = OmegaFScore(beta=2.0, omega=1.0)
    tree = OptimalTreeClassifier(regularization=0.1, objective=objective, time_limit=20).fit(X, y, weight)
    all_stats = ranking_oracles.all_leaf_stats(X, y == 1, [Fraction(w) for w in weight], 5)
    best = min(
        1 - ranking_oracles.omega_f_score(leaf_stats, 2, 1) + Fraction(0.1) * len(leaf_stats)
        for leaf_stats in all_stats
    )
    assert tree.status_.proved
    assert tree.objective_value_ == pytest.approx(float(best), abs=1e-9)


@pytest.mark.parametrize("omega", [1.0, 2.0, 1 / 3, 3.3])
def test_labels_of_many_ties_are_exact(rng, omega):
    """Real weights that nearly tie are told apart, whole ones tie."""
    for k in range(8):
        X, y = rng.integers(0, 3, size=(8, 2)).astype(float), np.r_[0, 1, rng.integers(0, 2, 6)]
        weight = rng.choice([0.1, 0.2, 0.3, 0.6] if k % 2 else [1.0, 2.0, 3.0, 6.0], 8)
        tree = OptimalTreeClassifier(2, 0.01, objective=OmegaFScore(omega=omega)).fit(X, y, weight)
        all_stats = ranking_oracles.all_leaf_stats(X, y == 1, [Fraction(w) for w in weight], 2)
        best = min(
            1 - ranking_oracles.omega_f_score(leaf_stats, 1, omega) + Fraction(0.01) * len(leaf_stats)
            for leaf_stats in all_stats
        )
        assert tree.status_.proved
        assert tree.objective_value_ == pytest.approx(float(best), abs=1e-9)


def test_a_class_of_next_to_no_weight_has_exact_rates():
    X, y = np.arange(5.0)[:, None], np.array([0, 1, 0, 1, 0])
    weight = np.array([1e-7, 1.0, 2e-7, 2.0, 1.1e-7])
    for objective in (PartialAUC(0.5), FScore(0.5)):
        for given in (y, 1 - y):
            tree = OptimalTreeClassifier(1, 0.0, objective=objective).fit(X, given, weight)
            assert tree.objective_value_ == pytest.approx(1 - tree.score(X, given, weight), abs=1e-10)


@pytest.mark.parametrize("beta", [1e-200, 1e200])
def test_betas_beyond_floats_are_refused(beta):
    with pytest.raises(InputError, match="beta must be a finite number > 0 and <= 1e"):
        FScore(beta)


def test_functions_that_fall_are_refused(labelled):
    X, y, w = labelled
    falls = MonotoneObjective(lambda fp, fn, p, n: fn / p - fp / n)
    with pytest.raises(InputError, match="must not fall where one of them rises"):
        OptimalTreeClassifier(2, 0.01, objective=falls).fit(X, y, w)


def test_rates_of_an_absent_class_have_no_score(labelled):
    """Of rows of one class a rate of the other is 0 / 0, which ended in a ZeroDivisionError."""
    X, y, _ = labelled
    fine = y == "a_fine"
    tree = fitted(MonotoneObjective(worse_rate), labelled)
    for rows in (fine, ~fine):
        with pytest.raises(InputError, match=r"divides by zero .* one class only: pass rows of both classes, or a"):
            tree.score(X[rows], y[rows])
    per_row = fitted(MonotoneObjective(lambda fp, fn, p, n: (fp + fn) / (p + n)), labelled)
    assert per_row.score(X[fine], y[fine]) == pytest.approx(np.mean(per_row.predict(X[fine]) == "a_fine"))


def test_functions_that_divide_by_zero_are_refused(labelled):
    X, y, w = labelled
    of_called = MonotoneObjective(lambda fp, fn, p, n: fp / (p - fn + fp))  # the share of errors among those called
    with pytest.raises(InputError, match=r"divides by zero for 0 false positives .* it must give finite numbers\.$"):
        OptimalTreeClassifier(2, 0.01, objective=of_called).fit(X, y, w)


def test_near_ties_refuse_objectives_of_bags(labelled):
    X, y, _ = labelled
    tree = OptimalTreeClassifier(2, 0.01, objective="auc").fit(X, y)
    with pytest.raises(InputError, match="for a sum over rows, which objective='auc' is not"):
        near_ties(tree, X, y)


def worse_rate(false_positives, missed, positives, negatives):
    """The worse of two error rates."""
    return max(false_positives / negatives, missed / positives)


def test_bounds_of_stopped_monotone_searches_say_something(labelled):
    """The least weighted errors bound every loss; a function of rates alone would be bounded by zero."""
    best = fitted(MonotoneObjective(worse_rate), labelled).objective_value_
    X, y, w = labelled
    problem = OptimalTreeClassifier(2, 0.01, objective=MonotoneObjective(worse_rate))._prepare(X, y, w).problem
    search = _Monotone(problem, MonotoneObjective(worse_rate), SearchLimits())
    search._bound()
    assert best - 0.01 >= search.least >= 0.8 * (best - 0.04)


@pytest.mark.parametrize("objective", [FScore(), AUC(), MonotoneObjective(worse_rate)])
def test_progress_is_told_with_valid_bounds(labelled, objective, monkeypatch):
    X, y, w = labelled
    monkeypatch.setattr(limits, "LOOK_EVERY", 1e-4)  # so that there are looks while so small a search runs
    job = OptimalTreeClassifier(2, 0.005, objective=objective)._prepare(X, y, w)
    seen, told = [], threading.Lock()

    def tell(progress):
        """Reports that overlapped, from the search and from the thread that waits for it, came out of order."""
        assert told.acquire(blocking=False)
        time.sleep(1e-3)
        seen.append(progress)
        told.release()

    solution = solver_for(objective)(job.problem, SearchLimits(progress=tell))
    assert solution.status.proved and len(seen) > 2
    assert all(p.lower_bound <= solution.objective + 1e-9 <= p.objective + 2e-9 for p in seen)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)


@pytest.mark.parametrize("when", [2, 4])
def test_interrupted_f_scores_begin_no_further_search(labelled, monkeypatch, when):
    """Ctrl-C in one of the searches used to be followed by another one."""
    X, y, w = labelled
    problem = OptimalTreeClassifier(3, 0.01, objective="f_score")._prepare(X, y, w).problem
    done = []

    def stopped(inner, limits):
        done.append(solve_direct(inner, limits))
        return done[-1] if len(done) < when else replace(done[-1], status=Status.INTERRUPTED)

    monkeypatch.setattr(fractional, "solve_direct", stopped)
    solution = fractional.solve_fractional(problem, objective=FScore())
    assert len(done) == when
    assert solution.status is Status.INTERRUPTED
    assert solution.lower_bound <= solution.objective


@pytest.mark.parametrize(
    ("objective", "module"), [(FScore(), fractional), (AUC(), ranking), (MonotoneObjective(worse_rate), monotone)]
)
def test_interrupts_between_searches_keep_the_best_tree(labelled, monkeypatch, objective, module):
    X, y, w = labelled
    calls = []

    def interrupted(inner, limits):
        calls.append(inner)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return solve_direct(inner, limits)

    monkeypatch.setattr(module, "solve_direct", interrupted)
    with pytest.warns(SearchWarning, match="ended by interrupted"):
        tree = OptimalTreeClassifier(3, 0.01, objective=objective).fit(X, y, w)
    assert tree.objective_bound_ <= tree.objective_value_


def test_bounds_that_say_nothing_prove_nothing():
    """At a price near what the best tree loses, the first bound is below zero: it once ended the search."""
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0], [2.0]])
    y, weight = np.array([0, 0, 1, 0, 1, 0]), np.array([3.0, 2.0, 0.1, 0.15, 0.1, 1.0])
    tree = OptimalTreeClassifier(2, 0.1, objective=OmegaFScore(beta=0.5)).fit(X, y, weight)
    all_stats = ranking_oracles.all_leaf_stats(X, y == 1, [Fraction(w) for w in weight], 2)
    best = min(
        1 - ranking_oracles.omega_f_score(leaf_stats, 0.5, 1) + Fraction(0.1) * len(leaf_stats)
        for leaf_stats in all_stats
    )
    assert tree.status_.proved
    assert tree.objective_value_ == pytest.approx(float(best), abs=1e-9)


@pytest.mark.parametrize("objective", [AUC(), PartialAUC(0.3), OmegaFScore()])
def test_trees_of_bounds_obey_the_limits(rng, objective):
    """Bounds are of trees with any first column and number of leaves; such trees once came out."""
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    y = ((X[:, 1] == 1) ^ (rng.random(40) < 0.1)).astype(int)
    for root, leaves in ((0, None), (None, 2), (0, 3)):
        limits = {"root_feature": root, "max_leaf_nodes": leaves}
        tree = OptimalTreeClassifier(3, 0.001, objective=objective, **limits).fit(X, y)
        assert tree.get_n_leaves() <= (leaves or 9)
        assert root is None or tree.tree_.feature[0] in (root, -2)
        all_stats = ranking_oracles.all_leaf_stats(
            X, y == 1, [Fraction(1)] * 40, 3, max_leaf_nodes=leaves, root_features=None if root is None else {root}
        )
        price = Fraction(0.001)
        if objective.name == "omega_f_score":
            best = min(
                1 - ranking_oracles.omega_f_score(leaf_stats, 1, 1) + price * len(leaf_stats)
                for leaf_stats in all_stats
            )
        else:
            limit = Fraction(getattr(objective, "max_fpr", None) or 1)
            best = min(
                1 - ranking_oracles.area(leaf_stats, limit) + price * len(leaf_stats) for leaf_stats in all_stats
            )
        assert tree.objective_value_ == pytest.approx(float(best), abs=1e-9)


@pytest.mark.parametrize("objective", ["auc", "omega_f"])
def test_numbers_of_rows_bound_deep_trees_of_bag_objectives(rng, objective):
    """Several values a column, hundreds of rows, depth four: the search then prices rows, which ended in an error."""
    X = rng.integers(0, 9, (400, 6))
    y = (rng.random(400) < 0.3 + 0.05 * X[:, 0]).astype(int)
    objective = OmegaFScore(0.5) if objective == "omega_f" else objective
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)  # the time limit
        tree = OptimalTreeClassifier(4, 0.02, objective=objective, time_limit=5).fit(X, y)
    assert tree.objective_bound_ <= tree.objective_value_ + 1e-12


# --- classes of very unequal weight ---

UNEQUAL = [AUC(), PartialAUC(max_fpr=0.2), FScore(), MonotoneObjective(lambda fp, fn, P, N: max(fp / N, fn / P))]


def two_classes(ratio):
    """Eight rows; those of class 0 weigh so many times as much."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    w = np.array([0.3, 0.1, 0.7, 0.2, 0.7, 0.2, 0.1, 0.3])
    return X, y, np.where(y == 0, ratio, 1.0) * w


@pytest.mark.parametrize("objective", UNEQUAL, ids=lambda o: o.name)
@pytest.mark.parametrize("ratio", [1e-6, 1.1e-5, 1.0, 9e4, 1e6])
def test_bounds_hold_where_classes_differ_in_weight(objective, ratio):
    if isinstance(objective, MonotoneObjective) and not 1e-5 < ratio < 1e5:
        pytest.skip("refused: see below")
    X, y, w = two_classes(ratio)
    tree = OptimalTreeClassifier(2, 0.0, objective=objective).fit(X, y, w)
    assert tree.status_ is Status.OPTIMAL
    own = 1.0 - tree.score(X, y, w)
    assert tree.objective_value_ == pytest.approx(own, abs=1e-9) and tree.objective_bound_ <= own + 1e-9
    if not isinstance(objective, FScore):  # the others do not heed how classes weigh against each other
        other = OptimalTreeClassifier(2, 0.0, objective=objective).fit(X, y, two_classes(1.0)[2])
        assert own == pytest.approx(1.0 - other.score(X, y, w), abs=1e-9)


@pytest.mark.parametrize("objective", UNEQUAL, ids=lambda o: o.name)
@pytest.mark.parametrize("ratio", [1e-20, 1e9, 1e17, 1e20])
def test_classes_too_unequal_to_prove_anything_are_refused(objective, ratio):
    """From 1e9 on bounds lay above the optimum, from 1e17 on trees were wrong, beyond a division by zero ended them."""
    X, y, w = two_classes(ratio)
    with pytest.raises(InputError, match=r"sample_weight makes one class weigh .* rescale the weights of a class"):
        OptimalTreeClassifier(2, 0.0, objective=objective).fit(X, y, w)
