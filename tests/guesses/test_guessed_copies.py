"""Theorems 1 to 3 together: copies and draws of rows whose lower bounds are guessed. Rows are counted as they stand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import OptimalTreeClassifier, PolicyTree, load_dataset
from policytree.guesses.lower_bounds import reference_losses
from policytree.problem.types import Guesses, Status
from policytree.solvers.approximate.auto import solve_auto
from policytree.solvers.approximate.duplication import integer_counts, solve_duplication, tree_rounding_error
from policytree.solvers.approximate.sampling import sampling_radius, solve_sampling
from policytree.solvers.core.labelled import LabelledRows
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.guided.solve import solve_with_guesses
from tests.solvers.test_duplication import labelled_problem
from tests.support import checker, oracles, strategies

SMALL = {"max_rows": 7, "max_features": 2, "constraints": False, "costs": False}


def trees_of(case):
    """The actions of every tree of one split at most, row by row, and its leaves."""
    for rule in oracles.enumerate_trees(oracles.all_splits(case.X, case.categorical), case.losses.shape[1], 1):
        yield np.array([oracles.leaf_of(rule, row)[1] for row in case.X.tolist()]), oracles.count_leaves(rule)


def two_actions(case):
    """The case with its first two actions: labels and weights, as in the papers."""
    return case.but(losses=case.losses[:, :2], max_depth=1, arms=None)


def copied(case, labelled, counts, wrong_of_reference):
    """Straight from the definition: for every tree its errors and Theorem 1's right-hand side, over physical copies."""
    rows = np.repeat(np.arange(len(counts)), counts)
    reference = wrong_of_reference[labelled.row[rows]]
    unit = counts.sum() / labelled.total
    for actions, leaves in trees_of(case):
        wrong = actions[labelled.row[rows]] != labelled.label[rows]
        penalty = case.penalty * unit * leaves
        weighted = labelled.constant + labelled.weight @ (actions[labelled.row] != labelled.label)
        yield weighted + case.penalty * leaves, wrong.sum() + penalty, (wrong | reference).sum() + penalty


@settings(max_examples=150)
@given(case=strategies.cases(**SMALL), factor=st.integers(1, 6), seed=st.integers(0, 2**31))
def test_theorems_1_and_2_of_duplicated_rows(case, factor, seed):
    case = two_actions(case)
    problem, labelled = case.problem(), LabelledRows.of(case.problem())
    if not len(labelled.weight):
        return
    guessed = np.random.default_rng(seed).integers(0, 2, len(case.X))
    solution = solve_duplication(problem, None, reference_losses(case.losses, guessed), factor=factor)
    checker.check_solution(problem, case.X, solution)
    made = integer_counts(labelled.weight, factor)
    above, below = tree_rounding_error(problem, labelled, made)
    wrong = np.zeros(len(case.X), dtype=bool)
    wrong[labelled.row] = guessed[labelled.row] != labelled.label
    every = list(copied(case, labelled, made.counts, wrong))
    unit, total = labelled.total / made.counts.sum(), labelled.total
    best = min(weighted for weighted, _, _ in every)
    assert solution.lower_bound <= best + 1e-9 <= solution.objective + 2e-9
    if case.penalty > 2 * total:  # no split can pay: nothing is copied
        return
    # Theorem 1 for every tree, in copies; what rounding adds is at most `below`.
    limit = labelled.constant + unit * min(right for _, _, right in every) + below * total
    assert solution.objective <= limit + 1e-9
    lost = solution.guarantees["theorem_1"]
    assert solution.objective - lost - (above + below) * total <= best + 1e-9
    # Theorem 2: the optimal values of both weightings.
    least = labelled.constant + unit * min(errors for _, errors, _ in every)
    assert abs(least - best) <= min(1.0, solution.guarantees["theorem_2"] / total) * total + 1e-9
    plain = solve_duplication(problem, factor=factor)
    for name in ("theorem_2", "rounding_error", "epsilon", "eta", "zeta", "psi", "dropped_weight"):
        assert solution.guarantees[name] == plain.guarantees[name]
    assert solution.counters["duplicated_rows"] == plain.counters["duplicated_rows"] == made.counts.sum()


