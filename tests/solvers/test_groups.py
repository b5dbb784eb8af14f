"""Categories that are split into groups of levels: every grouping against brute force, and every way out of a tree."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import OptimalTreeClassifier, PolicyTree, tree_path
from policytree.data.features import CATEGORICAL, Feature, level_threshold
from policytree.estimators.certificate import SearchGrid
from policytree.evaluation import near_ties
from policytree.exceptions import InputError, SearchWarning
from policytree.guesses import Guesses
from policytree.problem.split_columns import GROUPS, best_grouping
from policytree.problem.types import Problem, Status
from policytree.report.outline import outline, rules
from policytree.serialization.trees import from_dict, from_json, to_dict, to_json
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from tests.support import oracles
from tests.support.checker import check_constraints, check_solution, score_tree

LETTERS = tuple("abcdefgh")


def grouped_problem(X, losses, categorical, last=False, as_levels=False, **rules):
    features = tuple(Feature(f"x{j}", CATEGORICAL, LETTERS) if j in categorical else Feature(f"x{j}")
                     for j in range(X.shape[1]))  # fmt: skip
    data = bin_matrix(X, features, categories=GROUPS, losses=losses, min_leaf=rules.get("min_leaf", 1), last=last,
                      as_levels=as_levels)  # fmt: skip
    return Problem(data, losses, **rules)


def draw(rng, n, levels, K, gaps):
    X = np.column_stack([rng.integers(0, levels, n), rng.integers(0, 3, n), rng.integers(0, 4, n)]).astype(float)
    if gaps:
        X[rng.random(X.shape) < 0.15] = np.nan
    weights = rng.integers(1, 4, n)
    return X, (rng.integers(-3, 6, (n, K)) * weights[:, None]).astype(float)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("gaps", [False, True])
def test_every_tree_over_every_grouping(K, depth, gaps):
    rng = np.random.default_rng(10 * K + depth + 100 * gaps)
    for _ in range(25):
        X, losses = draw(rng, int(rng.integers(5, 12)), 5, K, gaps)
        rules = {"leaf_penalty": float(rng.integers(0, 3)), "min_leaf": int(rng.integers(1, 4))}
        problem = grouped_problem(X, losses, (0, 2), max_depth=depth, **rules)
        expected = oracles.best_tree(
            X, losses, rules["leaf_penalty"], depth, rules["min_leaf"], categorical=(0, 2), grouped=True
        )[0]
        solution = solve_direct(problem)
        if expected is None:
            assert solution.status is Status.INFEASIBLE
            continue
        assert solution.status is Status.OPTIMAL and solution.objective == expected
        check_solution(problem, X, solution)
        check_constraints(problem, solution.tree, X)
        assert score_tree(solution.tree, X, losses, rules["leaf_penalty"]) == expected


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("least", [1, 4, 9])
def test_last_split_of_more_levels_than_are_enumerated(monkeypatch, K, least):
    """The few columns of a last split are as good as all 2**(L - 1) - 1, also where leaves must hold many rows."""
    rng = np.random.default_rng(K + 7 * least)
    for _ in range(20):
        X, losses = draw(rng, 30, 7, K, gaps=bool(rng.integers(2)))
        rules = {"leaf_penalty": float(rng.integers(0, 3)), "min_leaf": least, "max_depth": 1}
        every = solve_direct(grouped_problem(X, losses, (0, 2), **rules))
        with monkeypatch.context() as few:
            few.setattr("policytree.problem.split_columns.MOST_ENUMERATED", 1)
            problem = grouped_problem(X, losses, (0, 2), last=True, **rules)
            deeper = grouped_problem(X, losses, (0, 2), **rules)
        assert problem.data.exact and not deeper.data.exact
        found = solve_direct(problem)
        assert found.status is Status.OPTIMAL and found.objective == every.objective
        check_solution(problem, X, found)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([None, 3, 4]), st.sampled_from([0, 0, 1, 3]))
@settings(max_examples=150, deadline=None)
def test_levels_of_which_no_grouping_has_a_column(seed, gaps, most_leaves, least):
    """Depth two, two actions: one column of levels is as good as one for each grouping, also if leaves must be large.

    Losses are small whole numbers, whose sums are exact in 32 bits, or numbers of many digits, whose sums are rounded.
    """
    rng = np.random.default_rng(seed)
    X, losses = draw(rng, int(rng.integers(4, 14)), int(rng.integers(3, 7)), 2, gaps)
    if rng.random() < 0.5:
        losses = np.round(losses + rng.normal(size=losses.shape), int(rng.integers(1, 12)))
    price = float(rng.choice([0.0, 1.0, 2.5]))
    rules = {"max_depth": 2, "leaf_penalty": price, "min_leaf": max(least, 1), "max_leaf_nodes": most_leaves}
    if least == 1:
        rules |= {"arms": rng.integers(0, 2, len(X)), "min_leaf_per_arm": 1}
    categorical = (0, 2) if rng.random() < 0.5 else (0,)
    problem = grouped_problem(X, losses, categorical, as_levels=True, **rules)
    every = grouped_problem(X, losses, categorical, **rules)
    assert SearchGrid.of_data(problem.data).n_splits == SearchGrid.of_data(every.data).n_splits
    spelt = {name: rules[name] for name in ("min_leaf", "arms", "min_leaf_per_arm", "max_leaf_nodes") if name in rules}
    expected = oracles.best_tree(X, losses, price, 2, categorical=categorical, grouped=True, **spelt)[0]
    found, other = solve_direct(problem), solve_direct(every)
    if expected is None:
        assert found.status is other.status is Status.INFEASIBLE
        return
    assert found.status is Status.OPTIMAL and abs(Fraction(found.objective) - expected) <= found.resolution + 1e-12
    assert abs(Fraction(other.objective) - expected) <= other.resolution + 1e-12
    assert abs(found.gap) <= found.resolution
    check_constraints(problem, found.tree, X)
    assert score_tree(found.tree, X, losses, price) == pytest.approx(found.objective, abs=1e-12)


def test_levels_and_long_numbers():
    """A column of levels beside numbers of very many values, whose pairs have no tables: as a column a grouping."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, 5, 400), rng.permutation(400), rng.permutation(400)]).astype(float)
        losses = np.column_stack([np.zeros(400), rng.normal(size=400) + 0.4 * np.isin(X[:, 0], [1, 3])])
        losses[:, 1] -= 0.8 * ((X[:, 1] > 150) & (X[:, 2] > 90))
        rules = {"max_depth": 2, "leaf_penalty": 0.01, "max_leaf_nodes": 3 if seed % 2 else None}
        by_levels = solve_direct(grouped_problem(X, losses, (0,), as_levels=True, **rules))
        by_columns = solve_direct(grouped_problem(X, losses, (0,), **rules))
        assert by_levels.status is by_columns.status is Status.OPTIMAL
        assert by_levels.objective == pytest.approx(by_columns.objective, abs=by_columns.resolution)


