"""Guesses: depth, thresholds and lower bounds from a reference, and what they promise."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from policytree.data.features import CATEGORICAL, Feature
from policytree.exceptions import InputError, SearchWarning
from policytree.guesses import ReferenceGuesses
from policytree.guesses.depth import guess_depth
from policytree.guesses.lower_bounds import reference_losses
from policytree.guesses.reference import resolve_guesses
from policytree.guesses.thresholds import kept_cuts, snap_thresholds
from policytree.problem.types import Guesses, Problem, SearchLimits, Status
from policytree.solvers.approximate.duplication import solve_duplication
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.rescore import rescore
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.guided.polish import polish
from policytree.solvers.guided.solve import solve_with_guesses
from tests.support import checker, strategies

# --- depth ---


def test_depth_of_the_paper():
    assert guess_depth(10, 3) == 11
    assert guess_depth(100, 3) == 15
    assert guess_depth(40, 1) <= guess_depth(40, 2) <= guess_depth(50, 2) <= guess_depth(500, 2)


@pytest.mark.parametrize("arguments", [(0, 3), (10, 0), (2.5, 1)])
def test_depth_refuses(arguments):
    with pytest.raises(InputError, match="integer >= 1"):
        guess_depth(*arguments)


# --- thresholds ---


@pytest.mark.parametrize("model", ["gradient_boosting", "hist_gradient_boosting"])
def test_column_elimination_keeps_what_matters(rule_problem, model):
    made, report = ReferenceGuesses(model=model, n_estimators=30, max_depth=2).make(
        rule_problem.data, rule_problem.losses
    )
    assert 2 <= report["kept_thresholds"] < 0.2 * report["all_thresholds"] == 0.2 * 300
    assert np.isclose(made.thresholds[0], 30.5).any()
    assert np.isclose(made.thresholds[1], 20.5).any()
    solution = solve_with_guesses(rule_problem, replace(made, reference_losses=None))
    assert solution.status is Status.OPTIMAL_GIVEN_GUESSES
    assert solution.guarantees["guessed"] == "thresholds"
    assert solution.objective <= 1.1 * solve_direct(rule_problem).objective
    assert solution.lower_bound == solution.objective
    used = solution.tree.threshold[~solution.tree.is_leaf]
    assert np.isin(used, np.concatenate(made.thresholds)).all()


def test_elimination_costs_no_accuracy(rule_problem):
    """The reference on the kept thresholds alone is as accurate as on all that it used at first."""
    data, losses = rule_problem.data, rule_problem.losses
    label, weight = losses.argmin(axis=1), np.abs(losses[:, 0] - losses[:, 1])
    model = GradientBoostingClassifier(n_estimators=40, max_depth=2, learning_rate=0.3, random_state=0)
    model.fit(data.codes.T.astype(float), label, sample_weight=weight / weight.mean())
    first = model.score(data.codes.T.astype(float), label, sample_weight=weight)
    exact, report = ReferenceGuesses(n_estimators=40, max_depth=2, learning_rate=0.3).make(data, losses)
    assert 1 - report["reference_loss"] >= first - 1e-3
    rough = ReferenceGuesses(n_estimators=40, max_depth=2, learning_rate=0.3, tolerance=0.03)
    loose, loose_report = rough.make(data, losses)
    assert loose_report["kept_thresholds"] < report["kept_thresholds"]
    assert loose_report["reference_loss"] <= report["reference_loss"] + 0.03 + 1e-9
    assert len(exact.thresholds) == len(loose.thresholds) == 5


def test_weights_reach_the_reference(rng):
    """Rows of tiny weight carry another rule; the kept threshold is the heavy rows'."""
    X = np.repeat(np.arange(40.0), 10)[:, None]
    heavy = rng.random(400) < 0.3
    y = np.where(heavy, X[:, 0] > 9.5, X[:, 0] > 29.5)
    w = np.where(heavy, 100.0, 0.01)
    losses = np.stack([w * y, w * ~y], axis=1)
    made, _ = ReferenceGuesses(n_estimators=5).make(bin_matrix(X), losses)
    assert made.thresholds[0].tolist() == [9.5]


