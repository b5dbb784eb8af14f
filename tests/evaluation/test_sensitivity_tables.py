"""Sensitivity of the learnt rules of a held-out table: bounds by hand from its repetitions, rows, coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from scipy.stats import t as student_t
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.evaluation import marginal_sensitivity, omitted_variable_bounds
from policytree.evaluation.sensitivity.repeated_bounds import Repetitions
from policytree.exceptions import InputError
from tests.support.simulations import assert_errors_are_as_said, benchmark_script

N = 200


@pytest.fixture(scope="module")
def study():
    """A trial in pairs, with weights; propensities known, expected outcomes right."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    T = rng.permutation(np.repeat(["new", "old"], N // 2))
    means = pd.DataFrame({"new": X[:, 1] + 0.6 * X[:, 0], "old": X[:, 1]})
    Y = np.where(T == "new", means["new"], means["old"]) + rng.normal(size=N)
    return {"Y": Y, "T": T, "X": X, "means": means, "weight": rng.uniform(0.5, 2, N), "groups": np.arange(N) // 2}


def tables(study, **options):
    """Held-out values of trees with one split."""
    learner = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    rows = {"X": study["X"], "propensity": 0.5, "random_state": 3, **options}
    return cross_val_policy_value(learner, study["Y"], study["T"], **rows)


@pytest.fixture(scope="module")
def table(study):
    return tables(study, cv=3, n_repeats=3, groups=study["groups"], sample_weight=study["weight"])


@pytest.fixture
def given(study):
    return {
        "Y": study["Y"], "T": study["T"], "propensity": 0.5, "regression": study["means"], "random_state": 0,
        "n_bootstrap": 200, "baseline": "old",
    }  # fmt: skip


def together(values, errors, degrees):
    """``N + b`` for three folds."""
    error = np.sqrt(np.mean(np.square(errors)) + np.var(values, ddof=1))
    return np.mean(values), error, student_t.ppf(0.975, degrees) * error


def test_bounds_are_means_over_the_repetitions_with_their_variance(study, table, given):
    rows = {"groups": study["groups"], "sample_weight": study["weight"]}
    found = marginal_sensitivity(table, gammas=[1, 2], **given)
    each = [marginal_sensitivity(r.policy, held_out=True, gammas=[1, 2], **given, **rows) for r in table.repetitions]
    assert (found.n, found.n_clusters, found.rows) == (N, N // 2, "held out")
    for kind, parts in found.kinds.items():
        for j, bounds in enumerate(parts):
            for end in ("lower", "upper"):
                own = [getattr(one.kinds[kind][j], end) for one in each]
                errors = [getattr(one.kinds[kind][j], f"{end}_standard_error") for one in each]
                value, error, half = together(own, errors, N // 2 - 1)
                assert getattr(bounds, end) == pytest.approx(value, rel=1e-12)
                assert getattr(bounds, f"{end}_standard_error") == pytest.approx(error, rel=1e-9)
                sign = 1 if end == "upper" else -1
                assert getattr(bounds, f"interval_{end}") == pytest.approx(value + sign * half, abs=0.25 * half)


def test_without_a_confounder_the_interval_is_about_that_of_the_table(study, table, given):
    """The nuisances differ (here known, there learnt), the variance does not."""
    bounds = marginal_sensitivity(table, gammas=[1], **given).sharp[0]
    known = table.difference("policy tree", "always old")
    assert bounds.lower == pytest.approx(known.value, abs=0.5 * known.standard_error)
    assert bounds.lower_standard_error == pytest.approx(known.standard_error, rel=0.15)
    omitted = omitted_variable_bounds(table, **given)
    assert omitted.estimate.value == pytest.approx(bounds.lower, rel=1e-12)
    assert omitted.estimate.standard_error == pytest.approx(bounds.lower_standard_error, rel=1e-9)
    at = omitted.bounds(0.0, 0.0)
    assert (at.interval_lower, at.interval_upper) == pytest.approx((bounds.interval_lower, bounds.interval_upper))


def test_the_tipping_points_are_where_bounds_and_intervals_reach_zero(table, given):
    given["Y"] = given["Y"] + 1.0 * (given["T"] == "new")
    given["regression"] = given["regression"] + [1.0, 0.0]
    found = marginal_sensitivity(table, **given)
    for kind, point in found.tipping.items():
        assert 1 < point.interval < point.bounds < np.inf
        at = marginal_sensitivity(table, gammas=[point.interval, point.bounds], **given).kinds[kind]
        assert at[0].interval_lower == pytest.approx(0.0, abs=1e-6)
        assert at[1].lower == pytest.approx(0.0, abs=1e-6)
    omitted = omitted_variable_bounds(table, **given)
    assert 0 < omitted.interval_robustness_value < omitted.robustness_value < 1
    for share, end in ((omitted.robustness_value, "lower"), (omitted.interval_robustness_value, "interval_lower")):
        assert getattr(omitted.bounds(share, share), end) == pytest.approx(0.0, abs=1e-8)


def test_a_single_repetition_is_a_fixed_rule(study, given):
    single = tables(study, cv=3, n_repeats=1)
    of_table = marginal_sensitivity(single, **given)
    of_rule = marginal_sensitivity(single.policy, held_out=True, **given)
    pd.testing.assert_frame_equal(of_table.to_frame(), of_rule.to_frame())
    assert of_table.tipping == of_rule.tipping
    assert "over 3 folds, once" in str(of_table) and "folds" not in str(of_rule)


def test_a_split_is_judged_on_its_own_rows(study, given):
    split = tables(study, validation="split")
    assert 0 < len(split.judged) < N
    keep = split.judged
    part = {**given, "Y": given["Y"][keep], "T": given["T"][keep], "regression": given["regression"].iloc[keep]}
    for function in (marginal_sensitivity, omitted_variable_bounds):
        found, alone = function(split, **given), function(split.policy, held_out=True, **part)
        assert "single split" in str(found) and "100 rows, held out" in str(found)
        if function is marginal_sensitivity:
            names = ["lower", "upper", "lower_standard_error", "upper_standard_error"]
            np.testing.assert_allclose(found.to_frame().loc["simple", names], alone.to_frame().loc["simple", names])
        else:
            assert found.scale == pytest.approx(alone.scale, rel=1e-12)


def test_the_text_and_the_pictures_say_whose_bounds_these_are(table, given):
    found, omitted = marginal_sensitivity(table, **given), omitted_variable_bounds(table, **given)
    for shown in (str(found), str(omitted)):
        assert "cross-fitting over 3 folds, repeated 3 times" in shown
        assert "rules learnt without the rows they are judged on" in shown
    assert found.plot().ax_.get_title().endswith("held out")
    omitted.plot()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"T": slice(0, 150)}, r"T holds other rows than those of the table \(200\)"),
        ({"T": slice(None, None, -1)}, "T holds other rows"),
        ({"groups": np.arange(N)}, "groups are other clusters than those of the table"),
        ({"sample_weight": np.ones(5)}, "sample_weight has 5"),
    ],
)
def test_other_rows_than_the_tables_are_refused(table, given, change, words):
    change = {name: given[name][part] if isinstance(part, slice) else part for name, part in change.items()}
    with pytest.raises(InputError, match=words):
        marginal_sensitivity(table, **{**given, **change})


