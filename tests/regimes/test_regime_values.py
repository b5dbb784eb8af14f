"""Held-out values of treatment regimes: by hand, for fixed outcome models and known chances; what the table says."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.exceptions import InputError
from policytree.regimes import Stage, TreatmentRegime, cross_val_regime_value
from policytree.weighting.study_data import StudyData
from tests.support.regimes import smart, two_stages

ESTIMATORS = ("dr", "ipw", "plug_in")


class Given(RegressorMixin, BaseEstimator):
    """An outcome model that is given: half of the first column, whatever it is fitted to."""

    def fit(self, X, y, sample_weight=None):
        """Learn nothing."""
        self.fitted_ = True
        return self

    def predict(self, X):
        """Half of the first column."""
        return 0.5 * np.asarray(X, dtype=float)[:, 0]


def course(n_stages: int, n: int = 120, seed: int = 0, **options) -> list[Stage]:
    """A trial of three arms, one of them rare, at every stage; a fifth of the people skips each later stage."""
    rng = np.random.default_rng(seed)
    stages, chances = [], [0.45, 0.4, 0.15]
    for s in range(n_stages):
        arm = pd.Series(rng.choice(["A", "B", "C"], n, p=chances))
        if s:
            arm = arm.where(rng.random(n) > 0.2)
        X = pd.DataFrame({f"x{s + 1}": rng.normal(size=n), f"z{s + 1}": rng.normal(size=n)})
        Y = X.iloc[:, 0] + (arm == "B") + rng.normal(size=n)
        costs = {"A": 0.0, "B": 0.25, "C": 1.0 + s}
        stages.append(Stage(arm, X=X, Y=Y, propensity=dict(zip("ABC", chances, strict=True)), costs=costs, **options))
    return stages


def given_models(direction: str = "maximize") -> TreatmentRegime:
    return TreatmentRegime(DRPolicyTree(Given(), max_depth=1, cv=2, random_state=0, direction=direction))


def linear(**options) -> DRPolicyTree:
    options = {"min_samples_per_treatment": 0} | options  # of 60 rows, ten of the rare arm: any leaf
    return DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0, **options)


def judge(regime, stages, **options):
    settings = {"cv": 2, "n_repeats": 1, "baselines": False, "random_state": 0} | options
    return cross_val_regime_value(regime, stages, **settings)


def by_hand(stages, sequence, estimator: str, sign: float = 1.0) -> list[float]:
    """Return the value of a fixed sequence for every person of :func:`course`, one by one, from the last stage on."""
    out = []
    for i in range(len(stages[0].T)):
        later = 0.0
        for stage, arm in zip(reversed(stages), reversed(sequence), strict=True):
            outcome = float(stage.Y[i]) + later
            if isinstance(stage.T[i], str):
                expected = 0.0 if estimator == "ipw" else 0.5 * float(stage.X.iloc[i, 0])
                followed = stage.T[i] == arm and estimator != "plug_in"
                correction = (outcome - expected) / stage.propensity[arm] if followed else 0.0
                outcome = expected + correction - sign * stage.costs[arm]
            later = outcome
        out.append(later)
    return out


# --- by hand ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n_stages", [1, 2, 3])
def test_fixed_sequences_by_hand(n_stages, estimator):
    stages = course(n_stages)
    asked = [("A",) * n_stages, ("B",) * n_stages, ("B", "A", "A")[:n_stages]]
    asked = list(dict.fromkeys(asked))
    table = judge(given_models(), stages, sequences=asked, estimator=estimator)
    for each in asked:
        expected = by_hand(stages, each, estimator)
        name = f"always {' then '.join(each)}"
        assert_allclose(table.scores[0][name], expected)
        assert table.estimates[name].value == pytest.approx(np.mean(expected))
        assert table.estimates[name].standard_error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(120))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_costs_are_added_to_what_is_minimised(estimator):
    stages = course(2)
    table = judge(given_models("minimize"), stages, sequences=[("B", "C")], estimator=estimator)
    assert_allclose(table.scores[0]["always B then C"], by_hand(stages, ("B", "C"), estimator, -1.0))
    assert "lower is better" in str(table)


@pytest.mark.parametrize("n_stages", [1, 2, 3])
def test_what_people_got_is_what_it_brought_them(n_stages):
    stages = course(n_stages)
    table = judge(given_models(), stages)
    spent = sum(stage.T.map(stage.costs).fillna(0.0) for stage in stages)
    assert_allclose(table.scores[0]["as randomised"], sum(stage.Y for stage in stages) - spent)


def test_the_regime_by_hand():
    # Every person is judged by the sequence that the trees learnt without them give.
    stages = course(2)
    table = judge(given_models(), stages, sequences=[("A", "A")])
    every = {each: by_hand(stages, each, "dr") for each in product("ABC", repeat=2)}
    for fit in table.validation.fits(0):
        learn = [_of(stage, fit.train) for stage in stages]
        regime = given_models().fit(learn)
        first = regime.predict([Stage(X=stages[0].X)])
        second = regime.predict([stages[0], replace(stages[1], T=None, Y=None, eligible=stages[1].T.notna())])
        for i in fit.test:
            pair = first[i], second[i] if second[i] is not None else "A"
            assert table.scores[0]["regime"][i] == pytest.approx(every[pair][i])


def _of(stage: Stage, rows) -> Stage:
    parts = {name: getattr(stage, name).iloc[rows].reset_index(drop=True) for name in ("T", "X", "Y")}
    return replace(stage, **parts)


def test_a_sequence_of_one_stage_is_an_arm():
    stage = course(1)[0]
    folds = np.arange(120) % 2
    regime = judge(TreatmentRegime(linear()), [stage], cv=folds, n_repeats=None)
    arms = cross_val_policy_value(
        linear(),
        StudyData.of(stage.Y, stage.T, X=stage.X, propensity=stage.propensity, sample_treatment_costs=stage.costs),
        cv=folds,
    )
    for arm in "ABC":
        found, expected = regime.estimates[f"always {arm}"], arms.estimates[f"always {arm}"]
        assert (found.value, found.standard_error) == pytest.approx((expected.value, expected.standard_error))
    found, expected = regime.estimates["regime"], arms.estimates["policy tree"]
    assert (found.value, found.standard_error) == pytest.approx((expected.value, expected.standard_error))
    assert regime.against_once is None
    assert not any("decide at" in name for name in regime.estimates)


# --- weights, clusters, who may get what, who was lost ---


def test_weights_count_people_as_often_as_rows_would():
    stages, weight = course(2), 1 + np.arange(120) % 3
    rows = np.repeat(np.arange(120), weight)
    folds = np.arange(120) % 2
    weighted = judge(given_models(), stages, sample_weight=weight, cv=folds, n_repeats=None, sequences=[("B", "A")])
    repeated = judge(
        given_models(), [_of(stage, rows) for stage in stages], groups=rows, cv=folds[rows], n_repeats=None,
        sequences=[("B", "A")],
    )  # fmt: skip
    for name in ("always B then A", "as randomised"):
        found, expected = weighted.estimates[name], repeated.estimates[name]
        assert (found.value, found.standard_error) == pytest.approx((expected.value, expected.standard_error))


def test_clusters_are_held_out_whole_and_counted_once():
    stages, centre = course(2), np.arange(120) // 6
    table = judge(given_models(), stages, groups=centre, sequences=[("A", "B")])
    for fit in table.validation.fits(0):
        assert not set(centre[fit.train]) & set(centre[fit.test])
    scores = np.array(by_hand(stages, ("A", "B"), "dr"))
    sums = np.bincount(centre, scores - scores.mean())
    found = table.estimates["always A then B"]
    assert found.n_clusters == 20
    assert found.standard_error == pytest.approx(np.sqrt(20 / 19 * (sums**2).sum()) / 120)


def test_who_may_not_get_a_treatment_counts_as_getting_the_best_that_they_may():
    first, second = smart()
    may = first.X["severity"].fillna(0).to_numpy() < 0
    given = second.T.where(~((second.T == "stop") & ~may), "more")
    chances = pd.DataFrame({"more": np.where(may, 0.4, 0.55), "stop": np.where(may, 0.15, 0.0), "switch": 0.45})
    stages = [first, replace(second, T=given, propensity=chances, allowed={"stop": may})]
    table = judge(TreatmentRegime(linear()), stages, sequences=[("drug", "stop"), ("drug", "more"), ("drug", "switch")])
    denied = ~may & given.notna().to_numpy()
    stop, more, switch = (table.scores[0][f"always drug then {arm}"] for arm in ("stop", "more", "switch"))
    assert np.isfinite(stop).all()
    others = [given[denied] == arm for arm in ("more", "switch")]
    assert others[0].any() and others[1].any()
    assert "what they may not get" in str(table)
    assert not np.array_equal(stop[denied], more[denied])  # some of them switch
    assert not np.array_equal(stop[denied], switch[denied])


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("known", [True, False])
def test_lost_people_are_weighted_for(estimator, known):
    stages = smart(lost=0.2, known=known)
    table = judge(
        TreatmentRegime(linear()), stages, missing_outcome="weight", estimator=estimator, baselines=True, cv=3
    )
    assert all(np.isfinite(scores).all() for scores in table.scores[0].values())
    assert "weighted trees (IPW)" not in table.estimates
    assert "plug-in rule (Q-learning)" in table.estimates


# --- names, control, refusals ---


def test_names_control_and_unknown_sequences():
    stages = smart()
    table = judge(
        TreatmentRegime(linear()), stages, control=("talk", "switch"), sequences=[("drug", "more")], level=0.9
    )
    assert list(table.estimates) == [
        "regime", "always drug then more", "as randomised", "decide at stage 1 only", "decide at second line only",
        "always talk then switch",
    ]  # fmt: skip
    assert "talk then switch, the control" in str(table.verdict)
    assert table.level == 0.9 and "90% interval" in str(table)
    for sequence, message in (
        (("drug",), "A sequence needs one treatment for each of 2 stages"),
        ("drug", "A sequence needs one treatment"),
        (("drug", "water"), "'water' is no treatment of second line; they are more, stop, switch"),
    ):
        with pytest.raises(InputError, match=message):
            judge(TreatmentRegime(linear()), stages, sequences=[sequence])
        with pytest.raises(InputError, match=message):
            judge(TreatmentRegime(linear()), stages, control=sequence)


@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")
def test_sequences_that_nobody_followed():
    first, second = smart()
    change = (first.T == "drug") & (second.T == "stop").to_numpy()
    stages = [first, replace(second, T=second.T.mask(change, "more"), propensity=None)]
    table = judge(TreatmentRegime(linear()), stages)
    assert "always drug then stop" not in table.estimates
    assert table.unknown == ("drug then stop",)
    assert any("drug then stop" in line for line in table.statements())
    with pytest.raises(InputError, match="Nobody got the sequence drug then stop to its end"):
        judge(TreatmentRegime(linear()), stages, sequences=[("drug", "stop")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "magic"}, "estimator"),
        ({"baselines": "yes"}, "baselines"),
        ({"level": 95}, "level"),
        ({"n_repeats": "adaptive"}, "n_repeats='adaptive' is not for regimes"),
        ({"cv": 500}, "500"),
        ({"validation": "magic"}, "validation"),
    ],
)
def test_arguments_that_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        judge(TreatmentRegime(linear()), smart(), **options)


# --- running it ---


@pytest.mark.parametrize("validation", ["repeated", "sequential", "split"])
def test_processes_do_not_change_the_result(validation):
    settings = {"validation": validation, "cv": None, "n_repeats": None, "baselines": True}
    if validation == "repeated":
        settings |= {"cv": 2, "n_repeats": 2}
    done: list[tuple[int, int]] = []
    one = judge(TreatmentRegime(linear()), smart(400), progress=lambda *each: done.append(each), **settings)
    two = judge(TreatmentRegime(linear()), smart(400), n_jobs=2, **settings)
    assert str(one) == str(two)
    for first, second in zip(one.scores, two.scores, strict=True):
        for name in first:
            assert_array_equal(first[name], second[name])
    assert done == [(k + 1, len(done)) for k in range(len(done))]


def test_an_interrupt_is_passed_on():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(TreatmentRegime(linear()), smart(), progress=stop)


def test_agreement_with_the_regime_of_all_people():
    stages = smart()
    regime = TreatmentRegime(linear()).fit(stages)
    table = judge(regime, stages)
    counted, same = 0, 0
    for fit in table.validation.fits(0):
        learn = [_rows(stage, fit.train) for stage in stages]
        judged = TreatmentRegime(linear()).fit(learn)
        for s in range(2):
            asked = [*stages[:s], replace(stages[s], T=None, Y=None, eligible=pd.notna(stages[s].T))]
            shown, other = (each.predict(asked)[fit.test] for each in (regime, judged))
            decided = pd.notna(np.asarray(stages[s].T, dtype=object))[fit.test]
            counted, same = counted + decided.sum(), same + (shown == other)[decided].sum()
    assert table.agreement == pytest.approx(same / counted)
    assert f"in {same / counted:.0%} of the decisions" in str(table)
    assert judge(TreatmentRegime(linear()), stages).agreement is None


def _rows(stage: Stage, rows) -> Stage:
    return replace(stage, T=pd.Series(stage.T).iloc[rows].reset_index(drop=True),
                   X=stage.X.iloc[rows].reset_index(drop=True), Y=np.asarray(stage.Y)[rows])  # fmt: skip


def test_differences_are_paired():
    table = judge(TreatmentRegime(linear()), smart())
    one, two = (table.scores[0][name] for name in ("regime", "as randomised"))
    found = table.difference("regime", "as randomised")
    assert found.value == pytest.approx((one - two).mean()) == table.differences["as randomised"].value
    assert found.standard_error == pytest.approx((one - two).std(ddof=1) / np.sqrt(240))
    with pytest.raises(InputError, match="The table has no rule 'magic'"):
        table.difference("regime", "magic")


# --- right if either model of a stage is ---


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")  # some chances of the design are small
@pytest.mark.parametrize(
    "wrong",
    [
        ("outcome 1", "chances 2"),
        ("chances 1", "outcome 2"),
        ("outcome 1", "outcome 2"),
        ("chances 1", "chances 2"),
    ],
    ids=" and ".join,
)
def test_the_value_is_right_if_either_model_of_a_stage_is(wrong):
    """One wrong model at every stage, in each of the four ways: one wrong model alone asks less of the estimate.

    If all are wrong, the value is off by 1.7 (``benchmarks/regimes.py``).
    """
    found = []
    for seed in range(6):
        stages, estimators = two_stages(1500, seed), [linear(), linear()]
        for what in wrong:
            model, s = what.split()
            settings = {"outcome": {"model_regression": DummyRegressor()}, "chances": {"model_propensity": "shares"}}
            estimators[int(s) - 1].set_params(**settings[model])
        table = judge(TreatmentRegime(estimators), stages, sequences=[(1, 1)])
        found.append(table.estimates["always 1 then 1"].value)
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - 1.0) <= t.ppf(0.9995, len(found) - 1) * error  # the truth is E[C2 | 1] = 1
