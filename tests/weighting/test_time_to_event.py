"""Times to an event: curves, outcomes in place of censored ones, hazards and rewards."""

import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier, DummyRegressor

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value, load_dataset
from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting.study_data import StudyData, by_columns
from policytree.weighting.time_to_event.grid import Grid, make_grid, person_time
from policytree.weighting.time_to_event.outcome import TARGETS, TimeToEvent
from policytree.weighting.time_to_event.product_limit import numbers_at_risk, product_limit
from policytree.weighting.time_to_event.transformation import Hazards, expected_target, transformed
from tests.support.streamed import Curves

DATA = Path(__file__).parents[3] / "shared" / "data"
SHARED_ARMS = {k: 0.25 for k in range(4)}


def brute_force_curve(time, event, weight, at):
    """Share without event after ``at``: the product over event times, written out."""
    share = 1.0
    for t in sorted(set(time[event])):
        if t <= at:
            share *= 1.0 - weight[event & (time == t)].sum() / weight[time >= t].sum()
    return share


def brute_force_area(time, event, weight, horizon):
    """Area under that curve up to the horizon, from one event time to the next."""
    edges = [0.0, *sorted(t for t in set(time[event]) if t < horizon), horizon]
    return sum(brute_force_curve(time, event, weight, a) * (b - a) for a, b in pairwise(edges))


@st.composite
def follow_up(draw):
    n = draw(st.integers(12, 40))
    time = np.array(draw(st.lists(st.integers(0, 12), min_size=n, max_size=n)), dtype=float)
    event = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), dtype=float)
    return time, event, weight


@given(follow_up(), st.integers(1, 12))
@settings(deadline=None)
def test_curves_are_the_products_written_out(study, horizon):
    time, event, weight = study
    curve = product_limit(time, event, weight=weight)
    for at in range(14):
        assert curve.at(np.array([float(at)]))[0] == pytest.approx(
            brute_force_curve(time, event, weight, at), abs=1e-12
        )
    assert curve.area(float(horizon)) == pytest.approx(brute_force_area(time, event, weight, horizon), abs=1e-9)
    assert numbers_at_risk(time, np.array([3.0])).tolist() == [(time >= 3).sum()]


@given(follow_up(), st.sampled_from(["rmst", "survival"]), st.booleans())
@settings(deadline=None)
def test_without_covariates_mean_rewards_are_the_curves_of_kaplan_and_meier(study, target, weighted):
    time, event, weight = study
    weight = weight if weighted else np.ones(len(time))
    # A second arm of fixed rows that everybody can estimate; both are followed to the end by some.
    time = np.concatenate([time, np.full(6, 13.0), np.arange(1.0, 13.0), np.full(6, 13.0)])
    event = np.concatenate([event, np.zeros(6, bool), np.arange(12) % 2 == 0, np.zeros(6, bool)])
    weight = np.concatenate([weight, np.ones(24)])
    T = np.array(["a"] * (len(time) - 18) + ["b"] * 18)
    horizon = 10.0
    if not (event & (time <= horizon) & (T == "a")).any():
        return
    rewards = RewardEstimator(cv=2, random_state=0).fit_predict(
        StudyData.of(
            time, T, event=event, horizon=horizon, target=target, propensity={"a": 0.7, "b": 0.3}, sample_weight=weight
        )
    )
    for arm in ("a", "b"):
        own = arm == T
        curve = (time[own], event[own], weight[own])
        expected = brute_force_area(*curve, horizon) if target == "rmst" else brute_force_curve(*curve, horizon)
        assert np.average(rewards[arm], weights=weight) == pytest.approx(expected, abs=1e-9)


def test_the_published_means_of_actg175(actg175_times):
    days, arms, event = actg175_times
    asked = {"event": event, "horizon": 1000, "propensity": SHARED_ARMS}
    area = by_columns(RewardEstimator(random_state=0).fit_predict, Y=days, T=arms, **asked)
    # lifelines 0.30, restricted_mean_survival_time of KaplanMeierFitter by arm (shared notes of this project).
    assert area.mean().round(1).tolist() == [827.9, 921.0, 918.4, 902.6]
    assert (area.std() / np.sqrt(len(area))).round(0).tolist() == [12, 8, 9, 10]
    by_r = [827.8806389, 920.9521453, 918.3685806, 902.6134937]  # survfit of R's survival 3.5-3, rmean=1000
    shares = {"event": event, "horizon": 1000, "propensity": arms.value_counts(normalize=True).to_dict()}
    exact = by_columns(RewardEstimator().fit_predict, Y=days, T=arms, **shares)
    assert exact.mean().to_numpy() == pytest.approx(by_r, abs=1e-6)
    errors = [12.096347627, 8.401943190, 8.742728294, 9.113454567]  # by Greenwood's formula
    assert (exact.std() / np.sqrt(len(exact))).to_numpy() == pytest.approx(errors, rel=5e-4)
    survival = RewardEstimator(random_state=0).fit_predict(StudyData.of(days, arms, target="survival", **asked))
    assert survival.mean().round(3).tolist() == [0.630, 0.792, 0.787, 0.758]


@pytest.fixture(scope="module")
def actg175_times():
    if not DATA.exists():
        pytest.importorskip("lifelines")  # which ships the data, too
    frame = load_dataset("actg175", data_dir=DATA if DATA.exists() else None).frame
    arms = ["zidovudine", "zidovudine + didanosine", "zidovudine + zalcitabine", "didanosine"]
    return frame["days"], frame["arm"].map({arm: k for k, arm in enumerate(arms)}), frame["cens"]