@settings(max_examples=150)
@given(case=strategies.cases(**SMALL), amplification=st.sampled_from([0.5, 1.0, 3.0]), seed=st.integers(0, 2**31))
def test_theorem_1_of_drawn_rows(case, amplification, seed):
    case = two_actions(case)
    problem, labelled = case.problem(), LabelledRows.of(case.problem())
    if not len(labelled.weight) or case.penalty > 2 * labelled.total:
        return
    guessed = np.random.default_rng(seed).integers(0, 2, len(case.X))
    reference = reference_losses(case.losses, guessed)
    solution = solve_sampling(problem, None, reference, amplification=amplification, random_state=seed)
    checker.check_solution(problem, case.X, solution)
    size = max(1, round(amplification * len(labelled.weight)))
    assert solution.counters["drawn_rows"] == size and solution.counters["labelled_rows"] == len(labelled.weight)
    assert solution.guarantees["theorem_3"] == pytest.approx(labelled.total * sampling_radius(size))
    draw = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    counts = draw.multinomial(size, labelled.weight / labelled.total)
    wrong = np.zeros(len(case.X), dtype=bool)
    wrong[labelled.row] = guessed[labelled.row] != labelled.label
    every = list(copied(case, labelled, counts, wrong))
    unit = labelled.total / size
    best = min(weighted for weighted, _, _ in every)
    apart = max(weighted - labelled.constant - unit * errors for weighted, errors, _ in every)
    limit = labelled.constant + unit * min(right for _, _, right in every) + max(apart, 0.0)
    assert solution.objective <= limit + 1e-9
    assert solution.lower_bound <= best + 1e-9


@settings(max_examples=80)
@given(case=strategies.cases(max_rows=7, max_features=2), seed=st.integers(0, 2**31))
@pytest.mark.parametrize("solve", [solve_duplication, solve_sampling, solve_auto])
def test_bounds_hold_for_losses_of_any_kind(solve, case, seed):
    """Several actions, constraints, costs; a reference that is no model at all."""
    rng = np.random.default_rng(seed)
    reference = rng.uniform(case.losses.min() - 1, case.losses.max() + 1, len(case.X))
    solution = solve_with_guesses(case.problem(), Guesses(reference_losses=reference), solve=solve)
    checker.check_solution(case.problem(), case.X, solution)
    optimum = case.optimum()
    if optimum is None:
        assert solution.status is Status.INFEASIBLE
        return
    slack = 1e-9 * (1 + checker.absolute_total(case.losses, case.penalty, 4))
    assert solution.lower_bound <= float(optimum) + slack
    if solution.status is Status.OPTIMAL:
        assert solution.objective <= float(optimum) + slack


def test_what_copies_prove_stays_within_the_resolution():
    """The bound loses the resolution of counts twice: a gap of 1.1e-13 was called optimal beside one of 1e-13."""
    X = np.array([[-1.0, -1.0], [-1.0, -1.0], [-0.5, -1.0]])
    losses = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    case = strategies.Case(X, losses, max_depth=0)
    reference = np.random.default_rng(0).uniform(-2.0, 2.0, 3)
    solution = solve_with_guesses(case.problem(), Guesses(reference_losses=reference), solve=solve_duplication)
    checker.check_solution(case.problem(), X, solution)


def test_probable_bounds_of_guessed_draws_fail_no_more_often_than_they_say():
    rng = np.random.default_rng(45)
    problem, *_ = labelled_problem(rng)
    optimum = solve_direct(problem).objective
    reference = reference_losses(problem.losses, rng.integers(0, 2, 200))
    failures = 0
    for seed in range(100):
        solution = solve_sampling(problem, None, reference, amplification=0.5, random_state=seed, delta=0.3)
        failures += solution.guarantees["probable_lower_bound"] > optimum + 1e-9
    assert failures <= 45  # 30 expected at most; 45 is beyond three standard errors


