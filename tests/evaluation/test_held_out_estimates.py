"""Repeated cross-fitting, blocks, the comparison with the best, the verdict: against hand calculation."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, cross_val_policy_value, policy_value
from policytree.evaluation.estimates import (
    between_factor,
    blocked_estimate,
    mean_estimate,
    repeated_estimate,
    value_factor,
)
from policytree.evaluation.inference.best_arm import compare_with_best, possibly_best
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, POLICY, STATUS_QUO
from policytree.evaluation.policy_value.verdict import Reason
from policytree.exceptions import InputError
from tests.evaluation.test_cross_validation import Fake, evaluate
from tests.evaluation.test_cross_validation import trial as trial  # a fixture


def estimate(value, error, n=101, level=0.95):
    """An estimate with exactly this value and standard error."""
    scores = np.linspace(-1, 1, n)
    scores *= error * np.sqrt(n) / scores.std(ddof=1)
    return mean_estimate(value + scores, level=level)


# --- repetitions and blocks ---


@pytest.mark.parametrize(("n_folds", "kappa"), [(2, 1.0), (5, 1.0), (10, 10 / 2 - 1 + 1 / 3)])
def test_repetitions_add_their_variance(n_folds, kappa):
    parts = [estimate(v, s) for v, s in ((1.0, 0.3), (1.2, 0.4), (1.7, 0.5))]
    whole = repeated_estimate(parts, n_folds)
    within, between = np.mean([0.09, 0.16, 0.25]), np.var([1.0, 1.2, 1.7], ddof=1)
    assert whole.value == pytest.approx(1.3, rel=1e-12)
    assert whole.between_variance == pytest.approx(between, rel=1e-12)
    assert whole.standard_error == pytest.approx(np.sqrt(within + kappa * between), rel=1e-12)
    t = stats.t.ppf(0.975, 100)
    assert (whole.lower, whole.upper) == pytest.approx((1.3 - t * whole.standard_error, 1.3 + t * whole.standard_error))
    assert repeated_estimate(parts[:1], n_folds) is parts[0]
    less = repeated_estimate(parts, n_folds, 0.5)
    assert less.standard_error == pytest.approx(np.sqrt(within + 0.5 * between), rel=1e-12)


def test_values_count_what_averages_away_once():
    assert value_factor(5, 5) == pytest.approx(0.5) and value_factor(3, 2) == pytest.approx(0.8)
    assert value_factor(10, 5) == between_factor(10, 5) and value_factor(2, 5) == 1.0


def test_blocks_are_averaged_by_weight_with_the_variance_within(rng):
    scores, weight, blocks = rng.normal(size=90), rng.uniform(0.5, 2, 90), np.repeat([4, 7, 9], 30)
    groups = np.arange(90) // 3
    whole = blocked_estimate(scores + blocks, blocks, groups=groups, sample_weight=weight)
    parts = [
        mean_estimate((scores + blocks)[blocks == b], groups=np.arange(30) // 3, sample_weight=weight[blocks == b])
        for b in (4, 7, 9)
    ]
    share = np.array([weight[blocks == b].sum() for b in (4, 7, 9)]) / weight.sum()
    assert whole.value == pytest.approx(share @ [p.value for p in parts], rel=1e-12)
    assert whole.standard_error == pytest.approx(np.sqrt(share**2 @ [p.standard_error**2 for p in parts]), rel=1e-12)
    assert (whole.n, whole.n_clusters, whole.degrees_of_freedom) == (90, 30, 27)
    assert whole.influence.sum() == pytest.approx(0, abs=1e-9)
    spread = mean_estimate(scores + blocks, groups=groups, sample_weight=weight)
    assert whole.standard_error < spread.standard_error, "differences between blocks are no noise"


# --- against the best ---


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_comparison_with_the_best_is_the_smallest_of_the_ends(direction):
    sign = 1 if direction == "maximize" else -1
    values, errors = (0.5, 0.4, 0.9), (0.1, 0.3, 0.05)
    differences = {name: estimate(sign * v, s) for name, v, s in zip("abc", values, errors, strict=True)}
    found = compare_with_best(differences, direction)
    low = min(v - stats.t.ppf(0.975, 100) * s for v, s in zip(values, errors, strict=True))
    high = min(v + stats.t.ppf(1 - 0.025 / 3, 100) * s for v, s in zip(values, errors, strict=True))
    ends = (low, high) if sign > 0 else (-high, -low)
    assert (found.lower, found.upper) == pytest.approx(ends, rel=1e-9)
    assert (found.best, found.value) == ("b", pytest.approx(sign * 0.4))
    assert not found.better and not found.worse  # b may be worth as much as the rule
    alone = compare_with_best({"a": differences["a"]}, direction)
    assert (alone.lower, alone.upper) == pytest.approx((differences["a"].lower, differences["a"].upper), rel=1e-9)
    assert alone.better and not alone.worse
    worse = compare_with_best({**differences, "d": estimate(sign * -1.0, 0.1)}, direction)
    assert worse.worse and not worse.better


def test_which_may_be_best():
    differences = {("b", "a"): estimate(-0.2, 0.1), ("c", "a"): estimate(-0.5, 0.1)}
    assert possibly_best(("a", "b", "c"), differences, "a", "maximize") == ("a", "b")
    mirrored = {key: estimate(-d.value, d.standard_error) for key, d in differences.items()}
    assert possibly_best(("a", "b", "c"), mirrored, "a", "minimize") == ("a", "b")


# --- held out ---


def test_repeated_values_are_those_of_their_repetitions(trial):
    """Repetition by repetition the table holds what policy_value finds on its own rewards."""
    table = evaluate(Fake(), trial, n_repeats=3)
    assert table.n_repeats == 3 and len(table.trees) == 12
    assert any(
        (a.folds.fold != b.folds.fold).any() for a, b in zip(table.repetitions, table.repetitions[1:], strict=False)
    )
    by_hand = [policy_value(r.policy, r.rewards, baseline="left", groups=trial["groups"]) for r in table.repetitions]
    whole = repeated_estimate(by_hand, 4, 0.3 + 1 / 3)
    found = table.differences["always left"]
    assert (found.value, found.standard_error) == pytest.approx((whole.value, whole.standard_error), rel=1e-12)
    again = table.difference(POLICY, "always left")
    assert (again.lower, again.upper) == (found.lower, found.upper)
    with pytest.raises(InputError, match="no rule 'always up'"):
        table.difference(POLICY, "always up")


def test_sequential_blocks_are_judged_by_what_came_before(trial):
    log = []
    table = evaluate(Fake(log=log), trial, validation="sequential", cv=3, n_repeats=None)
    assert len(log) == 3 and table.folds.n_folds == 6
    seen = [set(call["X"]["row"]) for call in log]
    judged = [set(call["predicted"]["row"]) for call in log]
    assert seen[0] < seen[1] < seen[2] and all(not a & b for a, b in zip(seen, judged, strict=True))
    assert seen[1] == seen[0] | judged[0] and seen[2] == seen[1] | judged[1]
    assert set(table.judged) == set.union(*judged)
    assert table.estimates[AS_RANDOMIZED].n == len(table.judged) == len(table.policy)
    by_hand = blocked_estimate(
        table.repetitions[0].scores[POLICY], table.folds.fold[table.judged],
        groups=np.unique(trial["groups"][table.judged], return_inverse=True)[1],
    )  # fmt: skip
    assert table.estimates[POLICY].standard_error == pytest.approx(by_hand.standard_error, rel=1e-12)
    # given folds are time: the earlier half only learns
    own = trial["groups"] // 25
    given = evaluate(Fake(), trial, validation="sequential", cv=own, n_repeats=None)
    np.testing.assert_array_equal(given.judged, np.flatnonzero(own >= 2))


def test_a_split_judges_one_part(trial):
    log = []
    table = evaluate(Fake(log=log), trial, validation="split", cv=None, n_repeats=None)
    assert len(log) == 1 and len(table.trees) == 1
    assert abs(len(table.judged) - 150) <= 3
    direct = policy_value(table.policy, table.rewards, baseline="left", groups=trial["groups"][table.judged])
    assert table.differences["always left"].standard_error == pytest.approx(direct.standard_error, rel=1e-12)
    assert "one rule was learnt" in str(table)


def test_processes_do_not_change_the_numbers(rng):
    n = 240
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    T = rng.choice(["a", "b"], size=n)
    Y = (T == "b") * X["u"] + rng.normal(size=n)
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    options = {"X": X, "propensity": 0.5, "cv": 2, "n_repeats": 2, "random_state": 1}
    calls = []
    one, two = (
        cross_val_policy_value(
            model, Y, T, **options, n_jobs=jobs, progress=lambda done, total: calls.append((done, total))
        )
        for jobs in (None, 2)
    )
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
    assert calls == [(k, 4) for k in (1, 2, 3, 4)] * 2


def test_repetitions_end_where_they_do_not_matter(trial):
    """The fake learner never changes: rules and scores are the same in every repetition."""
    table = evaluate(Fake(), trial, n_repeats="adaptive")
    assert table.n_repeats == 3
    assert "repeated 3 times (of at most 5" in str(table)

    class Coin(Fake):
        def predict(self, X):
            return np.where(np.sin(1e4 * np.asarray(X["x"]) + self.phase_) > 0, "right", "left")

        def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
            self.phase_ = 100 * float(Y[:50].sum())
            return super().fit(Y, T, X=X, W=W, propensity=propensity, sample_weight=sample_weight, groups=groups)

    assert evaluate(Coin(), trial, n_repeats="adaptive").n_repeats == 5


def test_the_rule_shown_is_compared_with_those_judged(trial):
    fitted = Fake().fit(**{k: trial[k] for k in ("Y", "T", "X", "W", "propensity")}, sample_weight=None, groups=None)
    fitted.rewards_ = np.zeros((300, 2))
    assert evaluate(fitted, trial).agreement == 1.0
    assert evaluate(Fake(), trial).agreement is None
    assert "no row is left for that" in str(evaluate(fitted, trial))


# --- the verdict ---


def verdict(direction, means, n=400):
    """A fake table's verdict: x > 0 gets "right" by the tree, which brings these means on the two sides."""
    rng = np.random.default_rng(0)
    sign = 1.0 if direction == "maximize" else -1.0
    x = rng.normal(size=n)
    left, right = means
    W = pd.DataFrame({"left": sign * np.where(x > 0, -left, left), "right": sign * np.where(x > 0, right, -right)})
    T = rng.choice(["left", "right"], size=n)
    Y = np.where(T == "left", W["left"], W["right"]) + 0.3 * rng.normal(size=n)
    return evaluate(
        Fake(direction),
        {"Y": Y, "T": T, "X": pd.DataFrame({"x": x}), "W": W, "propensity": np.full((n, 2), 0.5)},
        randomized=False,
    ).verdict


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_verdicts_follow_the_comparison_with_the_best(direction):
    good = verdict(direction, (1.0, 1.0))
    assert (good.rule, good.reason, good.use_tree) == (POLICY, Reason.TREE_BETTER, True)
    assert str(good).startswith("Use the policy tree.") and "than the best single treatment (95% CI " in str(good)
    assert ("Lower is better" in str(good)) == (direction == "minimize")
    assert f" {'more' if direction == 'maximize' else 'less'} than what people got (95% CI " in str(good)
    assert " of 100 people change treatment." in str(good)
    nothing = verdict(direction, (0.0, 0.0))
    assert (nothing.rule, nothing.reason) == (STATUS_QUO, Reason.NONE_BETTER) and not nothing.use_tree
    assert str(nothing).startswith(
        "No treatment and no tree is shown better than what people got: leave things as they are"
    )
    assert "Use " not in str(nothing) and "80% power to detect a gain of" in str(nothing)
    assert good.beats_status_quo and not nothing.beats_status_quo
    bad = verdict(direction, (-1.0, -1.0))
    assert bad.against_best.worse and not bad.use_tree
    assert bad.rule != "plug-in rule" and "The tree is worse than the best single treatment" in str(bad)
    for found in (good, nothing, bad):
        assert "optimal" not in str(found) and str(found).count(".") >= 1 and str(found).endswith(".")
        assert found.to_dict()["rule"] == found.rule and found.to_dict()["sentence"] == str(found)