# --- the transformation, against integrals by many small steps ---


def steps_of(grid: Grid, n_steps: int):
    """A fine grid of midpoints, their widths and the bin of each."""
    at = np.concatenate([np.linspace(a, b, n_steps + 1)[:-1] + (b - a) / n_steps / 2 for a, b in pairwise(grid.edges)])
    return at, np.repeat(np.diff(grid.edges) / n_steps, n_steps), np.repeat(np.arange(grid.n_bins), n_steps)


def slow_outcome(times: TimeToEvent, grid: Grid, hazards: Hazards, i: int, n_steps: int = 4000) -> float:
    """The formula of the module, each part as a sum over small steps of time."""
    at, width, of = steps_of(grid, n_steps)
    other = np.zeros_like(hazards.event[i]) if hazards.other is None else hazards.other[i]
    h, entry = times.horizon, 0.0 if times.entry is None else times.entry[i]
    event, rest, losing = hazards.event[i][of], other[of], hazards.censoring[i][of]
    survival = np.exp(-np.cumsum((event + rest) * width))
    brought = times.target.of_event(at, h) * event + times.target.of_other(at, h) * rest

    def expected(u: float) -> float:
        later = at > u
        total = (brought * survival * width)[later].sum() + times.target.of_free(h) * survival[-1]
        return total / (survival[~later][-1] if (~later).any() else 1.0)

    def followed(u: float) -> float:
        return float(np.exp(-(losing * width)[(at > entry) & (at <= u)].sum()))

    stop = min(times.time[i], h)
    inside = (at > entry) & (at <= stop)
    some = np.flatnonzero(inside)[:: max(1, inside.sum() // 400)]
    values = np.array([expected(u) / followed(u) for u in at[some]])
    lost = np.interp(at[inside], at[some], values) @ (losing * width)[inside]
    ended = times.observed_value[i] if times.known[i] else expected(stop)
    return ended / followed(stop) - lost


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("entry", [False, True])
def test_outcomes_are_the_integrals_of_the_formula(target, entry, rng):
    grid = Grid(np.array([0.0, 0.5, 1.2, 2.0]), tied=False)
    time = np.array([0.3, 0.9, 1.7, 2.5, 0.3, 0.9, 1.7, 1.3])
    code = np.array([1, 1, 1, 0, 0, 0, 0, 2 if TARGETS[target].by_cause else 1])
    start = np.array([0.1, 0.6, 0.0, 1.3, 0.2, 0.0, 0.7, 0.4]) if entry else None
    times = TimeToEvent(time, code, start, 2.0, TARGETS[target])
    shape = (8, 3)
    other = rng.uniform(0.1, 0.8, shape) if TARGETS[target].by_cause else None
    hazards = Hazards(rng.uniform(0.1, 1.5, shape), other, rng.uniform(0.1, 1.0, shape))
    found, raised = transformed(times, grid, person_time(times, grid), hazards, 1e-6)
    assert not raised.any()
    for i in range(8):
        assert found[i] == pytest.approx(slow_outcome(times, grid, hazards, i), abs=2e-3)


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("right", ["event", "censoring"])
@pytest.mark.parametrize("tied", [False, True])
def test_outcomes_are_right_on_average_if_either_model_is(target, right, tied, rng):
    n, edges = 400_000, np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    grid, by_cause = Grid(edges, tied), TARGETS[target].by_cause
    truth = np.array([0.25, 0.3, 0.2, 0.4]), np.array([0.1, 0.2, 0.15, 0.1]) * by_cause, np.array([0.2, 0.25, 0.3, 0.1])
    ends = []
    for hazard in truth:
        if tied:
            came = rng.uniform(size=(n, 4)) < hazard
            ends.append(np.where(came.any(axis=1), came.argmax(axis=1) + 1.0, 99.0))
        else:
            total = np.concatenate([[0.0], np.cumsum(hazard)])
            drawn = rng.exponential(size=n)
            ends.append(
                np.where(drawn < total[-1], np.interp(drawn, total, edges), 99.0) if total[-1] else np.full(n, 99.0)
            )
    if tied:  # of two causes in one bin the first is seen: its hazard stays, the other's is that of who is left
        truth = truth[0], truth[1] * (1 - truth[0]), truth[2]
    event, other, censoring = ends
    time = np.minimum(np.minimum(event, other), censoring)
    code = np.where((event <= other) & (event <= censoring), 1, np.where(other <= censoring, 2, 0))
    times = TimeToEvent(np.minimum(time, 4.5), np.where(time > 4.0, 0, code), None, 4.0, TARGETS[target])
    wrong = np.array([0.4, 0.1, 0.5, 0.2])
    rows = [np.tile(h, (n, 1)) for h in (
        truth[0] if right == "event" else wrong, truth[1] if right == "event" else wrong * by_cause / 2,
        truth[2] if right == "censoring" else wrong,
    )]  # fmt: skip
    hazards = Hazards(rows[0], rows[1] if by_cause else None, rows[2])
    found, _ = transformed(times, grid, person_time(times, grid), hazards, 1e-9)
    known = TimeToEvent(
        np.minimum(np.minimum(event, other), 4.5),
        np.where(event <= other, 1, 2) * (np.minimum(event, other) <= 4.0),
        None,
        4.0,
        TARGETS[target],
    )
    true_mean = known.observed_value.mean()
    error = (found - known.observed_value).std() / np.sqrt(n)
    assert abs(found.mean() - true_mean) < 4 * error
    expected = expected_target(
        np.tile(truth[0], (1, 1)), np.tile(truth[1], (1, 1)) if by_cause else None, grid, TARGETS[target], 4.0
    )[0, 0]
    assert expected == pytest.approx(true_mean, abs=4 * known.observed_value.std() / np.sqrt(n) + 1e-12)


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("tied", [False, True])
def test_a_floor_leaves_outcomes_right_on_average_if_the_model_of_events_is(target, tied, rng):
    """Half of the follow-up lies below the floor; the model of censoring is wrong, too."""
    n, grid = 200_000, Grid(np.array([0.0, 1.0, 2.0, 3.0]), tied)
    by_cause, floor = TARGETS[target].by_cause, 0.5
    event, other, losing = np.array([0.2, 0.3, 0.2]), np.array([0.1, 0.2, 0.1]) * by_cause, np.array([0.4, 0.3, 0.5])
    rows = [np.tile(h, (n, 1)) for h in (event, other, losing)]
    if tied:
        came, apart = rng.uniform(size=(n, 3)), rng.uniform(size=(n, 3)) < losing
        ended = came < event + other
        k = np.where((ended | apart).any(axis=1), (ended | apart).argmax(axis=1), 2)
        every = np.arange(n)
        cause = np.where(came[every, k] < event[k], 1, 2)
        time, code = k + 1.0, np.where(ended[every, k], cause, 0)
        time[~(ended | apart).any(axis=1)] = 3.5
    else:
        total = event + other + losing
        drawn = rng.exponential(size=n)
        passed = np.concatenate([[0.0], np.cumsum(total)])
        time = np.where(drawn < passed[-1], np.interp(drawn, passed, grid.edges), 3.5)
        k = np.minimum(np.searchsorted(grid.edges, time) - 1, 2)
        kind = rng.uniform(size=n) * total[k]
        code = np.where(kind < event[k], 1, np.where(kind < (event + other)[k], 2, 0))
    code = np.where(time > 3.0, 0, code)
    times = TimeToEvent(time, code, None, 3.0, TARGETS[target])
    hazards = Hazards(rows[0], rows[1] if by_cause else None, rows[2] * 1.3)
    found, raised = transformed(times, grid, person_time(times, grid), hazards, floor)
    assert raised.mean() > 0.1
    expected = expected_target(event[None], other[None] if by_cause else None, grid, TARGETS[target], 3.0)[0, 0]
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(n)
    assert np.abs(found).max() <= times.limits[1] / floor  # no row counts for more than the floor allows


@pytest.mark.parametrize("late", [False, True])
def test_a_floor_leaves_mean_rewards_at_the_curves_and_is_counted(late, rng):
    n = 200
    T, until, censoring = np.repeat(["a", "b"], n // 2), rng.exponential(size=n), rng.exponential(size=n) * 0.7
    time, event, entry = np.minimum(until, censoring), until <= censoring, None
    if late:
        entry = np.where(np.arange(n) % 4 == 0, time / 2, 0.0)
    held = RewardEstimator(random_state=0, min_observed=0.5)
    with pytest.warns(OverlapWarning, match="min_observed=0.5"):
        held.fit(StudyData.of(time, T, event=event, horizon=1.0, propensity=0.5, entry=entry))
    free = RewardEstimator(random_state=0, min_observed=0.0)
    free.fit(StudyData.of(time, T, event=event, horizon=1.0, propensity=0.5, entry=entry))
    assert free.n_raised_ == 0 and held.n_raised_ > 20
    assert held.outcome_.abs().max() < free.outcome_.abs().max()
    if not late:
        areas = [product_limit(time[arm == T], event[arm == T]).area(1.0) for arm in ("a", "b")]
        for model in (held, free):
            assert [model.outcome_[arm == T].mean() for arm in ("a", "b")] == pytest.approx(areas, abs=1e-9)
    asked = {"event": event, "propensity": 0.5, "entry": entry}
    assert np.allclose(by_columns(held.predict_rewards, Y=time, T=T, **asked), held.rewards_)


# --- rewards with covariates ---


def study(n, rng, effect=1.0):
    """Exponential times, censoring that depends on covariates and arm; last, the true effects on the area."""
    X = rng.uniform(size=(n, 4))
    T = (rng.uniform(size=n) < 1 / (1 + np.exp(0.5 - X[:, 0]))).astype(int)
    rates = [np.exp(-0.6 + 1.2 * X[:, 0] + effect * (X[:, 1] - 0.6) * t) for t in (0, 1)]
    until = rng.exponential(size=n) / np.where(T == 1, rates[1], rates[0])
    censoring = rng.exponential(size=n) / np.exp(-2.0 + 2.2 * X[:, 0] + 0.8 * T * X[:, 1])
    areas = [(1 - np.exp(-2 * r)) / r for r in rates]
    return X, T, np.minimum(until, censoring), until <= censoring, areas[1] - areas[0]


def test_the_average_effect_is_inside_where_naive_answers_are_not(rng):
    X, T, time, event, effect = study(4000, rng)
    model = RewardEstimator(random_state=0).fit(StudyData.of(time, T, X=X, event=event, horizon=2.0))
    difference = model.rewards_[1] - model.rewards_[0]
    error = difference.std() / np.sqrt(4000)
    assert abs(difference.mean() - effect.mean()) < 3 * error
    naive = RewardEstimator(random_state=0).fit_predict(np.minimum(time, 2.0), T, X=X).mean()
    assert abs(naive[1] - naive[0] - effect.mean()) > 2 * error
    predicted = model.predict_outcomes(X=X)
    assert np.corrcoef(predicted[1] - predicted[0], effect)[0, 1] > 0.7


def test_new_rows_are_judged_by_models_that_did_not_see_them(rng):
    X, T, time, event, _ = study(3000, rng)
    old, new = np.arange(1500), np.arange(1500, 3000)
    model = RewardEstimator(random_state=0, cv=3).fit(
        StudyData.of(time[old], T[old], X=X[old], event=event[old], horizon=2.0)
    )
    own = model.predict_own_outcomes(StudyData.of(time[new], T[new], X=X[new], event=event[new]))
    rewards = model.predict_rewards(StudyData.of(time[new], T[new], X=X[new], event=event[new]))
    assert len(own) == 1500
    both = RewardEstimator(random_state=0, cv=3).fit(
        StudyData.of(time[new], T[new], X=X[new], event=event[new], horizon=2.0)
    )
    assert abs(rewards.mean() - both.rewards_.mean()).max() < 0.05
    assert own.mean() == pytest.approx(both.outcome_.mean(), abs=0.05)
    with pytest.raises(InputError, match="give the new rows as a study"):
        model.predict_rewards(time[new], T[new], X=X[new])


def test_without_censoring_outcomes_are_the_times_themselves(rng):
    X, T, time, _, _ = study(300, rng)
    model = RewardEstimator(random_state=0).fit(StudyData.of(time, T, X=X, event=np.ones(300, bool), horizon=1.0))
    assert np.allclose(model.outcome_, np.minimum(time, 1.0), atol=1e-12)
    assert model.n_raised_ == 0


def test_arms_of_which_nobody_was_censored_have_curves(rng):
    time, T = rng.exponential(size=60), np.repeat([0, 1], 30)
    rewards = RewardEstimator(random_state=0).fit_predict(
        StudyData.of(time, T, event=np.ones(60, bool), horizon=1.0, propensity=0.5)
    )
    assert rewards.mean().tolist() == pytest.approx([np.minimum(time, 1.0)[k == T].mean() for k in (0, 1)], abs=1e-12)


def test_several_causes_add_up(rng):
    X, T, time, event, _ = study(600, rng)
    cause = np.where(event, rng.integers(1, 3, size=600), 0)
    kept = {"X": X, "event": cause, "horizon": 1.5}
    one, two = (
        RewardEstimator(random_state=0).fit_predict(StudyData.of(time, T, target="years_lost", cause=c, **kept))
        for c in (1, 2)
    )
    whole = RewardEstimator(random_state=0).fit_predict(StudyData.of(time, T, X=X, event=event, horizon=1.5))
    assert (one.mean() + two.mean()).to_numpy() == pytest.approx(1.5 - whole.mean().to_numpy(), abs=0.03)


def test_late_entries_are_about_who_is_free_at_entry(rng):
    n = 6000
    T, until = rng.integers(2, size=n), rng.exponential(size=n)
    entry, censoring = rng.uniform(0, 1, size=n), rng.exponential(size=n) * 2
    here = entry < until
    time, event = np.minimum(until, entry + censoring)[here], (until <= entry + censoring)[here]
    X = pd.DataFrame({"entry": entry[here]})
    fitted = RewardEstimator(random_state=0).fit(
        StudyData.of(time, T[here], X=X, event=event, entry=entry[here], horizon=2.0, propensity=0.5)
    )
    # Without memory: after entry e the mean time without event up to 2 is e + 1 - exp(-(2 - e)).
    expected = entry[here] + 1 - np.exp(entry[here] - 2.0)
    difference = fitted.rewards_[1] - expected
    assert abs(difference.mean()) < 3 * difference.std() / np.sqrt(here.sum())
    curves = RewardEstimator(random_state=0).fit_predict(
        StudyData.of(time, T[here], event=event, entry=entry[here], horizon=2.0, propensity=0.5)
    )
    off = curves[1] - expected
    assert abs(off.mean()) < 3 * off.std() / np.sqrt(here.sum())


def test_survival_models_of_ones_own_take_their_place(rng):
    X, T, time, event, effect = study(3000, rng)
    own = RewardEstimator(random_state=0, model_event=Curves(), model_regression=DummyRegressor())
    rewards = own.fit_predict(StudyData.of(time, T, X=X, event=event, horizon=2.0))
    difference = rewards[1] - rewards[0]
    assert abs(difference.mean() - effect.mean()) < 3.5 * difference.std() / np.sqrt(3000)
    with pytest.raises(InputError, match="has no fit"):
        RewardEstimator(model_event=object()).fit(StudyData.of(time, T, X=X, event=event, horizon=2.0))


def test_survival_models_that_take_weights_are_given_them(rng):
    X, T, time, event, _ = study(600, rng)
    weight = rng.integers(0, 3, size=600).astype(float)
    heard = []

    class Weighted(Curves):
        def fit(self, X, time, event, sample_weight=None):
            heard.append(sample_weight)
            return super().fit(X, time, event)

    RewardEstimator(random_state=0, cv=2, model_event=Weighted(), model_censoring=Curves()).fit(
        StudyData.of(time, T, X=X, event=event, horizon=2.0, sample_weight=weight)
    )
    assert len(heard) == 4 and all((w > 0).all() and len(set(w)) == 2 for w in heard)


def test_a_structured_array_says_both(rng):
    X, T, time, event, _ = study(200, rng)
    survival = np.array(list(zip(event, time, strict=True)), dtype=[("seen", bool), ("weeks", float)])
    settings = {"X": X, "horizon": 1.0}
    by_array = by_columns(RewardEstimator(random_state=0).fit_predict, Y=survival, T=T, **settings)
    by_column = RewardEstimator(random_state=0).fit_predict(StudyData.of(time, T, event=event, **settings))
    pd.testing.assert_frame_equal(by_array, by_column)


# --- what cannot be used ---

N = 60
TIME, ARM = np.arange(1.0, N + 1.0), np.tile([0, 1], N // 2)
EVENT = np.tile([1, 1, 0, 1, 0, 1], N // 6)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"Y": TIME - 5.0}, "negative times"),
        ({"event": EVENT + 1}, "must be 1 .* or 0"),
        ({"event": np.zeros(N)}, "every time is censored"),
        ({"event": np.where(ARM == 1, 0, 1), "horizon": 30.0}, "Treatment 1 has no event"),
        ({"horizon": 99.0}, "beyond all follow-up, which ends at 60"),
        ({"horizon": 58.0}, "only [12] rows of treatment [01] are still followed"),
        ({"horizon": -1.0}, "horizon must be a time greater than 0"),
        ({"horizon": True}, "horizon must be a time greater than 0"),
        ({"target": "median"}, "target must be 'rmst'"),
        ({"target": "years_lost"}, "name it: cause=1"),
        ({"cause": 1, "target": "rmst"}, "leave cause out"),
        ({"cause": 7}, "never holds cause=7"),
        ({"cause": [1, 2]}, "cause must be one value of event"),
        ({"cause": "1", "event": EVENT.astype(str)}, "must hold numbers, 0 for censored"),
        ({"cause": 1, "event": np.where(ARM == 1, EVENT, 2 * EVENT), "horizon": 30.0}, "has no event of the cause"),
        ({"Y": np.where(TIME < 58, 0.0, TIME)}, "no default horizon; name one"),
        ({"Y": np.array([(True, 1.0)] * N, dtype=[("e", bool), ("t", float)])}, "leave event out"),
        ({"event": EVENT[:-1]}, "event has 59 rows"),
        ({"event": np.where(TIME == 3, np.nan, EVENT)}, "event is missing in 1 rows"),
        ({"entry": TIME}, "entry is not before"),
        ({"entry": TIME - 9.0}, "negative values"),
        (
            {"event": None, "horizon": 3.0},
            r"horizon is about times to an event; give a study with outcome=TimeToEvent\(\.\.\.\)",
        ),
        ({"missing_outcome": "weight"}, "for outcomes that are numbers"),
        ({"missing_outcome": "drop"}, "missing_outcome must be"),
    ],
)
def test_one_sentence_for_what_cannot_be_used(changed, words):
    arguments = {"Y": TIME, "T": ARM, "event": EVENT} | changed
    with pytest.raises(InputError, match=words):
        StudyData.of(**arguments)


@pytest.mark.parametrize("random_state", range(6))
def test_one_censored_row_and_one_of_another_cause_leave_folds_without_any(random_state):
    rng = np.random.default_rng(4)
    X, T, time = rng.normal(size=(160, 2)), rng.choice(["c", "d"], 160), rng.exponential(10, 160)
    event, time[7] = np.arange(160) != 7, 1.0
    asked = {"X": X, "propensity": 0.5}
    once = RewardEstimator(random_state=random_state).fit_predict(
        StudyData.of(time, T, event=event, horizon=8, **asked)
    )
    raw = [product_limit(time[arm == T], event[arm == T]).area(8.0) for arm in ("c", "d")]
    assert abs(once.mean() - raw).max() < 0.5
    code = np.ones(160, dtype=int)
    code[3], code[::5] = 2, 0
    RewardEstimator(random_state=random_state, cv=2).fit(StudyData.of(time, T, event=code, cause=1, **asked))


def test_rules_that_seek_events_of_a_cause_are_warned_of(rng):
    X, T, time = rng.normal(size=(160, 2)), rng.choice(["c", "d"], 160), rng.exponential(10, 160)
    asked = {"X": X, "event": rng.choice([0, 1, 2], 160), "cause": 2, "propensity": 0.5}
    tree = DRPolicyTree(max_depth=1, random_state=0, cv=2)
    with pytest.warns(UserWarning, match="direction='minimize'"):
        by_columns(tree.fit, Y=time, T=T, **asked)
    with pytest.warns(UserWarning, match="direction='minimize'") as heard:
        by_columns(cross_val_policy_value, tree, Y=time, T=T, cv=2, n_repeats=1, **asked)
    assert len(heard) == 1
    by_columns(tree.set_params(direction="minimize").fit, Y=time, T=T, **asked)
    for wrong in (asked["event"].astype(str), asked["event"] > 0):
        with pytest.raises(InputError, match="must hold numbers"):
            tree.score(StudyData.of(time, T, X=X, event=wrong, cause=2))


def test_outcomes_of_true_and_false_may_be_missing(rng):
    Y = pd.Series(rng.choice([True, False, None], 160), dtype="boolean")
    X, T = rng.normal(size=(160, 2)), rng.choice(["c", "d"], 160)
    assert (
        RewardEstimator(random_state=0)
        .fit(StudyData.of(Y, T, X=X, missing_outcome="weight"))
        .rewards_.notna()
        .all(axis=None)
    )
    Y[(T == "c") & (np.arange(160) > 6)] = None
    with pytest.raises(InputError, match="outcomes of treatment c are seen"):
        RewardEstimator(random_state=0).fit(StudyData.of(Y, T, X=X, missing_outcome="weight"))


def test_the_default_horizon_is_where_a_tenth_of_every_arm_is_followed():
    observed = StudyData.of(TIME, ARM, event=EVENT)
    h = observed.times.horizon
    assert observed.times.default_horizon
    followed = [((k == ARM) & (h <= TIME)).sum() for k in (0, 1)]
    assert min(followed) == 5  # a tenth of 30 rows would be three, too few to say anything


def test_a_horizon_behind_the_last_event_of_everybody_is_none_that_nothing_is_known_of(rng):
    until = rng.integers(1, 9, size=80).astype(float)
    T, event = np.tile([0, 1], 40), rng.uniform(size=80) < 0.9
    event[until >= 7] = True  # events end both curves
    rewards = RewardEstimator(random_state=0).fit_predict(
        StudyData.of(until, T, event=event, horizon=20.0, propensity=0.5)
    )
    expected = [product_limit(until[k == T], event[k == T]).area(20.0) for k in (0, 1)]
    assert rewards.mean().to_numpy() == pytest.approx(expected, abs=1e-9)


def test_refits_of_small_trials_are_not_refused_for_a_rare_arm(rng):
    """Nine rows in an arm: the default horizon has five of them, and no fold may leave so many."""
    n = 160
    T = np.where(np.arange(n) < 9, "rare", np.where(np.arange(n) % 2 == 0, "a", "b"))
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "town": np.where(np.arange(n) % 80 == 0, "small", "large")})
    until, censoring = rng.exponential(10, size=n), rng.exponential(20, size=n)
    time, event = np.minimum(until, censoring), until <= censoring
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    values = cross_val_policy_value(model, StudyData.of(time, T, X=X, event=event), cv=3, n_repeats=1, random_state=0)
    h = values.observed.times.horizon
    expected = {arm: product_limit(time[arm == T], event[arm == T]).area(h) for arm in ("rare", "a", "b")}
    for arm, area in expected.items():
        estimate = values.estimates[f"always {arm}"]
        assert abs(estimate.value - area) < 3 * estimate.standard_error
    assert abs(values.estimates["status quo"].value - np.mean([expected[arm] for arm in T])) < 0.5


def test_discrete_times_are_told_from_continuous_ones(rng):
    few, many = rng.integers(1, 20, size=300).astype(float), rng.exponential(size=300)
    for time, tied in ((few, True), (many, False)):
        times = TimeToEvent(time, np.ones(300, dtype=np.int64), None, float(np.quantile(time, 0.9)), TARGETS["rmst"])
        assert make_grid(times).tied is tied


# --- outcomes that are missing ---


def visits(n, seed):
    """Progression is seen at visits every six months, a tenth dies in between; follow-up ends at visits, too."""
    rng = np.random.default_rng(seed)
    X, T = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    until = np.ceil(rng.exponential(40 * np.exp(0.5 * X[:, 0] + 0.2 * T)) / 6) * 6
    until = np.where(rng.uniform(size=n) < 0.1, rng.uniform(0, 80, n), until)
    return X, T, until, np.ceil(rng.exponential(60 * np.exp(0.5 * X[:, 0])) / 6) * 6


def test_visits_with_a_few_times_in_between_are_discrete_time():
    X, T, until, censoring = visits(2000, 0)
    asked = {"X": X, "event": until <= censoring, "horizon": 80.0, "propensity": 0.5}
    time = np.minimum(until, censoring)
    observed = StudyData.of(time, T, event=until <= censoring, horizon=80.0)
    grid = make_grid(observed.times)
    assert grid.tied and grid.edges.tolist() == [*range(0, 79, 6), 80]
    errors = [
        (
            by_columns(RewardEstimator(random_state=0, cv=3).fit, Y=time, T=T, **asked).outcome_
            - np.minimum(until, 80.0)
        ).mean()
    ]
    for seed in (1, 2):
        X, T, until, censoring = visits(2000, seed)
        asked |= {"X": X, "event": until <= censoring}
        model = by_columns(RewardEstimator(random_state=0, cv=3).fit, Y=np.minimum(until, censoring), T=T, **asked)
        errors.append((model.outcome_ - np.minimum(until, 80.0)).mean())
    assert abs(np.mean(errors)) < 0.4  # standard deviation .12; -.75 with hazards that are constant within bins
    one_day = np.where(np.arange(2000) % 5 == 0, np.linspace(1, 79, 2000), 50.0)  # all others at once
    assert not make_grid(replace(observed.times, time=one_day)).tied


def test_weighting_mends_what_missing_outcomes_bias(rng):
    n = 4000
    X, T = rng.normal(size=(n, 3)), rng.integers(2, size=n)
    Y = X[:, 0] + T * (1 + X[:, 1]) + rng.normal(size=n)
    seen = rng.uniform(size=n) < 1 / (1 + np.exp(-1 - 1.5 * X[:, 1] * T))
    gaps = np.where(seen, Y, np.nan)
    model = RewardEstimator(random_state=0).fit(StudyData.of(gaps, T, X=X, propensity=0.5, missing_outcome="weight"))
    difference = model.rewards_[1] - model.rewards_[0]
    truth, error = 1 + X[:, 1].mean(), difference.std() / np.sqrt(n)
    assert abs(difference.mean() - truth) < 3 * error
    complete = gaps[(T == 1) & seen].mean() - gaps[(T == 0) & seen].mean()
    assert abs(complete - truth) > 4 * error
    with pytest.warns(OverlapWarning, match="raise min_observed"):  # residuals of no model are large
        constant = RewardEstimator(DummyRegressor(), random_state=0).fit_predict(
            StudyData.of(gaps, T, X=X, propensity=0.5, missing_outcome="weight")
        )
    off = constant[1] - constant[0]
    assert abs(off.mean() - truth) < 3 * off.std() / np.sqrt(n)
    assert model.observation_.between(0, 1).all()
    new = model.predict_rewards(gaps, T, X=X)
    assert abs((new[1] - new[0]).mean() - truth) < 4 * error
    own = model.predict_own_outcomes(gaps, T, X=X)
    assert own.notna().all()
    with pytest.raises(InputError, match="missing_outcome='weight'"):
        RewardEstimator().fit(gaps, T, X=X)


@pytest.mark.parametrize("method", ["dr", "ipw", "regression"])
def test_few_gaps_in_a_small_trial_of_binary_outcomes(method, rng):
    n = 200
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "site": rng.choice(["a", "b", "rare"], n, p=[0.6, 0.38, 0.02])})
    T, Y = rng.choice(["x", "y", "z"], n), rng.integers(2, size=n).astype(float)
    Y[[3, 50]] = np.nan
    model = RewardEstimator(method=method, random_state=0).fit(StudyData.of(Y, T, X=X, missing_outcome="weight"))
    seen = ~np.isnan(Y)
    raw = pd.Series(Y[seen]).groupby(T[seen]).mean()
    assert abs(model.rewards_.mean() - raw).max() < 0.08


