"""Studies of decisions with stated costs, and of simulations: what their parts compute, apart from running."""

import importlib
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree.exceptions import InputError

STUDIES = Path(policytree.__file__).parents[1] / "case_studies"


@pytest.fixture(scope="module")
def part():
    """Import a module of the studies as the command does."""
    sys.path.insert(0, str(STUDIES))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(STUDIES))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def small_task(part, rng, n=300, alarm=2.0, depth=1, smallest=1):
    X = pd.DataFrame({"a": rng.integers(0, 4, n), "b": rng.integers(0, 3, n), "noise": rng.integers(0, 3, n)})
    y = (rng.random(n) < np.where(X["a"] > 1, 0.8, 0.3)).astype(int)
    return part("decisions").Decisions(X, y, {(1, 0): 1.0, (0, 1): alarm}, depth, smallest)


# --- the published size ---


def test_published_is_refused_where_there_is_none(part, capsys):
    run = part("run")
    assert run.published_time("simulations") and run.published_time("credit") is None
    for arguments in (["credit", "--published"], ["simulations", "--published", "--quick", "--results", "x"]):
        with pytest.raises(SystemExit):
            run.main(arguments)
        assert "simulations (" in capsys.readouterr().err


def test_published_runs_go_beside(part, monkeypatch, tmp_path):
    run, seen = part("run"), []
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setitem(sys.modules, "simulations.study", SimpleNamespace(main=seen.append))
    for published in (False, True):
        run.run("simulations", None, None, False, None, published)
    assert [(study.published, study.results.relative_to(tmp_path).as_posix()) for study in seen] == [
        (False, "simulations/results"),
        (True, "simulations/results/published"),
    ]


# --- decisions ---


def test_losses_are_those_of_the_cost_table(part, rng):
    task = small_task(part, rng)
    decided = rng.integers(0, 2, len(task.y))
    by_hand = [task.costs.get((int(t), int(d)), 0.0) for t, d in zip(task.y, decided, strict=True)]
    assert task.losses(decided).tolist() == by_hand


def test_trees_do_without_and_cost_what_enumeration_finds(part, rng):
    task = small_task(part, rng)
    for without in ((), ("a",)):
        tree = task.tree(without).fit(task.X, task.y)
        assert not set(without) & set(tree.get_used_features())
        best = min(task.losses(np.full(len(task.y), d)).mean() for d in (0, 1))
        for column in [c for c in task.X if c not in without]:
            for cut, (low, high) in product(range(3), product((0, 1), repeat=2)):
                best = min(best, task.losses(np.where(task.X[column] <= cut, low, high)).mean())
        assert tree.objective_value_ == pytest.approx(best)


def test_held_out_decisions_come_from_trees_of_other_rows(part, rng):
    task = small_task(part, rng)
    decided = task.held_out((), repeats=2)
    learn, judge = task.folds(1)[3]
    tree = task.tree().fit(task.X.iloc[learn], task.y[learn])
    assert decided.shape == (2, len(task.y)) and not set(learn) & set(judge)
    assert decided[1, judge].tolist() == tree.predict(task.X.iloc[judge]).tolist()


def test_rates_are_shares_with_binomial_errors(part, rng):
    task = small_task(part, rng)
    decided = rng.integers(0, 2, (1, len(task.y)))
    group = (task.X["b"] == 1).to_numpy()
    among = group & (task.y == 0)
    rate, share, m = task.rate(decided, 0, group), decided[0][among].mean(), among.sum()
    assert rate.value == pytest.approx(share)
    assert rate.standard_error == pytest.approx(np.sqrt(share * (1 - share) / m), rel=0.01)
    other = task.rate(decided, 0, ~group)
    gap = task.rate_gap(decided, 0, group, ~group)
    assert gap.value == pytest.approx(rate.value - other.value)
    assert gap.standard_error == pytest.approx(np.hypot(rate.standard_error, other.standard_error), rel=0.01)