def test_where_levels_are_searched_without_columns_of_groupings():
    """Two actions at depth two; elsewhere every grouping is a column, and the tree is the same."""
    X, rewards = regions(n=240)
    fitted = PolicyTree(max_depth=2, categories="groups").fit(X, rewards)
    assert fitted.search_grid_.n_splits == 31 + X["age"].nunique() - 1 and fitted.status_ is Status.OPTIMAL
    problem = PolicyTree(max_depth=2, categories="groups")._prepare(X, rewards).problem
    assert len(problem.data.columns) == 2 and problem.data.levels[0].n_levels == 6
    for other in ({"max_depth": 3}, {"max_depth": 1}, {"root_feature": "age"}, {"feature_costs": {"age": 0.1}}):
        job = PolicyTree(**{"max_depth": 2, **other}, categories="groups")._prepare(X, rewards)
        assert not job.problem.data.levels
        assert solve_direct(replace(problem, max_depth=job.problem.max_depth)).status is Status.OPTIMAL
    three = np.column_stack([rewards, rewards[:, 1] / 2])
    assert not PolicyTree(max_depth=2, categories="groups")._prepare(X, three).problem.data.levels
    path = tree_path(PolicyTree(max_depth=2, categories="groups"), X, rewards)
    assert path.n_leaves.max() >= 2


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_best_grouping_against_all_subsets(seed, least):
    rng = np.random.default_rng(seed)
    L = int(rng.integers(2, 8))
    one, other = rng.integers(-5, 6, (2, L)).astype(float)
    sizes = rng.integers(1, 6, L)
    sets = [list(s) for size in range(1, L) for s in combinations(range(L), size)]
    allowed = [s for s in sets if least <= sizes[s].sum() <= sizes.sum() - least]
    split = min((one[s].sum() + np.delete(other, s).sum() for s in allowed), default=np.inf)
    leaf = min(one.sum(), other.sum())
    side = best_grouping(one, other, sizes, least)
    found = leaf
    if side is not None:
        assert least <= sizes[side].sum() <= sizes.sum() - least
        found = min(leaf, one[side].sum() + other[~side].sum())
    assert found == min(split, leaf)