def test_all_outcomes_of_an_arm_are_missing():
    Y = np.where(ARM == 1, np.nan, 1.0)
    with pytest.raises(InputError, match="All outcomes of treatment 1 are missing"):
        RewardEstimator().fit(StudyData.of(Y, ARM, missing_outcome="weight"))


# --- what was ignored ---


@pytest.mark.parametrize(
    "models",
    [{"model_event": Curves()}, {"model_censoring": Curves()}, {"model_regression": DummyRegressor()}],
    ids=lambda models: next(iter(models)),
)
def test_models_of_ones_own_need_covariates(models, rng):
    with pytest.raises(InputError, match=f"{next(iter(models))} needs covariates; pass X or W"):
        RewardEstimator(**models).fit(StudyData.of(TIME, ARM, event=EVENT, horizon=2.0))


def test_models_of_who_is_seen_know_the_arm_without_covariates(rng):
    Y, T = rng.normal(size=160), rng.choice(["c", "d"], 160)
    Y[::7] = np.nan
    known = RewardEstimator(model_observation=DummyClassifier(strategy="constant", constant=1), random_state=0)
    assert (known.fit(StudyData.of(Y, T, missing_outcome="weight")).observation_ == 1.0).all()
    with pytest.raises(InputError, match="model_observation must be 'auto' or a scikit-learn estimator"):
        RewardEstimator(model_observation="logit").fit(StudyData.of(Y, T, missing_outcome="weight"))


