"""Contract of every guess of the registry: its promise against brute force, its status, its seed, its refusals.

A new guess is tested here without a new line. Its promise is that of the fields of ``Guesses`` that it fills: within
guessed thresholds and depth the optimum is found; where lower bounds are guessed, Theorem 1 bounds what they cost.
"""

from __future__ import annotations

import re
from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import PolicyTree
from policytree.exceptions import InputError, SearchWarning
from policytree.guesses import ReferenceGuesses
from policytree.guesses.guess import merged
from policytree.guesses.reference import resolve_guesses
from policytree.guesses.registry import ALL, GUESSES
from policytree.problem.types import Guesses, Status
from policytree.solvers.guided.solve import solve_with_guesses
from tests.support import checker, strategies

pytestmark = pytest.mark.filterwarnings("ignore::policytree.exceptions.SearchWarning")  # tiny data have poor references
each_guess = pytest.mark.parametrize("name", list(GUESSES))


def made(name, problem, seed=0, **options):
    """A small reference's guesses for a problem."""
    wanted = {option: option == name for option in ALL}
    further = () if name in ALL else (name,)
    reference = ReferenceGuesses(**wanted, further=further, n_estimators=4, max_depth=2, random_state=seed, **options)
    return reference.make(problem.data, problem.losses)[0]


def coarse(case: strategies.Case, guesses: Guesses) -> strategies.Case:
    """The case in which only guessed thresholds can be told apart, no deeper than guessed: for brute force."""
    X = case.X.copy()
    for j, kept in enumerate(guesses.thresholds or [None] * X.shape[1]):
        if kept is not None:
            X[:, j] = np.searchsorted(kept, X[:, j], side="left")
    depths = [depth for depth in (case.max_depth, guesses.max_depth) if depth is not None]
    return case.but(X=X, max_depth=min(depths, default=None))


def check_promise(case: strategies.Case, guesses: Guesses) -> None:
    problem, exact, within = case.problem(), case.optimum(), coarse(case, guesses).optimum()
    solution = solve_with_guesses(problem, guesses)
    checker.check_solution(problem, case.X, solution)
    if exact is None:
        assert solution.status is Status.INFEASIBLE
        return
    slack = Fraction(1e-9 * (1 + checker.absolute_total(problem.losses, problem.leaf_penalty, 4)))
    objective, bound = Fraction(solution.objective), Fraction(solution.lower_bound)
    assert objective >= exact - slack, f"better than the optimum: {case!r}"
    assert bound <= within + slack, f"no bound of the trees within the guesses: {case!r}"
    assert objective <= within + Fraction(solution.guarantees.get("theorem_1", 0.0)) + slack, f"promise: {case!r}"
    if guesses.reference_losses is None:
        assert "theorem_1" not in solution.guarantees
    if solution.status is Status.OPTIMAL:
        assert abs(objective - exact) <= slack, f"not optimal: {case!r}"
    else:
        assert solution.status is Status.OPTIMAL_GIVEN_GUESSES
        assert solution.guarantees["guessed"]


# The constraints stay: what is guessed must not loosen them. Missing values and categories have thresholds of their own
# kind, which brute force on coarser numbers does not know; tests/guesses/test_guesses.py has them.
SMALL = {"max_rows": 7, "max_features": 2, "missing": False, "categories": False}


@each_guess
@settings(max_examples=120)
@given(case=strategies.cases(**SMALL), seed=st.integers(0, 3))
def test_promises_hold(name, case, seed):
    check_promise(case, made(name, case.problem(), seed))


@settings(max_examples=120)
@given(case=strategies.cases(**SMALL), names=st.sets(st.sampled_from(list(GUESSES)), min_size=2))
def test_promises_hold_for_several_guesses_at_once(case, names):
    check_promise(case, merged([made(name, case.problem()) for name in sorted(names)]))


# Found by the tests above, while other guesses were registered.
CASES = {
    # The rows that have a label at all look alike, though the table has a threshold.
    "labels alike": strategies.Case(
        np.array([[-1.0], [-1.0], [-1.0], [-0.5]]),
        np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]),
    ),
    # No tree is allowed: the answer is to be scored by the problem's losses, not by the bounded ones.
    "infeasible": strategies.Case(
        np.array([[-1.0], [-1.0], [-1.0], [-0.5]]),
        np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -3.0, 0.0]]),
        max_depth=0,
        arms=np.zeros(4, dtype=np.intp),
        min_leaf_per_arm=1,
    ),
}