def test_contiguous_in_the_order_of_means():
    """Fisher's theorem: sorted by mean difference, the best grouping without a smallest leaf is a prefix."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        one, other = rng.integers(-5, 6, (2, 7)).astype(float)
        side = best_grouping(one, other, rng.integers(1, 9, 7))
        if side is not None:
            ordered = side[np.argsort((one - other) / rng.integers(1, 9), kind="stable")]
            assert (np.diff(ordered.astype(int)) <= 0).all()


def test_above_the_last_split_no_prefix_is_best():
    """Why first splits are enumerated: the only best grouping of four levels is a prefix of no order by mean gain."""
    gains = np.array([[-2.0, 3.0], [-3.0, 2.0], [2.1, -1.9], [1.9, -2.1]])  # of levels, where x is 0 and where it is 1
    X = np.array([[level, x] for level in range(4) for x in range(2)], dtype=float)
    losses = np.column_stack([np.zeros(8), -gains.ravel()])

    def best_of(rows, depth):
        return oracles.best_tree(X[rows], losses[rows], max_depth=depth, categorical=(0,), grouped=True)[0]

    everything, values = best_of(np.ones(8, dtype=bool), 2), {}
    for size in (1, 2):
        for levels in combinations(range(4), size):
            side = np.isin(X[:, 0], levels)
            values[frozenset(levels)] = best_of(side, 1) + best_of(~side, 1)
    order = np.argsort(gains.mean(axis=1)).tolist()
    prefixes = [frozenset(order[:k]) for k in (1, 2, 3)]
    beside = [values[p] if p in values else values[frozenset(range(4)) - p] for p in prefixes]
    assert everything == values[frozenset({0, 1})] == values[frozenset({2, 3})] < min(beside)
    assert float(everything) == pytest.approx(-gains[gains > 0].sum())
    found = solve_direct(grouped_problem(X, losses, (0,), max_depth=2))
    assert found.objective == everything and found.status is Status.OPTIMAL


@given(st.sets(st.integers(0, 52)))
def test_thresholds_and_sets_of_levels(levels):
    feature = Feature("x", CATEGORICAL, tuple(range(53)))
    assert feature.levels_at(level_threshold(sorted(levels))) == tuple(sorted(levels))


@pytest.mark.parametrize("wrong", [-2.0, -4.0, -9.5, 3.0, -11.0, np.inf, -np.inf])
def test_thresholds_of_no_set(wrong):
    with pytest.raises(InputError, match="stands for no set of the 3 categories of feature 'x'"):
        Feature("x", CATEGORICAL, ("a", "b", "c")).levels_at(wrong)


def regions(n=120, levels="abcdef", gain="ace", seed=0):
    """A table whose levels ``gain`` gain 1 by treatment, the others lose 1."""
    region = np.array(list(levels))[np.arange(n) % len(levels)]
    X = pd.DataFrame({"region": region, "age": np.random.default_rng(seed).normal(size=n).round(2)})
    return X, np.column_stack([np.zeros(n), np.where(np.isin(region, list(gain)), 1.0, -1.0)])


def test_six_levels_of_which_three_gain():
    X, rewards = regions()
    single = PolicyTree(max_depth=1).fit(X, rewards)
    tree = PolicyTree(max_depth=1, categories="groups").fit(X, rewards)
    assert single.objective_value_ < 0.3 and tree.objective_value_ == 0.5 == tree.objective_bound_
    assert "region: one level against the rest; categories='groups' searches groups" in single.certificate()
    assert "one level" not in tree.certificate() and tree.status_ is Status.OPTIMAL
    assert "region is one of a, c, e?" in tree.export_text()
    assert tree.to_rules()["rule"].tolist() == ["region is one of a, c, e", "not (region is one of a, c, e)"]
    page = outline(tree.tree_, tree.encoder_.encode(X), {})
    assert [words for words, *_ in rules(page.root)] == ["region is one of a, c, e", "region is none of a, c, e"]


def test_status_of_more_levels_than_are_searched():
    X, rewards = regions(levels="abcdefghijkl", gain="acegik")
    one = PolicyTree(max_depth=1, categories="groups").fit(X, rewards)
    assert one.status_ is Status.OPTIMAL and one.objective_value_ == 0.5
    assert one.search_grid_.exact and one.search_grid_.n_splits == 2**11 - 1 + X["age"].nunique() - 1
    two = PolicyTree(max_depth=2, categories="groups").fit(X, rewards)
    assert two.status_ is Status.OPTIMAL_GIVEN_GUESSES and not two.search_grid_.exact
    assert two.objective_value_ == 0.5  # the groups that are best for all rows are among the splits
    assert "region: single levels and a few groups, since there are too many levels" in two.certificate()
    assert "thinned" not in two.certificate()
    # where the best groups leave too few of an arm on a side, the few columns of a last split prove nothing
    arms = (np.arange(len(X)) // 12) % 2
    for least, status in ((5, Status.OPTIMAL), (31, Status.OPTIMAL_GIVEN_GUESSES)):
        tree = PolicyTree(max_depth=1, categories="groups", min_samples_per_treatment=least)
        with contextlib.nullcontext() if least == 5 else pytest.warns(SearchWarning):
            assert tree.fit(X, rewards, T=arms).status_ is status


def test_more_categories_than_a_threshold_can_hold():
    X = pd.DataFrame({"town": [f"t{k:02d}" for k in range(60)] * 2})
    rewards = np.column_stack([np.zeros(120), np.where(np.arange(120) % 2, 1.0, -1.0)])
    tree = PolicyTree(max_depth=1, categories="groups").fit(X, rewards)
    assert tree.status_ is Status.OPTIMAL_GIVEN_GUESSES and "town: single levels" in tree.certificate()


def test_rare_levels_and_smallest_leaves():
    """Two hundred rows with twelve levels, some of one to three rows: both sides hold the rows asked for."""
    rng = np.random.default_rng(3)
    sizes = [60, 50, 40, 20, 10, 7, 4, 3, 2, 2, 1, 1]
    level = np.repeat(list("abcdefghijkl"), sizes)
    X, rewards = pd.DataFrame({"level": level}), rng.normal(size=(200, 2)).round(1)
    for least in (1, 20, 80, 100):
        tree = PolicyTree(max_depth=1, categories="groups", min_samples_leaf=least).fit(X, rewards)
        assert tree.status_ is Status.OPTIMAL
        assert tree.tree_.n_node_samples[tree.tree_.is_leaf].min() >= least
        losses = -rewards
        sums = np.array([losses[level == k].sum(axis=0) for k in "abcdefghijkl"])
        best = losses.sum(axis=0).min()
        for mask in range(1, 2**12 - 1):
            side = (mask >> np.arange(12) & 1).astype(bool)
            if least <= np.array(sizes)[side].sum() <= 200 - least:
                best = min(best, sums[side, 0].sum() + sums[~side, 1].sum())
        assert tree.objective_value_ * 200 == pytest.approx(-best, abs=1e-9)


def test_missing_values_are_a_level_and_unseen_ones_go_with_them():
    X, rewards = regions()
    X.loc[X["region"] == "c", "region"] = None
    tree = PolicyTree(max_depth=1, categories="groups").fit(X, rewards)
    assert tree.objective_value_ == 0.5 and "region is one of a, e? (missing → yes)" in tree.export_text()
    new = pd.DataFrame({"region": ["a", "b", "e", None, "z"], "age": 0.0})
    with pytest.warns(UserWarning, match="region is one of a, e"):
        assert tree.predict(new).tolist() == [1, 0, 1, 1, 1]


@pytest.mark.parametrize("gaps", [False, True])
def test_every_export_gives_what_predict_gives(gaps, tmp_path):
    rng = np.random.default_rng(5)
    X, _ = regions(n=240)
    X["kind"] = rng.choice(["it's", 'say "x"', "u, v", "w"], len(X))
    if gaps:
        X.loc[rng.random(len(X)) < 0.1, "region"] = None
    rewards = rng.integers(-4, 5, (240, 3)).astype(float)
    rewards[:, 1] += 3.0 * X["region"].isin(["a", "d", "f"])
    rewards[:, 2] += 3.0 * X["kind"].isin(["it's", "u, v"])
    tree = PolicyTree(max_depth=2, categories="groups", split_features=["region", "kind"]).fit(X, rewards)
    grouped = [t for t in tree.tree_.threshold if t <= -3]
    assert grouped
    given = tree.predict(X).tolist()
    again = from_json(to_json(tree.tree_))
    assert again.threshold.tolist()[0] == tree.tree_.threshold.tolist()[0]
    assert np.array(again.actions)[again.action[again.apply(tree.encoder_.encode(X))]].tolist() == given
    space: dict = {}
    exec(tree.export_python(), space)
    function = next(f for name, f in space.items() if callable(f) and not name.startswith("_"))
    assert [function(row) for row in X.to_dict("records")] == given
    with sqlite3.connect(":memory:") as base:
        X.to_sql("people", base, index=False)
        assert [row[0] for row in base.execute(f"SELECT {tree.export_sql()} FROM people")] == given
    theirs = tree.to_sklearn(X)
    assert theirs.predict(tree.sklearn_table(X)).tolist() == given
    assert "is one of" in tree.export_graphviz()
    tree.plot()


@pytest.mark.parametrize("wrong", [-64.0, -65.0, -2.0, -4.0, 6.0])
def test_saved_trees_with_impossible_groups_are_refused(wrong):
    X, rewards = regions()
    saved = to_dict(PolicyTree(max_depth=1, categories="groups").fit(X, rewards).tree_)
    assert saved["threshold"][0] == -21.0
    with pytest.raises(InputError, match="must split on a category of feature 'region', or a set of them"):
        from_dict({**saved, "threshold": [wrong, *saved["threshold"][1:]]})


def test_classifier_and_what_groups_are_not_for():
    X, rewards = regions()
    tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, categories="groups").fit(X, rewards[:, 1] > 0)
    assert tree.objective_value_ == 0.0 and tree.predict(X).tolist() == (rewards[:, 1] > 0).tolist()
    for arguments in ({"solver": "sampling"}, {"guesses": "thresholds"}, {"guesses": Guesses(max_depth=1)}):
        with pytest.raises(InputError, match="categories='groups' takes solver='direct' without guesses"):
            PolicyTree(max_depth=1, categories="groups", **arguments).fit(X, rewards)
    with pytest.raises(InputError, match="categories must be 'levels' or 'groups'; got 'all'"):
        PolicyTree(max_depth=1, categories="all").fit(X, rewards)
    with pytest.raises(InputError, match="set categories='levels'"):
        near_ties(PolicyTree(max_depth=1, categories="groups"), X, rewards)