def test_expected_outcomes_from_elsewhere_are_read_by_their_labels_and_asked_for(rng):
    X, T = rng.normal(size=(160, 2)), rng.choice(["c", "d"], 160)
    elsewhere = pd.DataFrame({"c": X[:, 0], "d": X[:, 0] + 10.0})
    Y = np.where(T == "d", elsewhere["d"], elsewhere["c"]) + rng.normal(size=160)
    whole = Y.copy()
    Y[::7] = np.nan
    model = RewardEstimator(random_state=0, cv=2).fit(
        StudyData.of(Y, T, X=X, regression=elsewhere, missing_outcome="weight")
    )
    own = model.predict_own_outcomes(Y, T, X=X, regression=elsewhere[["d", "c"]])
    assert own.equals(model.predict_own_outcomes(Y, T, X=X, regression=elsewhere))
    assert np.abs(own - whole).max() < 4.0
    with pytest.raises(InputError, match="regression was given row by row at fit"):
        model.predict_own_outcomes(Y, T, X=X)
    with pytest.raises(InputError, match="regression has shape"):
        model.predict_own_outcomes(Y, T, X=X, regression=elsewhere.to_numpy()[:5])
    model.fit(whole, T, X=X)
    with pytest.raises(InputError, match="only where outcomes may be missing"):
        model.predict_own_outcomes(whole, T, X=X, regression=elsewhere)
    times = RewardEstimator(random_state=0).fit(
        StudyData.of(TIME, ARM, event=EVENT, regression=np.ones((len(TIME), 2)))
    )
    with pytest.raises(InputError, match="regression was given row by row at fit"):
        times.predict_rewards(StudyData.of(TIME, ARM, event=EVENT))