def test_changes_of_rate_gaps_are_paired(part, rng):
    """Two rules that differ on few people: the error is that of resampled people, far below that of two alone."""
    task = small_task(part, rng, n=400)
    first = rng.integers(0, 2, (1, 400))
    second = np.where(rng.random((1, 400)) < 0.1, 1 - first, first)
    a = (task.X["b"] == 1).to_numpy()
    change = task.rate_gap_change(first, second, 0, a, ~a)
    gaps = [task.rate_gap(d, 0, a, ~a) for d in (first, second)]
    assert change.value == pytest.approx(gaps[0].value - gaps[1].value)
    assert task.rate_gap_change(first, first, 0, a, ~a).standard_error == 0.0

    def by_hand(rows):
        safe, group = task.y[rows] == 0, a[rows]
        rates = [[d[0][rows][safe & g].mean() for g in (group, ~group)] for d in (first, second)]
        return (rates[0][0] - rates[0][1]) - (rates[1][0] - rates[1][1])

    resampled = np.std([by_hand(rng.integers(0, 400, 400)) for _ in range(1_000)])
    assert change.standard_error == pytest.approx(resampled, rel=0.1)
    assert change.standard_error < 0.6 * np.hypot(*(gap.standard_error for gap in gaps))


def test_gaps_pair_learnt_rules_with_fixed_ones(part, rng):
    task = small_task(part, rng)
    learnt, nobody = rng.integers(0, 2, (3, len(task.y))), np.zeros((1, len(task.y)), dtype=int)
    expected = np.mean([task.losses(d).mean() for d in learnt]) - task.losses(nobody[0]).mean()
    assert task.gap(learnt, nobody).value == pytest.approx(expected)
    assert task.gap(nobody, nobody).standard_error == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("column", ["a", "noise"])
def test_intervals_of_the_cost_of_an_exclusion_cover(part, column):
    """Against the mean true cost of the very trees that were judged; a column that helps, and one that does not."""
    runs, hits = 40, 0
    grid = pd.DataFrame(product(range(4), range(3), range(3)), columns=["a", "b", "noise"])
    chance = np.where(grid["a"] > 1, 0.8, 0.3)
    for run in range(runs):
        task = small_task(part, np.random.default_rng(run), n=200, alarm=1.0)
        decided, true = {}, 0.0
        for sign, without in ((1.0, (column,)), (-1.0, ())):
            decided[without] = np.empty((2, len(task.y)), dtype=np.int64)
            for repetition in range(2):
                for learn, judge in task.folds(repetition):
                    tree = task.tree(without).fit(task.X.iloc[learn], task.y[learn])
                    decided[without][repetition, judge] = tree.predict(task.X.iloc[judge])
                    costs = np.where(tree.predict(grid) == 1, 1 - chance, chance)
                    true += sign * costs.mean() * len(judge) / len(task.y) / 2
            if run == 0:  # fitted once for both elsewhere
                assert task.held_out(without, repeats=2).tolist() == decided[without].tolist()
        gap = task.gap(decided[column,], decided[()])
        hits += gap.lower - 1e-12 <= true <= gap.upper + 1e-12
    assert hits / runs >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)


# --- simulations ---


def test_regions_are_those_of_the_paper(part):
    designs = part("simulations.designs")
    X = np.full((5, 10), 0.5)
    X[:, 4], X[:, 6] = [0.1, 0.3, 0.95, 0.8, 0.3], [0.1, 0.9, 0.95, 0.5, 0.2]
    assert designs.regions(X).tolist() == [2, 0, 2, 1, 2]
    means = designs.three_arms().means(X)
    assert means.tolist() == [[-1.5, 0, 1.5], [3, 2, 1], [-1.5, 0, 1.5], [1.5, 2, 1.5], [-1.5, 0, 1.5]]


def test_arms_are_drawn_by_their_chances(part, rng):
    design = part("simulations.designs").three_arms()
    data = design.draw(20_000, rng)
    region = part("simulations.designs").regions(data.X.to_numpy())
    for r, chances in enumerate(part("simulations.designs").CHANCES):
        assert np.bincount(data.T[region == r], minlength=3) / (region == r).sum() == pytest.approx(chances, abs=0.025)