def test_theorem_3_covers_the_optimal_tree_whatever_was_guessed():
    """The stated radius is that of the rows drawn, not of the groups in which bounds are guessed."""
    rng = np.random.default_rng(46)
    problem, X, y, w = labelled_problem(rng, n=300, n_values=3, p=2, penalty=0.0)  # nine groups of rows
    best = solve_direct(problem)
    reference = reference_losses(problem.losses, rng.integers(0, 2, 300))
    solution = solve_sampling(problem, None, reference, delta=0.2)
    radius = solution.guarantees["theorem_3"]
    assert solution.counters["drawn_rows"] == 300
    wrong = best.tree.action[best.tree.apply(X)] != y
    errors = np.array([rng.multinomial(300, w / w.sum()) @ wrong for _ in range(1_000)]) / 300 * w.sum()
    assert (np.abs(errors - w @ wrong) > radius).mean() <= 0.2
    assert np.abs(errors - w @ wrong).max() > radius / 2


@pytest.mark.parametrize("guesses", ["lower_bounds", ["thresholds", "lower_bounds"]])
@pytest.mark.parametrize(
    ("solver", "counted"), [("duplication", "duplicated_rows"), ("sampling", "drawn_rows"), ("auto", "none")]
)
def test_lalondes_men_are_counted_alike_with_and_without_guesses(solver, counted, guesses):
    study = load_dataset("lalonde").study()
    y = (np.asarray(study.Y) > np.median(study.Y)).astype(int)
    weight = 1 + np.asarray(study.X["age"], dtype=float) ** 1.5
    plain, guessed = (
        OptimalTreeClassifier(max_depth=2, solver=solver, guesses=each, random_state=0).fit(study.X, y, weight)
        for each in (None, guesses)
    )
    said = [tree.solution_.counters.get(counted) for tree in (plain, guessed)]
    assert said[0] == said[1]
    if counted == "drawn_rows":
        assert said == [722, 722]
    for name in ("theorem_2", "theorem_3", "rounding_error"):
        stated = [tree.solution_.guarantees.get(name) for tree in (plain, guessed)]
        assert stated[0] == stated[1]
    assert guessed.optimality_gap_ >= 0
    if solver != "auto":
        assert "theorem_1" in guessed.solution_.guarantees


def test_guarantees_have_the_unit_of_the_objective(rng):
    """Ten times the rewards: ten times every bound; as many rows again: no bound changes, where it is no draw."""
    X = rng.integers(0, 5, (200, 3)).astype(float)
    rewards = np.column_stack([np.zeros(200), rng.normal(size=200) + (X[:, 0] > 2)])
    options = {"max_depth": 2, "random_state": 0, "guesses": "lower_bounds"}
    for solver, names in (("duplication", ("theorem_1", "theorem_2")), ("sampling", ("theorem_1", "theorem_3"))):
        one = PolicyTree(solver=solver, **options).fit(X, rewards).solution_
        ten = PolicyTree(solver=solver, **options).fit(X, 10 * rewards).solution_
        for name in names:
            assert ten.guarantees[name] == pytest.approx(10 * one.guarantees[name])
        assert one.guarantees["theorem_1"] <= np.abs(rewards).mean()
        assert "gap" in str(one) and "theorem_1" in str(one)
    twice = PolicyTree(solver="duplication", **options).fit(np.tile(X, (2, 1)), np.tile(rewards, (2, 1))).solution_
    once = PolicyTree(solver="duplication", **options).fit(X, rewards).solution_
    for name in ("theorem_1", "theorem_2", "rounding_error", "tree_rounding_error"):
        assert twice.guarantees[name] == pytest.approx(once.guarantees[name])
    assert twice.gap == pytest.approx(once.gap) and twice.objective == pytest.approx(once.objective)