def test_refits_of_causes_of_which_one_row_was_censored(rng):
    X, T, time = rng.normal(size=(160, 2)), rng.choice(["c", "d"], 160), rng.exponential(10, 160)
    cause = np.where(np.arange(160) == 7, 0, rng.integers(1, 3, 160))
    tree = DRPolicyTree(max_depth=1, random_state=0, cv=2, direction="minimize")
    asked = {"X": X, "event": cause, "cause": 1, "horizon": 8.0, "propensity": 0.5}
    values = by_columns(cross_val_policy_value, tree, Y=time, T=T, cv=2, n_repeats=1, random_state=0, **asked)
    lost = np.where(cause == 1, np.maximum(8.0 - time, 0.0), 0.0)
    for arm in ("c", "d"):
        estimate = values.estimates[f"always {arm}"]
        assert abs(estimate.value - lost[arm == T].mean()) < 3 * estimate.standard_error
    with pytest.raises(InputError, match="nobody was censored"):
        RewardEstimator().fit(StudyData.of(time, T, X=X, event=np.maximum(cause, 1), cause=1, horizon=8.0))


# --- rewards far outside of what the target can be ---


def test_rewards_of_who_was_unlikely_to_be_followed_are_said_once(rng):
    """Nearly everybody is censored early: the few who are seen to die late stand for many."""
    n = 240
    X, T = rng.normal(size=(n, 2)), rng.choice(["c", "d"], n)
    until, censoring = rng.exponential(4.0, n), rng.exponential(1.2, n)
    censoring[:20] = 9.0
    time, event = np.minimum(until, censoring), until <= censoring
    model, asked = RewardEstimator(random_state=0), {"X": X, "event": event, "propensity": 0.5, "target": "survival"}
    with pytest.warns(OverlapWarning, match="choose an earlier horizon or raise min_observed") as heard:
        model.fit(StudyData.of(time, T, horizon=3.0, **asked))
    assert len(heard) == 1
    found = model.extreme_rewards_
    own = np.where(T == "c", model.rewards_["c"], model.rewards_["d"])
    assert (
        found.n == (np.maximum(own - 1.0, -own) > 2.0 / np.where(T == "c", (T == "c").mean(), (T == "d").mean())).sum()
    )
    assert found.n_unlikely_seen == found.n > 0 and (found.least, found.largest) == (own.min(), own.max())
    assert f"the target lies between 0 and 1: {found.n} of {n} rows" in str(found) and found.share > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(StudyData.of(time, T, horizon=1.0, **asked)).extreme_rewards_.n == 0
        assert str(model.extreme_rewards_) == ""
        assert model.fit(np.minimum(until, 9.0), T, X=X).extreme_rewards_ is None