def test_the_null_design_has_no_effect_and_the_same_arms(part, rng):
    designs = part("simulations.designs")
    X = rng.uniform(size=(50, 10))
    none = designs.three_arms_no_effect()
    assert np.ptp(none.means(X), axis=1) == pytest.approx(0.0)
    assert none.chances(X).tolist() == designs.three_arms().chances(X).tolist()


def test_exclusive_or_is_seen_two_levels_ahead_only(part, rng):
    rules, design = part("simulations.rules"), part("simulations.designs").own_designs()[0]
    X = design.covariates(2_000, rng)
    means = design.means(X)
    exact, greedy = (rules.grow(X, means, 2, look) for look in (2, 1))
    best = means.max(axis=1).mean()
    worth = [means[np.arange(len(X)), rules.arms_of(tree, X)].mean() for tree in (exact, greedy)]
    assert worth[0] == pytest.approx(best) and rules.columns_of(exact) == {0, 1}
    assert worth[1] < 0.75 * best


def test_parity_of_three_needs_all_three_levels(part, rng):
    rules, design = part("simulations.rules"), part("simulations.designs").own_designs()[2]
    X = design.covariates(800, rng)
    means = design.means(X)
    exact = rules.grow(X, means, 3, 3)
    assert means[np.arange(len(X)), rules.arms_of(exact, X)].mean() == pytest.approx(means.max(axis=1).mean())


def test_looking_ahead_the_whole_depth_is_the_exact_tree(part, rng):
    from policytree import PolicyTree

    rules = part("simulations.rules")
    X, rewards = rng.integers(0, 6, (200, 3)).astype(float), rng.normal(size=(200, 3))
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    assert rules.arms_of(rules.grow(X, rewards, 2, 2), X).tolist() == tree.predict(X).tolist()
    values = [rewards[np.arange(200), rules.arms_of(rules.grow(X, rewards, 3, look), X)].mean() for look in (1, 2, 3)]
    assert values[0] <= values[2] and values[1] <= values[2]


def test_regret_is_against_the_best_tree_on_the_same_rows(part, rng):
    learning, designs = part("simulations.learning"), part("simulations.designs")
    truth = learning.truth_of(designs.own_designs()[0], rng, n_new=400)
    assert truth.regret(truth.best) == 0.0 and truth.regret(truth.best[:100]) == 0.0
    assert truth.regret(1 - truth.best) == pytest.approx(np.abs(truth.means[:, 1]).mean())


def test_intervals_of_few_runs_are_students(part):
    rng, misses = np.random.default_rng(0), 0
    for _ in range(4_000):
        regrets = rng.normal(size=4)
        error = regrets.std(ddof=1) / 2
        misses += abs(regrets.mean()) > part("simulations.learning").half_width(error, 4)
    assert misses / 4_000 == pytest.approx(0.05, abs=0.011)  # 1.96 errors would miss in 14 of 100


# --- NHEFS ---


def test_nhefs_covariates_were_measured_before_the_decision(part):
    pytest.importorskip("causaldata")
    study = part("nhefs.study")
    raw = study.table()
    data = study.people()
    habits = {"cigarettes", "years_smoked", "inactivity", "no_exercise"}
    before = {"age", "female", "schooling", "weight", "height"} | habits
    assert set(data.X) == before and list(data.W) == ["race"] and set(study.AFTER) <= set(raw)
    assert data.T.value_counts().to_dict() == {"smoke on": 1163, "quit": 403}
    assert data.Y.tolist() == raw["wt82_71"].tolist() and not data.X.isna().any().any()


@pytest.mark.parametrize("study", ["recidivism", "credit"])
def test_a_missing_file_is_one_sentence_with_its_source(part, tmp_path, study):
    from harness import Study

    reader = {"recidivism": "defendants", "credit": "applicants"}[study]
    quiet = Study(tmp_path, tmp_path / "results")
    with pytest.raises(InputError, match=r"is not in .* nor its folder classification; get it from"):
        getattr(part(f"{study}.study"), reader)(quiet)