def test_a_baseline_is_a_fixed_rule(table, given):
    with pytest.raises(InputError, match="baseline must be a fixed rule"):
        marginal_sensitivity("new", **{**given, "baseline": table})


@pytest.fixture
def with_one_like_the_baseline(table):
    """The same table with rules of the first repetition that give everybody the old treatment."""
    same = replace(table.repetitions[0], policy=np.full(N, "old", dtype=object))
    return replace(table, repetitions=(same, *table.repetitions[1:]))


def test_a_repetition_may_agree_with_the_baseline(with_one_like_the_baseline, table, given):
    """Its bounds are zero; they count."""
    found = marginal_sensitivity(with_one_like_the_baseline, gammas=[2], **given)
    first = marginal_sensitivity(
        table.policy, gammas=[2], held_out=True, groups=table.observed.groups,
        sample_weight=table.observed.sample_weight, **given,
    )  # fmt: skip
    before = marginal_sensitivity(table, gammas=[2], **given)
    for kind in ("sharp", "simple"):
        rest = 3 * before.kinds[kind][0].lower - first.kinds[kind][0].lower
        assert found.kinds[kind][0].lower == pytest.approx(rest / 3, rel=1e-9)
        assert np.isfinite(found.kinds[kind][0].interval_lower)
    assert omitted_variable_bounds(with_one_like_the_baseline, **given).scale > 0


def test_rules_that_all_agree_with_the_baseline_leave_nothing_to_compare(with_one_like_the_baseline, given):
    table = replace(with_one_like_the_baseline, repetitions=with_one_like_the_baseline.repetitions[:1])
    with pytest.raises(InputError, match="treat everybody alike"):
        marginal_sensitivity(table, **given)


def test_half_widths_add_up_as_standard_errors_do(rng):
    """Normal draws of variance N around every repetition: the interval is Student's t times the root of N + b."""
    values = np.array([0.2, 0.5, 0.3, 0.9])
    draws = [value + 0.4 * rng.standard_normal(100_000) for value in values]
    for folds, factor in ((5, 1.0), (10, 5 - 1 + 1 / 4)):
        half = student_t.ppf(0.95, 30) * np.sqrt(0.16 + factor * values.var(ddof=1))
        repetitions = Repetitions(folds, 0.9, 30)
        assert repetitions.interval_end(values, draws, upper=True) == pytest.approx(values.mean() + half, rel=5e-3)
        assert repetitions.interval_end(values, draws, upper=False) == pytest.approx(values.mean() - half, rel=5e-3)
    constant = [np.full(50, value) for value in values]
    half = student_t.ppf(0.95, 30) * values.std(ddof=1)
    assert Repetitions(5, 0.9, 30).interval_end(values, constant, upper=True) == pytest.approx(values.mean() + half)
    constant[0][:5] = np.inf  # a twentieth of all draws would do
    assert Repetitions(5, 0.9, 30).interval_end(values, constant, upper=True) == values.mean() + half
    constant[0][:20] = np.inf
    assert Repetitions(5, 0.9, 30).interval_end(values, constant, upper=True) == np.inf


@pytest.mark.slow
def test_intervals_of_cross_fitted_trees_cover():
    """No effect, no hidden confounder, 300 rows: the cell where one repetition's intervals are too short."""
    with benchmark_script("sensitivity_coverage") as script, benchmark_script("simulated") as simulated:
        cell = next(c for c in script.cells() if c.name == "cross-fitted trees, no effect, Gamma 1, n=300")
        population = cell.draw(np.random.default_rng(1), 5_000)
        with simulated.unwatched():
            records = pd.DataFrame([script.one_run(cell, population, seed) for seed in range(10)])
    assert_errors_are_as_said(records["error"], records["width"] / 2 / student_t.ppf(0.975, 299), 0.0)
    assert records[["sharp", "simple", "omitted"]].sum().min() >= binom.ppf(0.01, 10, 0.95)
    assert records["sharp"].mean() >= records["once"].mean()
    assert records["claims at 1"].sum() <= binom.ppf(0.99, 10, 0.05)