def test_missing_values_and_categories_are_guessed_too(rng):
    X = np.column_stack([rng.integers(0, 4, 500), rng.normal(size=500), rng.normal(size=500)])
    X[rng.random(500) < 0.3, 1] = np.nan
    y = (X[:, 0] == 2) | np.isnan(X[:, 1])
    features = (Feature("kind", CATEGORICAL, tuple("abcd")), Feature("lab"), Feature("noise"))
    problem = Problem(bin_matrix(X, features), np.stack([y, ~y], axis=1).astype(float), 1.0, 2)
    made, _ = ReferenceGuesses(n_estimators=10, max_depth=2).make(problem.data, problem.losses)
    solution = solve_with_guesses(problem, made)
    assert solution.objective == 3.0  # three leaves, no error
    assert made.thresholds[0].tolist() == [2.0]


def test_additive_model(rule_problem):
    pytest.importorskip("interpret")
    made, report = ReferenceGuesses(model="additive", n_estimators=20).make(rule_problem.data, rule_problem.losses)
    assert report["kept_thresholds"] < report["all_thresholds"] / 3
    assert np.abs(made.thresholds[0] - 30.5).min() <= 1 and np.abs(made.thresholds[1] - 20.5).min() <= 1


def test_rewards_of_three_arms(rng):
    X = rng.integers(0, 30, (600, 3)).astype(float)
    rewards = rng.normal(size=(600, 3))
    rewards[:, 1] += 2 * (X[:, 0] > 14)
    rewards[:, 2] += 2 * (X[:, 1] > 19)
    problem = Problem(bin_matrix(X), -rewards, 5.0, 2)
    made, report = ReferenceGuesses(n_estimators=30, max_depth=2).make(problem.data, problem.losses)
    assert report["reference_loss"] < report["leaf_loss"]
    solution, best = solve_with_guesses(problem, made), solve_direct(problem)
    assert solution.lower_bound <= solution.objective
    assert solution.objective - best.objective <= 0.1 * abs(best.objective)


# --- all together ---


def test_all_guesses_at_once(rule_problem):
    made, report = ReferenceGuesses(depth=True, lower_bounds=True, n_estimators=20, max_depth=2).make(
        rule_problem.data, rule_problem.losses
    )
    deep = replace(rule_problem, max_depth=None)
    solution = solve_with_guesses(deep, made)
    assert solution.status is Status.OPTIMAL_GIVEN_GUESSES
    assert "thresholds" in solution.guarantees["guessed"] and "depth" in solution.guarantees["guessed"]
    assert solution.tree.max_depth <= guess_depth(20, 2)
    assert "reference loss" in report["reference"]


def test_other_solvers_take_guesses_as_well(rule_problem):
    made, _ = ReferenceGuesses(n_estimators=20, lower_bounds=True).make(rule_problem.data, rule_problem.losses)
    solution = solve_with_guesses(rule_problem, made, solve=solve_duplication)
    assert solution.status is Status.HEURISTIC
    assert solution.guarantees["rounding_error"] > 0 and "thresholds" in solution.guarantees["guessed"]
    assert solution.lower_bound <= solution.objective


def test_guesses_that_take_nothing_away_leave_the_proof(rule_problem):
    data = rule_problem.data
    every = tuple(column.thresholds for column in data.columns)
    solution = solve_with_guesses(rule_problem, Guesses(thresholds=every, max_depth=9))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == solve_direct(rule_problem).objective


def test_a_poor_reference_is_reported(rng):
    X = rng.integers(0, 30, (400, 2)).astype(float)
    y = rng.random(400) < 0.02
    losses = np.stack([y, ~y], axis=1).astype(float)
    with pytest.warns(SearchWarning, match=r"reference loss 0\.\d+, leaf loss 0\.\d+; the reference predicts one"):
        made, report = ReferenceGuesses(n_estimators=3).make(bin_matrix(X), losses)
    assert report["reference_loss"] == report["leaf_loss"] == y.mean()
    solution = solve_with_guesses(Problem(bin_matrix(X), losses, 0.0, 2), made)
    assert solution.tree.n_leaves == 1 and solution.status is Status.OPTIMAL_GIVEN_GUESSES