def test_rewards_of_who_was_unlikely_to_be_treated_are_said(rng):
    n = 300
    X = rng.normal(size=(n, 1))
    chance = np.where(X[:, 0] > 1.2, 0.03, 0.5)
    T = (rng.uniform(size=n) < chance).astype(int)
    T[np.flatnonzero(X[:, 0] > 1.2)[:2]] = 1
    Y = rng.normal(size=n) + X[:, 0]
    Y[::9] = np.nan
    Y[np.flatnonzero((X[:, 0] > 1.2) & (T == 1))] = 9.0
    with pytest.warns(OverlapWarning, match="unlikely to get their treatment.*crump_trimming") as heard:
        RewardEstimator(random_state=0).fit(StudyData.of(Y, T, X=X, propensity=chance, missing_outcome="weight"))
    assert len(heard) == 1 and "horizon" not in str(heard[0].message)


def test_horizons_count_known_outcomes_and_not_those_at_risk():
    """69 people of one arm, of whom 68 are known by day 365 though nobody is followed any longer."""
    rng = np.random.default_rng(3)
    n = 137
    T, time = rng.integers(1, 3, n), np.ceil(rng.exponential(110, n))
    censored = np.where(rng.random(n) < 0.07, rng.uniform(50, 400, n).round(), 1000)
    event, time = (time <= censored).astype(int), np.minimum(time, censored)
    first = T == 1
    assert ((event == 1) | (time >= 365))[first].sum() == 68 and (time >= 365)[first].sum() == 0
    model = RewardEstimator(method="ipw", random_state=0)
    rewards = model.fit_predict(StudyData.of(time, T, event=event, horizon=365, propensity=0.5))
    assert rewards.shape == (n, 2) and np.isfinite(rewards.to_numpy()).all()
    # Nobody was censored: by default the outcome is the whole time, and not the time up to its ninth decile.
    model.fit(StudyData.of(time, T, event=np.ones(n), propensity=0.5))
    assert model.horizon_ == min(time[arm == T].max() for arm in (1, 2))
    # A tenth of an arm is censored early, and then nobody is followed: not known, and refused.
    event[np.flatnonzero(first)[:12]], time[np.flatnonzero(first)[:12]] = 0, 1.0
    with pytest.raises(InputError, match=r"outcomes of 1[23] of its 69 rows are unknown"):
        model.fit(StudyData.of(time, T, event=event, horizon=365, propensity=0.5))
