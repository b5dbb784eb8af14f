"""Theorems of weighted sparse trees in a certificate's words: the numbers, their unit, and that they hold."""

from __future__ import annotations

import re

import numpy as np
import pytest

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.estimators.certificate import theorems

NUMBER = r"(-?[\d.,]*\d(?:e-?\d+)?)"


@pytest.fixture
def people():
    """Rewards of two treatments, of which the second is better for about half of the people; weights of many sizes."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 6, size=(150, 2)).astype(float)
    gain = np.where(X[:, 0] > 2, 1.0, -1.0) * rng.lognormal(0, 1, 150) + 0.5 * rng.normal(size=150)
    return X, np.column_stack([np.zeros(150), gain])


def fitted(people, solver, maximize=True, **more):
    X, rewards = people
    way = {"direction": "maximize"} if maximize else {"direction": "minimize"}
    tree = PolicyTree(max_depth=1, solver=solver, random_state=0, **way, **more)
    return tree.fit(X, rewards if maximize else -rewards)


def number(text, pattern):
    found = re.search(pattern.replace("N", NUMBER), text)
    assert found, text
    return float(found[1].replace(",", ""))


@pytest.mark.parametrize("maximize", [True, False])
def test_a_sample_says_how_far_it_is_from_all_rows_and_what_no_tree_reaches(people, maximize):
    tree, best = fitted(people, "sampling", maximize), fitted(people, "direct", maximize)
    said = theorems(tree.solution_, maximize=maximize)["theorem 3"]
    assert "with probability 0.95" in said and "150 drawn rows" in said
    excess = np.abs(people[1][:, 1])  # the labelled rows' weights: what a wrong treatment costs
    assert number(said, "at most N for a tree") == pytest.approx(
        excess.mean() * np.sqrt(np.log(2 / 0.05) / (2 * 150)), rel=0.01
    )
    limit = number(said, "no tree is (?:above|below) N")
    assert ("above" in said) == maximize
    assert limit >= best.objective_value_ - 1e-9 if maximize else limit <= best.objective_value_ + 1e-9
    assert f"theorem 3  {said}" in tree.certificate()


def test_copies_say_what_rounding_does(people):
    tree, best = fitted(people, "duplication"), fitted(people, "direct")
    said = theorems(tree.solution_, maximize=True)["theorem 2"]
    weight = np.abs(people[1][:, 1])
    counts = np.floor(100 * weight / weight.max() + 0.5)
    assert f"rounding weights to {counts.sum() / np.gcd.reduce(counts.astype(int)):,.0f} copies" in said
    assert ("without a copy" in said) == bool((counts == 0).any())
    most = number(said, "of no tree by more than N")
    assert most > 0 and best.objective_value_ - tree.objective_value_ <= 2 * most * 1.01
    assert best.objective_value_ >= tree.objective_value_ - 1e-12


def test_the_bound_of_theorem_2_is_told_where_it_exists():
    X, y = np.arange(8.0).reshape(-1, 1), np.array([0, 0, 1, 0, 1, 1, 0, 1])
    weight = np.array([1.0, 1.1, 1.25, 1.3, 1.0, 1.6, 1.45, 1.05])
    tree = OptimalTreeClassifier(max_depth=1, solver="duplication", solver_options={"factor": 4}, regularization=0.0)
    tree.fit(X, y, sample_weight=weight)
    said = theorems(tree.solution_)["theorem 2"]
    assert number(said, "moves the best objective by at most N") == pytest.approx(
        tree.solution_.guarantees["theorem_2"], rel=0.01
    )


@pytest.mark.parametrize(
    ("solver", "where"), [("direct", ""), ("duplication", "weights of the copies"), ("sampling", "of the sample")]
)
def test_guessed_bounds_say_what_they_may_hide(people, solver, where):
    tree, best = fitted(people, solver, guesses="lower_bounds"), fitted(people, "direct")
    said = theorems(tree.solution_, maximize=True)["theorem 1"]
    assert said.endswith(where) and ("by the weights" in said) == bool(where)
    if not where:
        lost = best.objective_value_ - tree.objective_value_
        assert -1e-12 <= lost <= number(said, "better by at most N") * 1.01


def test_a_proof_needs_no_theorem_and_a_chosen_solver_its_reason(people):
    assert theorems(fitted(people, "direct").solution_) == {}
    said = theorems(fitted(people, "auto").solution_)
    assert list(said) == ["solver"] and "it proves the optimum" in said["solver"]