@pytest.mark.parametrize("losses", [np.ones((50, 2)), np.ones((50, 1))])
def test_nothing_to_guess(losses, rng):
    made, report = ReferenceGuesses().make(bin_matrix(rng.normal(size=(50, 2))), losses)
    assert made.thresholds is None and "nothing to guess" in report["reference"]


def test_other_classifiers_give_lower_bounds_only(rule_problem):
    model = LogisticRegression(max_iter=5_000)
    made, _ = ReferenceGuesses(thresholds=False, lower_bounds=True, model=model).make(
        rule_problem.data, rule_problem.losses
    )
    assert made.thresholds is None and made.reference_losses.shape == (800,)
    with pytest.raises(InputError, match="LogisticRegression"):
        ReferenceGuesses(model=model).make(rule_problem.data, rule_problem.losses)
    hist = HistGradientBoostingClassifier(max_iter=10, early_stopping=False)
    assert ReferenceGuesses(model=hist).make(rule_problem.data, rule_problem.losses)[0].thresholds is not None


def test_snapped_thresholds_split_alike(rng):
    X = np.column_stack([rng.choice([0.0, 10.0, 11.0], 50), rng.integers(0, 3, 50)])
    features = (Feature("a"), Feature("b", CATEGORICAL, ("x", "y", "z")))
    snapped = snap_thresholds(X, features, [[9.9, -3.0, 4.0], ["z"]])
    assert [s.tolist() for s in snapped] == [[5.0], [2.0]]
    data = bin_matrix(X, features)
    assert [c.tolist() for c in kept_cuts(data, snapped)] == [[0], [], [], [0]]
    assert snap_thresholds(X, features, [None, []])[0] is None
    for bad, match in (([[1.0]], "2; got 1"), ([[1.0], ["q"]], "'q'"), ([["t"], []], "'a' must be numbers")):
        with pytest.raises(InputError, match=match):
            snap_thresholds(X, features, bad)


def test_names_of_guesses():
    assert resolve_guesses(None) is None
    assert resolve_guesses("all", 5) == ReferenceGuesses(depth=True, lower_bounds=True, random_state=5)
    assert resolve_guesses(["depth"]) == ReferenceGuesses(thresholds=False, depth=True)
    with pytest.raises(InputError, match="not known"):
        resolve_guesses("everything")
    with pytest.raises(InputError, match="model must be"):
        ReferenceGuesses(model="forest")


@pytest.mark.parametrize("seed", range(6))
def test_polishing_never_harms(seed):
    rng = np.random.default_rng([seed, 62])
    case = strategies.planted_case(rng, 150, 4, 2 + seed % 2, 7, max_depth=4, penalty=3.0, min_leaf=1 + 5 * (seed % 3))
    problem = case.problem()
    other = replace(problem, losses=problem.losses + 4 * rng.normal(size=problem.losses.shape))
    start = solve_direct(other).tree
    optimum = solve_direct(problem).objective
    _, before = rescore(problem, start)
    tree, after = polish(problem, start)
    checker.check_tree_arrays(tree, case.X, case.losses)
    checker.check_constraints(problem, tree, case.X)
    assert optimum <= after < before


def test_polishing_keeps_to_its_time(rng):
    case = strategies.planted_case(rng, 3_000, 8, 3, 3_000, max_depth=3)
    problem = case.problem()
    start = solve_direct(problem, SearchLimits(time_limit=0.2)).tree
    begun = time.process_time()
    tree, objective = polish(problem, start, time_limit=0.0)
    assert time.process_time() - begun < 2.0
    assert (tree.n_leaves, objective) == (start.n_leaves, rescore(problem, start)[1])
    reference = reference_losses(problem.losses, problem.losses.argmin(axis=1))
    solution = solve_with_guesses(problem, Guesses(reference_losses=reference), SearchLimits(time_limit=1.0))
    assert solution.status is Status.TIME_LIMIT
    assert solution.seconds < 2.0


@pytest.mark.parametrize(
    "options",
    [{"learning_rate": -1}, {"learning_rate": "a"}, {"tolerance": "a"}, {"random_state": "a"}, {"random_state": -1}],
)
def test_a_reference_refuses_its_options_before_the_fit(options):
    with pytest.raises(InputError, match=f"{next(iter(options))} must be"):
        ReferenceGuesses(**options)