def test_doctors_who_know_are_found_out(rng):
    """Everybody got the better arm by something that no rule sees: the given chances cannot be those of this study."""
    n = 400
    secret = rng.random(n) < 0.5
    T = np.where(secret, "right", "left")
    W = pd.DataFrame({"left": np.zeros(n), "right": np.zeros(n)})
    Y = 2.0 + 0.1 * rng.normal(size=n)
    W["left"], W["right"] = np.where(secret, 0.0, 2.0), np.where(secret, 2.0, 0.0)
    table = evaluate(
        Fake(),
        {"Y": Y, "T": T, "X": pd.DataFrame({"x": rng.normal(size=n)}), "W": W, "propensity": np.full((n, 2), 0.5)},
        randomized=False,
    )
    assert all(table.difference(STATUS_QUO, rule).lower > 0 for rule in ("always left", "always right"))
    assert table.verdict.reason is Reason.UNCLEAR and "mean outcome" in str(table.verdict)


def test_the_table_begins_with_its_verdict(trial):
    table = evaluate(Fake(), trial)
    assert str(table).startswith(str(table.verdict))
    assert table.verdict.against_best is table.against_best


def test_a_real_table_says_what_it_is_of(rng):
    n = 200
    X, T = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"]), rng.choice(["a", "b"], size=n)
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    data = {"Y": rng.normal(size=n), "T": T, "X": X, "propensity": 0.5}
    table = cross_val_policy_value(model.fit(**data), **data, random_state=0)
    assert "cross-fitting over 5 folds, repeated 5 times" in str(table) and "25 rules" in str(table)
    assert 0.0 <= table.agreement <= 1.0 and "no row is left for that" in str(table)