@each_guess
@pytest.mark.parametrize("case", list(CASES))
def test_promises_hold_where_they_once_did_not(name, case):
    check_promise(CASES[case], made(name, CASES[case].problem()))


@pytest.mark.parametrize("case", list(CASES))
def test_all_guesses_hold_where_they_once_did_not(case):
    check_promise(CASES[case], merged([made(name, CASES[case].problem()) for name in GUESSES]))


@each_guess
@pytest.mark.parametrize("seed", range(3))
def test_promises_hold_in_the_estimator(name, seed):
    rng = np.random.default_rng([seed, 71])
    case = strategies.planted_case(rng, 150, 3, 3, 9)
    exact = PolicyTree().fit(case.X, -case.losses)
    guessed = PolicyTree(guesses=name, random_state=seed).fit(case.X, -case.losses)
    assert guessed.status_ in (Status.OPTIMAL, Status.OPTIMAL_GIVEN_GUESSES)
    assert guessed.objective_value_ <= exact.objective_value_ + 1e-12
    if guessed.status_ is Status.OPTIMAL:
        assert guessed.objective_value_ == pytest.approx(exact.objective_value_, rel=1e-12)


@each_guess
def test_a_seed_gives_the_same_guesses(name):
    problem = strategies.planted_case(np.random.default_rng(72), 200, 3, 3, 12).problem()
    one, two = (made(name, problem, seed=5) for _ in range(2))
    for a, b in zip(astuple(one), astuple(two), strict=True):
        np.testing.assert_equal(a, b)


@each_guess
def test_something_is_guessed(name):
    problem = strategies.planted_case(np.random.default_rng(73), 200, 3, 3, 12).problem()
    assert any(value is not None for value in astuple(made(name, problem)))


@each_guess
def test_bad_input_is_refused(name):
    huge = strategies.Case(np.arange(4.0)[:, None], np.array([[0.0, 1.7e308], [1.7e308, 0.0]] * 2)).problem()
    with pytest.raises(InputError, match="too large to be added up"):
        made(name, huge)
    with pytest.raises(InputError, match="is not known") as refusal:
        resolve_guesses([name, "nonsense"])
    assert all(repr(known) in str(refusal.value) for known in GUESSES)
    for further in (name, ("nonsense",), [name], 3):
        with pytest.raises(InputError, match=f"further must be .*{re.escape(repr(further))}"):
            ReferenceGuesses(further=further)


@each_guess
def test_a_name_means_that_guess_and_no_other(name):
    assert resolve_guesses(name).names == (name,)
    assert resolve_guesses([name]) == resolve_guesses(name)
    assert ReferenceGuesses(thresholds=False, further=(name,)).names == (name,)


def test_all_means_what_it_always_meant():
    """Whoever wrote "all" gets the same guesses, whatever is registered later."""
    assert ALL == ("thresholds", "depth", "lower_bounds")
    assert resolve_guesses("all").names == ("thresholds", "depth", "lower_bounds")
    assert resolve_guesses("all") == ReferenceGuesses(thresholds=True, depth=True, lower_bounds=True)


def test_merged_guesses_are_the_stricter_ones():
    one = Guesses(3, (np.array([1.0, 2.0]), None), np.array([0.0, 5.0]))
    two = Guesses(2, (np.array([2.0, 3.0]), np.array([7.0])), np.array([1.0, 2.0]))
    both = merged([one, Guesses(), two])
    assert both.max_depth == 2
    assert [thresholds.tolist() for thresholds in both.thresholds] == [[2.0], [7.0]]
    assert both.reference_losses.tolist() == [1.0, 5.0]
    assert merged([]) == Guesses()


def test_poor_references_are_told():
    case = strategies.Case(np.arange(6.0)[:, None], np.array([[0.0, 1.0]] * 5 + [[1.0, 0.0]]), 0.5)
    problem = case.problem()
    with pytest.warns(SearchWarning, match="says little"):
        made("lower_bounds", problem)