def test_a_reference_refuses_losses_that_cannot_be_added():
    losses = np.array([[0.0, 1.7e308], [1.7e308, 0.0]] * 10)
    with pytest.raises(InputError, match="too large to be added up"):
        ReferenceGuesses().make(bin_matrix(np.arange(20.0)[:, None]), losses)


# --- what a guessed depth costs; guessed thresholds as columns ---


@settings(max_examples=150)
@given(case=strategies.cases(max_rows=7, max_features=2), depth=st.integers(0, 2))
def test_theorem_a_1_holds(case, depth):
    """No tree of any depth is better than the tree of the guessed depth by more than the number says."""
    free = case.but(max_depth=None)
    solution, best = solve_with_guesses(free.problem(), Guesses(max_depth=depth)), free.optimum()
    if solution.status is Status.INFEASIBLE:
        assert "theorem_a_1" not in solution.guarantees
        return
    slack = 1e-9 * (1 + checker.absolute_total(case.losses, case.penalty, 8))
    assert solution.objective - solution.guarantees["theorem_a_1"] <= float(best) + slack


def test_theorem_a_1_is_a_useful_number(rule_problem):
    """A price of a leaf that makes deep trees dear: the guess is shown to cost little."""
    dear = replace(rule_problem, leaf_penalty=0.03 * rule_problem.losses.sum(), max_depth=None)
    solution = solve_with_guesses(dear, Guesses(max_depth=2))
    assert solution.guarantees["guessed"] == "depth"
    exact = solve_direct(replace(dear, max_depth=4)).objective
    assert solution.objective - exact <= solution.guarantees["theorem_a_1"] < solution.objective
    both = solve_with_guesses(dear, Guesses(2, reference_losses=np.zeros(800)))
    assert both.guarantees["theorem_a_1"] == pytest.approx(solution.guarantees["theorem_a_1"])
    assert "theorem_a_1" not in solve_with_guesses(rule_problem, Guesses(max_depth=3)).guarantees


def test_theorems_about_sums_are_not_stated_of_other_objectives(rng):
    from policytree import OptimalTreeClassifier

    X = rng.integers(0, 5, (120, 3)).astype(float)
    y = ((X[:, 0] > 2) ^ (rng.random(120) < 0.1)).astype(int)
    model = OptimalTreeClassifier(3, 0.02, objective="auc", guesses=Guesses(max_depth=2)).fit(X, y)
    assert model.solution_.guarantees["guessed"] == "depth" and "theorem_a_1" not in model.solution_.guarantees


@pytest.mark.parametrize("seed", range(6))
def test_cuts_as_columns_of_their_own_change_nothing(seed, monkeypatch):
    """Missing values, categories and real weights; both ways give the optimum within the thresholds."""
    from policytree.solvers.guided import solve

    rng = np.random.default_rng([seed, 64])
    case = strategies.planted_case(rng, 200, 4, 2, 9, max_depth=3 + seed % 2, penalty=[0.0, 2.0][seed % 2])
    X = case.X.copy()
    X[rng.random(200) < 0.2, 0] = np.nan
    problem = Problem(bin_matrix(X), case.losses * rng.lognormal(size=(200, 1)), case.penalty, case.max_depth)
    thresholds = tuple(
        np.unique(np.concatenate([c.thresholds for c in problem.data.columns if c.feature == f]))[::2] for f in range(4)
    )
    monkeypatch.setattr(solve, "_two_valued", lambda problem, gates: problem)
    coded = solve_with_guesses(problem, Guesses(thresholds=thresholds))
    monkeypatch.setattr(
        solve, "_two_valued", lambda problem, gates: replace(problem, data=solve.single_cuts(problem.data))
    )
    single = solve_with_guesses(problem, Guesses(thresholds=thresholds))
    assert single.objective == pytest.approx(coded.objective, rel=1e-12)
    assert single.status is coded.status is Status.OPTIMAL_GIVEN_GUESSES
    checker.check_solution(problem, X, single)