# --- what the numbers are of ---


@pytest.fixture
def rare():
    """A 0/1 outcome with one event in an arm, so that some training rows have none."""
    rng = np.random.default_rng(21)
    T = np.repeat(["a", "b"], 60)
    Y = np.zeros(120)
    Y[3] = 1.0
    Y[60:] = rng.random(60) < 0.4
    return Y, T, rng.normal(size=(120, 2))


def test_arms_without_events_in_some_folds(rare):
    Y, T, X = rare
    learner = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    table = cross_val_policy_value(learner, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    assert np.isfinite(table.estimates[POLICY].value)
    assert "cover about 90 %" in " ".join(table.statements())
    none = cross_val_policy_value(learner, np.zeros(120), T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    assert none.estimates[POLICY].value == none.estimates[AS_RANDOMIZED].value == 0.0


def test_a_split_says_which_rule_it_judged(rare):
    Y, T, X = rare
    learner = DRPolicyTree(model_regression=LinearRegression(), max_depth=1, cv=2, random_state=0)
    study = {"X": X, "propensity": 0.5, "validation": "split", "random_state": 0}
    of_all = learner.fit(Y, T, X=X, propensity=0.5)
    shown = " ".join(cross_val_policy_value(of_all, Y, T, **study).statements())
    assert "60 rows judge a rule learnt from the other 60" in shown
    assert "The rule learnt from all rows cannot be judged itself" in shown
    elsewhere = DRPolicyTree(model_regression=LinearRegression(), max_depth=1, cv=2).fit(
        Y, T, X=X[:, :1], propensity=0.5
    )
    assert cross_val_policy_value(elsewhere, Y, T, **study).agreement is None
