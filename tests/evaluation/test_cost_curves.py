"""Cost curves: against linear programmes, known numbers, policies' values; errors, budgets, marks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from policytree import policy_value
from policytree.evaluation import qini_curve, rank_average_treatment_effect
from policytree.evaluation.policy_value.sample_split import HeldOutRewards
from policytree.evaluation.targeting.least_budget import BudgetEstimate
from policytree.exceptions import InputError
from tests.evaluation.test_ranking import drawn
from tests.support.simulations import benchmark_script


def most_reward(reward, cost, budget, weight=None):
    """The linear programme: most reward per person within a budget per person, by HiGHS; NaN if it cannot be met."""
    n, k = reward.shape
    w = (np.ones(n) if weight is None else weight) / (n if weight is None else weight.sum())
    one_each = np.kron(np.eye(n), np.ones(k))
    found = linprog(
        -(w[:, None] * reward).ravel(), A_ub=(w[:, None] * cost).ravel()[None], b_ub=[budget], A_eq=one_each,
        b_eq=np.ones(n), method="highs",
    )  # fmt: skip
    return -found.fun if found.success else np.nan


@st.composite
def plans(draw):
    """Rewards and costs of few people: ties, dominated arms, free and cheaper arms, weights."""
    n, k = draw(st.integers(1, 7)), draw(st.integers(2, 5))

    def table(low, high):
        rows = draw(st.lists(st.integers(low, high), min_size=n * k, max_size=n * k))
        return np.array(rows, float).reshape(n, k) / 2

    weight = np.array(draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), float)
    return table(-4, 6), table(draw(st.sampled_from([-3, 0])), 5), weight


@settings(max_examples=80)
@given(plans(), st.lists(st.floats(0, 1.2), min_size=3, max_size=3))
def test_the_curve_is_the_linear_programme(case, shares):
    """With predictions that are true, every point is the optimum; the plan of each budget is what it says."""
    reward, cost, weight = case
    if len(reward) < 2:
        reward, cost, weight = (np.repeat(part, 2, axis=0) for part in case)
    curve = qini_curve(reward, reward, cost, sample_weight=weight)
    costs, gains = cost - cost[:, [0]], reward - reward[:, [0]]
    assert (np.diff(curve.spend) > 0).all() and (np.diff(curve.gain) > -1e-12).all()
    for share in shares:
        budget = curve.spend[0] + share * (curve.spend[-1] - curve.spend[0])
        value = curve.value_at(budget).value
        assert value == pytest.approx(most_reward(gains, costs, budget + 1e-12, weight), abs=1e-8)
        plan = curve.policy_at(budget).to_numpy()
        assert (plan >= 0).all() and np.allclose(plan.sum(axis=1), 1)
        assert np.average((plan * costs).sum(axis=1), weights=weight) == pytest.approx(
            min(budget, curve.spend[-1]), abs=1e-9
        )
        assert np.average((plan * gains).sum(axis=1), weights=weight) == pytest.approx(value, abs=1e-9)
    average = [np.average(part, axis=0, weights=weight)[None] for part in (gains, costs)]
    lots = curve.untargeted
    for share in shares:
        budget = lots.spend[0] + share * (lots.spend[-1] - lots.spend[0])
        assert lots.value_at(budget).value == pytest.approx(most_reward(*average, budget + 1e-12), abs=1e-8)


def published():
    """The draws of which numbers are known, with an arm that costs and brings nothing."""
    tau, cost, scores = (np.hstack([np.zeros((1000, 1)), part]) for part in drawn())
    return tau, scores, cost


def test_known_numbers():
    predicted, scores, cost = published()
    curve = qini_curve(predicted, scores, cost)
    assert len(curve.spend) - 1 == 1261
    assert curve.value_at(0.1).value == pytest.approx(0.005729002695991717, rel=1e-13)
    assert (round(curve.spend[-1], 7), round(curve.gain[-1], 8)) == (0.4825977, 0.00816486)
    perfect = qini_curve(predicted, predicted, cost)
    for budget in (0.01, 0.1, 0.3):
        assert perfect.value_at(budget).value == pytest.approx(most_reward(predicted, cost, budget), rel=1e-12)


@pytest.fixture
def noisy(rng):
    """Predictions, scores and costs of two thousand people and three arms."""
    n = 2_000
    effects = np.column_stack([np.zeros(n), rng.normal(0.2, 1, n), rng.normal(0.5, 1, n)])
    names = ["none", "pill", "talk"]
    predicted = pd.DataFrame(effects + 0.3 * rng.normal(size=effects.shape), columns=names)
    scores = pd.DataFrame(effects + rng.normal(size=(n, 1)) + 2 * rng.normal(size=effects.shape), columns=names)
    return predicted, scores, {"pill": 1.0, "talk": rng.uniform(1.5, 3.0, n)}


def test_the_value_at_a_budget_is_that_of_its_policy(noisy):
    predicted, scores, costs = noisy
    curve = qini_curve(predicted[["talk", "none", "pill"]], scores, costs, held_out=True)
    for budget in (0.0, 0.3, 0.8, 5.0):
        e, plan = curve.value_at(budget), curve.policy_at(budget)
        paid = policy_value(plan, scores, baseline="none")
        assert e.value == pytest.approx(paid.value, abs=1e-12)
        assert ((plan > 0) & (plan < 1)).any(axis=1).sum() <= 1, "one person draws lots at most"
    assert e.standard_error == pytest.approx(paid.standard_error, rel=0.15), "beyond the last step: an ordinary mean"
    np.testing.assert_allclose(e.influence, paid.influence, atol=1e-9)
    assert curve.value_at(0.0).value == curve.value_at(0.0).standard_error == 0.0


def test_prices_make_the_plan_a_rule_for_new_people(noisy):
    predicted, scores, costs = noisy
    curve = qini_curve(predicted, scores, costs)
    table = np.column_stack([np.zeros(2_000), np.ones(2_000), costs["talk"]])
    for budget in (0.2, 0.6):
        net = (predicted - predicted[["none"]].to_numpy()).to_numpy() - curve.price_at(budget) * table
        plan = curve.policy_at(budget).to_numpy()
        assert (net.argmax(axis=1) == plan.argmax(axis=1)).mean() > 0.999
    assert curve.price_at(100.0) == 0.0
    assert curve.price_at(0.0) > curve.price_at(0.2) > curve.price_at(0.6) > 0


def test_errors_of_half_samples_and_influences_agree(noisy):
    predicted, scores, costs = noisy
    groups = np.repeat(np.arange(500), 4)
    curve = qini_curve(predicted, scores, costs, groups=groups, held_out=True)
    for e in (curve.value_at(0.4), curve.difference(curve.untargeted, 0.4)):
        sums = np.bincount(groups, weights=e.influence)
        assert e.influence.sum() == pytest.approx(0, abs=1e-8)
        assert e.standard_error == pytest.approx(np.sqrt(sums @ sums) / 2_000, rel=0.15)
        assert (e.n, e.n_clusters) == (2_000, 500)


def test_one_treatment_of_one_price_is_a_ranking(rng):
    """The gain of treating the first share is that share times their mean gain: TOC plus the average."""
    n = 500
    predicted = np.column_stack([np.zeros(n), np.round(rng.uniform(0.1, 2.0, n), 1)])
    scores = np.column_stack([np.zeros(n), rng.normal(size=n)])
    weight = rng.uniform(0.5, 2.0, n)
    curve = qini_curve(predicted, scores, {1: 1.0}, sample_weight=weight, held_out=True)
    ranking = rank_average_treatment_effect(predicted[:, 1], scores, sample_weight=weight, held_out=True)
    corners = curve.spend[1:-1]
    assert len(curve.spend) == 21, "twenty different promises, bought one after the other"
    assert curve.spend[-1] == pytest.approx(1.0) and (corners < 1).all()
    toc = ranking.toc.set_index("share")["value"]
    above = predicted[:, 1] >= 1.5
    share = np.average(above, weights=weight)
    gain = np.average(np.where(above, scores[:, 1], 0.0), weights=weight)
    assert curve.value_at(share).value == pytest.approx(gain, abs=1e-12)
    everybody = np.average(scores[:, 1], weights=weight)
    assert curve.value_at(1.0).value == pytest.approx(everybody + toc[1.0], abs=1e-12)
    assert curve.value_at(0.02).value == pytest.approx(0.02 * (toc[0.02] + everybody), abs=1e-12)
    order = rng.permutation(n)
    shuffled = qini_curve(predicted[order], scores[order], {1: 1.0}, sample_weight=weight[order])
    np.testing.assert_allclose(shuffled.gain, curve.gain, atol=1e-12)


def test_minimising_is_maximising_the_negative(noisy):
    predicted, scores, costs = noisy
    up = qini_curve(predicted, scores, costs, held_out=True)
    down = qini_curve(-predicted, -scores, costs, direction="minimize", held_out=True)
    np.testing.assert_allclose(down.gain, up.gain)
    assert (down.direction, down.value_at(0.5).upper) == ("minimize", pytest.approx(up.value_at(0.5).upper))


def test_cheaper_than_the_baseline(rng):
    """Savings of the cheapest arm can be spent on others: the curve begins at a negative budget."""
    n = 300
    rewards = rng.normal(size=(n, 3))
    curve = qini_curve(rewards, rewards, [0.0, 1.0, 3.0], baseline=1)
    assert curve.spend[0] == pytest.approx(-1.0)
    assert curve.gain[0] == pytest.approx((rewards[:, 0] - rewards[:, 1]).mean())
    costs = np.tile([-1.0, 0.0, 2.0], (n, 1))
    for budget in (-0.5, 0.0, 0.7):
        best = most_reward(rewards - rewards[:, [1]], costs, budget)
        assert curve.value_at(budget).value == pytest.approx(best, abs=1e-9)
    with pytest.raises(InputError, match=r"budget is -1\.5 a person, but the cheapest treatments cost -1"):
        curve.value_at(-1.5)


# --- costs that are estimated ---


def test_costs_that_are_scores(noisy, rng):
    predicted, scores, costs = noisy
    known = np.column_stack([np.zeros(2_000), np.ones(2_000), costs["talk"]])
    sure = qini_curve(predicted, scores, costs, held_out=True)
    same = qini_curve(predicted, scores, costs, cost_scores=known, held_out=True)
    np.testing.assert_array_equal(same.gain, sure.gain)
    assert same.value_at(0.4).upper == sure.value_at(0.4).upper
    noise = known + rng.normal(0, 1.0, known.shape)
    unsure = qini_curve(predicted, scores, costs, cost_scores=noise, held_out=True)
    assert (np.diff(unsure.spend) < 0).any(), "estimated spends fall here and there"
    budget = 0.4
    e = unsure.value_at(budget)
    assert e.standard_error > 1.02 * sure.value_at(budget).standard_error
    assert e.standard_error == pytest.approx(np.sqrt(e.influence @ e.influence) / 2_000, rel=0.15)
    plan = unsure.policy_at(budget).to_numpy()
    assert (plan * (noise - noise[:, [0]])).sum(axis=1).mean() == pytest.approx(budget, abs=1e-9)
    first = np.flatnonzero(unsure.spend > budget)[0]
    assert (unsure.spend[:first] <= budget).all(), "a budget is used up when it is first exceeded"


def test_cost_scores_must_be_of_the_same_rows(noisy):
    predicted, scores, costs = noisy

    def held(rows):
        return HeldOutRewards(scores, predicted, np.array(rows), None, None, "maximize", None)

    curve = qini_curve(predicted, held([1, 2]), costs, cost_scores=held([1, 2]))
    assert curve.held_out
    with pytest.raises(InputError, match="cost_scores are of other rows than rewards"):
        qini_curve(predicted, held([1, 2]), costs, cost_scores=held([1, 3]))


# --- budgets, differences, marks ---


def test_the_budget_for_a_gain_is_the_inverse(noisy):
    curve = qini_curve(*noisy[:2], noisy[2], held_out=True)
    for budget in (0.1, 0.4):
        gain = curve.value_at(budget).value
        found = curve.budget_for(gain)
        assert curve.value_at(found.value).value == pytest.approx(gain, abs=1e-12)
        assert found.value <= budget + 1e-12, "the least one"
        assert found.lower < found.value < found.upper
        for end, side in ((found.lower, "upper"), (found.upper, "lower")):
            at = curve.to_frame([end]).iloc[0]
            assert at[side] == pytest.approx(gain, abs=0.3 * at["standard_error"])
    beyond = curve.budget_for(10.0)
    assert (beyond.value, beyond.lower, beyond.upper) == (np.inf, np.inf, np.inf)
    assert str(beyond) == "inf (95% CI inf to inf)"
    hardly = curve.budget_for(curve.gain.max() + 0.01)
    assert hardly.value == hardly.upper == np.inf and np.isfinite(hardly.lower)
    assert curve.budget_for(0.0).value == 0.0
    alone = qini_curve(*noisy[:2], noisy[2]).budget_for(0.1)
    assert np.isnan(alone.lower) and str(alone).endswith(" (no interval)")


def test_a_budget_is_printed_as_exactly_as_it_is_known():
    assert str(BudgetEstimate(0.47242, 0.4, 0.55, 0.95)) == "0.472 (95% CI 0.400 to 0.550)"
    assert str(BudgetEstimate(0.47242, 0.1, np.inf, 0.9)) == "0.47 (90% CI 0.10 to inf)"


def test_differences_are_paired(noisy, rng):
    predicted, scores, costs = noisy
    curve = qini_curve(predicted, scores, costs, held_out=True)
    near = qini_curve(predicted + 0.02 * rng.normal(size=predicted.shape), scores, costs, held_out=True)
    blind = qini_curve(predicted.sample(frac=1, random_state=0).reset_index(drop=True), scores, costs, held_out=True)
    close, far = curve.difference(near, 0.4), curve.difference(blind, 0.4)
    assert close.standard_error < 0.4 * far.standard_error
    assert far.value == pytest.approx(curve.value_at(0.4).value - blind.value_at(0.4).value)
    assert far.lower > 0
    assert curve.difference(curve, 0.4).standard_error == 0
    other = qini_curve(predicted[:-1], scores[:-1], {"pill": 1.0}, held_out=True)
    marked = qini_curve(predicted, scores, costs)
    reseeded = qini_curve(predicted, scores, costs, held_out=True, random_state=1)
    clustered = qini_curve(predicted, scores, costs, held_out=True, groups=np.arange(2_000) // 2)
    for wrong in (other, marked, reseeded, clustered):
        with pytest.raises(InputError, match="differ in rows, clusters, weights, scores or seed"):
            curve.difference(wrong, 0.4)


def test_training_rows_are_marked_and_have_no_interval(noisy):
    curve = qini_curve(*noisy[:2], noisy[2])
    assert curve.rows == "training rows" and set(curve.to_frame()["rows"]) == {"training rows"}
    assert curve.to_frame()[["standard_error", "lower", "upper"]].isna().all().all()
    e = curve.value_at(0.4)
    assert e.value > 0 and np.isnan([e.standard_error, e.lower]).all()
    assert np.isnan(curve.difference(curve.untargeted, 0.4).lower)
    assert policy_value(curve.policy_at(0.4), noisy[1]).value > 0
    assert f"by {len(noisy[1]):,} training rows: " in str(curve) and "(flattered, no interval)" in str(curve)
    shown = str(qini_curve(*noisy[:2], noisy[2], held_out=True).untargeted)
    assert "by lots" in shown and "gains over none for all, by " in shown
    assert " held-out rows: 0." in shown and "95% interval [0." in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "bed"}, "baseline is 'bed', which has no rewards; the treatments are none, pill, talk"),
        ({"costs": {"bed": 1.0}}, "bed"),
        ({"costs": {"pill": np.nan}}, "cost of treatment pill is nan in row 0"),
        ({"predicted": np.zeros((5, 3))}, "predicted has shape .5, 3., but rewards has .6, 3."),
        ({"predicted": pd.DataFrame(np.zeros((6, 3)), columns=list("abc"))}, "predicted must have the columns of"),
        ({"cost_scores": np.zeros((6, 2))}, "cost_scores has shape .6, 2."),
        ({"predicted": np.full((6, 3), np.nan)}, "predicted: the value of treatment 0 is missing"),
    ],
)
def test_bad_input_is_one_sentence(rng, options, message):
    rewards = pd.DataFrame(rng.normal(size=(6, 3)), columns=["none", "pill", "talk"])
    arguments = {"predicted": rewards, "rewards": rewards, "costs": {"pill": 1.0}, **options}
    with pytest.raises(InputError, match=message) as caught:
        qini_curve(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("budget", [np.nan, np.inf, "much", [[1.0]]])
def test_budgets_are_numbers(noisy, budget):
    with pytest.raises(InputError, match="budget"):
        qini_curve(*noisy[:2], noisy[2]).value_at(budget)


# --- pictures ---


@pytest.fixture
def axes():
    yield plt.subplots()[1]
    plt.close("all")


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_pictures_of_curves(noisy, axes):
    predicted, scores, costs = noisy
    curve, marked = qini_curve(predicted, scores, costs, held_out=True), qini_curve(predicted, scores, costs)
    display = curve.plot(ax=axes, unit="days")
    assert display.ax_ is axes and legend(display) == ["targeted", "without telling people apart"]
    assert len(axes.collections) == 2, "a band each"
    x, y = display.lines_[0].get_data()
    np.testing.assert_allclose(y[::40], [curve.value_at(b).value for b in x[::40]])
    assert axes.get_ylabel() == "gain over none for all, days"
    alone = marked.plot("plan", beside={})
    assert legend(alone) == ["plan (training rows)"] and "(training rows)" in alone.ax_.get_ylabel()
    assert not alone.ax_.collections, "no interval on training rows"
    both = curve.plot("plan", beside={"by lots": curve.untargeted, "again": curve})
    assert legend(both) == ["plan", "by lots", "again"]
    assert legend(curve.untargeted.plot("lots")) == ["lots"], "nothing is drawn twice"
    with pytest.raises(InputError, match="which beside has too"):
        curve.plot("plan", beside={"plan": curve})
    with pytest.raises(InputError, match="beside must be"):
        curve.plot(beside=[curve])


def test_pictures_of_rankings(noisy, axes):
    gain, scores = noisy[0]["pill"], noisy[1]
    ranking = rank_average_treatment_effect({"gain": gain, "other": -gain}, scores, treatment="pill", held_out=True)
    display = ranking.plot(ax=axes)
    assert display.ax_ is axes and len(display.lines_) == 2 and len(axes.collections) == 2
    e = ranking.estimates["gain"]
    assert legend(display)[0].startswith("gain: AUTOC ") and f"[{e.lower:.3f}, {e.upper:.3f}]" in legend(display)[0]
    x, y = display.lines_[0].get_data()
    assert x[0] == 0.01 and x[-1] == 1.0 and y[-1] == pytest.approx(0.0, abs=1e-12)
    marked = rank_average_treatment_effect(gain, scores, treatment="pill").plot()
    assert "(training rows)" in legend(marked)[0] and "(training rows)" in marked.ax_.get_ylabel()
    assert not marked.ax_.collections


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no effect, 300 judge", "effects, 60 clusters of 25 judge"])
def test_intervals_cover(name):
    """Two cells of benchmarks/ranking_coverage.py, few runs: a Monte-Carlo error of 30 runs is four points.

    Each of a dozen quantities stays within five such errors of 95 %, their mean within two.
    """
    with benchmark_script("ranking_coverage") as script, script.unwatched():
        cell = next(cell for cell in script.cells() if cell.name == name)
        truth = script.Truth(cell)
        records = [record for seed in range(30) for record in script.one_run(cell, truth, seed)]
    table = script.summary(pd.DataFrame(records)).set_index("quantity")
    assert {"AUTOC", "QINI, difference", "gain at a budget", "gain, less untargeted"} <= set(table.index)
    assert (table["inside"] >= 75).all() and table["inside"].mean() >= 87
    assert table.loc["AUTOC", "SE / SD"] == pytest.approx(1.0, abs=0.3)


def test_one_budget_at_a_time_but_in_the_table():
    rng = np.random.default_rng(5)
    curve = qini_curve(rng.normal(size=(40, 2)), rng.normal(size=(40, 2)), np.array([0.0, 1.0]), held_out=True)
    assert list(curve.to_frame([0.1, 0.2])["budget"]) == [0.1, 0.2]
    for ask in (curve.value_at, curve.policy_at, curve.price_at, lambda b: curve.difference(curve, b)):
        for budgets in ([0.1, 0.2], []):
            with pytest.raises(InputError, match="one at a time"):
                ask(budgets)
