"""Rankings: TOC, AUTOC and QINI by their definitions, errors by enumeration, where numbers come from."""

from __future__ import annotations

import doctest
import importlib
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, RewardEstimator, held_out_rewards, honest_leaf_summary
from policytree.evaluation import rank_average_treatment_effect
from policytree.evaluation.estimates import mean_estimate
from policytree.evaluation.inference.half_samples import HalfSamples
from policytree.evaluation.targeting.toc import Order, by_weight, toc_and_areas
from policytree.exceptions import InputError


def literal(priority, scores, weight):
    """AUTOC, QINI and the TOC after every row, from the definitions, row by row."""
    order = sorted(range(len(scores)), key=lambda i: -priority[i])
    shared = {}
    for p in set(priority):
        same = [i for i in order if priority[i] == p]
        shared[p] = sum(weight[i] * scores[i] for i in same) / sum(weight[i] for i in same)
    total = sum(weight)
    everybody = sum(w * s for w, s in zip(weight, scores, strict=True)) / total
    autoc = qini = above = gained = 0.0
    curve = []
    for i in order:
        above += weight[i]
        gained += weight[i] * shared[priority[i]]
        curve.append(gained / above - everybody)
        autoc += weight[i] * curve[-1] / total
        qini += above / total * weight[i] * curve[-1] / total
    return autoc, qini, np.array(curve)


@st.composite
def ranked(draw):
    """Few rows with many ties and uneven weights."""
    n = draw(st.integers(2, 12))
    numbers = st.integers(-3, 3)
    priority = draw(st.lists(numbers, min_size=n, max_size=n))
    scores = draw(st.lists(st.integers(-20, 20), min_size=n, max_size=n))
    weight = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    return np.array(priority, float), np.array(scores, float) / 4, np.array(weight, float)


@given(ranked())
def test_areas_are_the_literal_sums(case):
    priority, scores, weight = case
    autoc, qini, curve = literal(priority, scores, weight)
    shares = np.cumsum(weight[np.argsort(-priority, kind="stable")]) / weight.sum()
    areas, toc = toc_and_areas(Order.of(priority), scores, weight, shares)
    assert areas == pytest.approx((autoc, qini), abs=1e-12)
    assert toc == pytest.approx(curve, abs=1e-12)
    assert toc[-1] == pytest.approx(0.0, abs=1e-12)


@given(ranked(), st.sampled_from(["AUTOC", "QINI"]))
def test_influence_is_the_derivative_by_weights(case, target):
    priority, scores, weight = case
    order, at = Order.of(priority), ("AUTOC", "QINI").index(target)
    found = by_weight(order, scores, weight, target)
    step = 1e-6
    for i in range(len(scores)):
        up, down = weight.copy(), weight.copy()
        up[i] += step
        down[i] -= step
        areas = [toc_and_areas(order, scores, w, np.ones(1))[0][at] for w in (up, down)]
        assert found[i] == pytest.approx((areas[0] - areas[1]) / (2 * step), abs=2e-7)
    assert weight @ found == pytest.approx(0.0, abs=1e-9), "twice all weights changes nothing"


@given(ranked(), st.randoms(use_true_random=False))
def test_the_order_of_the_file_means_nothing(case, random):
    priority, scores, _ = case
    shuffled = list(range(len(scores)))
    random.shuffle(shuffled)
    one = np.ones(len(scores))
    first = toc_and_areas(Order.of(priority), scores, one, np.array([0.3, 0.7]))
    other = toc_and_areas(Order.of(priority[shuffled]), scores[shuffled], one, np.array([0.3, 0.7]))
    assert other[0] == pytest.approx(first[0], abs=1e-12)


def test_equals_are_exactly_nobody_first(rng):
    """Not by rounding either: ten equal priorities must not be called better or worse than chance."""
    ranking = rank_average_treatment_effect(np.full(500, 0.1), against_nothing(rng.normal(size=500)), held_out=True)
    e = ranking.estimate
    assert e.value == e.standard_error == 0.0 and (ranking.toc["value"] == 0).all()
    assert "are not shown to gain more" in str(ranking)


def drawn():
    """The draws of which the numbers below are known."""
    state = np.random.RandomState(42)
    return state.randn(1000, 5), state.rand(1000, 5), state.randn(1000, 5)


def against_nothing(scores):
    return np.column_stack([np.zeros(len(scores)), scores])


@pytest.mark.parametrize(
    ("rounded", "weighted", "autoc", "qini"),
    [
        (False, False, -0.0041592575, 0.0021950184),
        (True, False, -0.0108748630, -0.0002686247),
        (True, True, 0.0057253124, 0.0012925632),
    ],
)
def test_known_numbers(rounded, weighted, autoc, qini):
    tau, cost, scores = drawn()
    priority = np.round(tau[:, 0]) if rounded else tau[:, 0]
    for target, known in (("AUTOC", autoc), ("QINI", qini)):
        ranking = rank_average_treatment_effect(
            priority, against_nothing(scores[:, 0]), target=target, sample_weight=cost[:, 0] if weighted else None
        )
        assert round(ranking.estimate.value, 10) == known


def test_areas_of_a_straight_line_are_the_integrals():
    """Gains 1 - u at the share u: TOC is (1 - u) / 2, its mean 1/4 and its mean weighted by u 1/12."""
    n = 20_000
    gains = 1 - (np.arange(n) + 0.5) / n
    ranking = rank_average_treatment_effect(gains, against_nothing(gains), held_out=True, n_bootstrap=2)
    assert ranking.estimate.value == pytest.approx(0.25, abs=1e-4)
    qini = rank_average_treatment_effect(gains, against_nothing(gains), target="QINI")
    assert qini.estimate.value == pytest.approx(1 / 12, abs=1e-4)
    np.testing.assert_allclose(ranking.toc["value"], (1 - ranking.toc["share"]) / 2, atol=1e-12)


# --- half-samples ---


@pytest.mark.parametrize("n_units", [6, 7])
def test_half_samples_give_the_standard_error_of_a_mean(rng, n_units):
    """Over all half-samples, by enumeration, the error of a mean is the ordinary one; also for odd numbers."""
    scores = rng.normal(size=n_units)
    halves = HalfSamples.of(n_units, groups=None, sample_weight=None, n_draws=2, seed=0)
    means = [scores[list(chosen)].mean() for chosen in combinations(range(n_units), n_units // 2)]
    spread = np.std(means) / np.std(means, ddof=1)  # all of them are no sample
    expected = mean_estimate(scores).standard_error
    assert halves.standard_error(np.array(means)) * spread == pytest.approx(expected, rel=1e-12)


def test_half_samples_keep_clusters_whole_and_weights(rng):
    groups = rng.permutation(np.repeat(np.arange(9), 4))
    weight = rng.uniform(0.5, 2.0, 36)
    weight[groups == 3] = 0.0
    halves = HalfSamples.of(36, groups=groups, sample_weight=weight, n_draws=50, seed=1)
    assert halves.n_units == 8
    seen = np.zeros(9)
    for drawn_weight, again in zip(halves, halves, strict=True):
        np.testing.assert_array_equal(drawn_weight, again)
        inside = drawn_weight > 0
        np.testing.assert_array_equal(drawn_weight[inside], weight[inside])
        chosen = np.unique(groups[inside])
        assert len(chosen) == 4 and np.isin(groups, chosen).sum() == inside.sum()
        seen[chosen] += 1
    assert seen[3] == 0 and (np.delete(seen, 3) > 10).all()


def test_errors_of_half_samples_and_influences_agree(rng):
    n = 3_000
    x, groups = np.repeat(rng.normal(size=600), 5), np.repeat(np.arange(600), 5)
    scores = against_nothing(x + rng.normal(size=n) + np.repeat(rng.normal(size=600), 5))
    for target in ("AUTOC", "QINI"):
        e = rank_average_treatment_effect(x, scores, target=target, groups=groups, held_out=True).estimate
        sums = np.bincount(groups, weights=e.influence)
        assert e.standard_error == pytest.approx(np.sqrt(sums @ sums) / n, rel=0.12)
        assert (e.n, e.n_clusters) == (n, 600)
        alone = rank_average_treatment_effect(x, scores, target=target, held_out=True).estimate
        assert alone.standard_error < e.standard_error


def test_differences_are_paired(rng):
    n = 1_000
    x = rng.normal(size=n)
    scores = against_nothing(x + 3 * rng.normal(size=n))
    priorities = {"x": x, "almost x": x + 0.01 * rng.normal(size=n), "noise": rng.normal(size=n)}
    ranking = rank_average_treatment_effect(priorities, scores, held_out=True)
    close, far = ranking.difference("x", "almost x"), ranking.difference("x", "noise")
    assert close.standard_error < 0.3 * far.standard_error
    assert far.value == pytest.approx(ranking.estimates["x"].value - ranking.estimates["noise"].value)
    assert far.standard_error == pytest.approx(np.sqrt(far.influence @ far.influence) / n, rel=0.15)
    assert ranking.difference("x", "x").standard_error == 0.0
    assert ranking.difference("noise", "x").value == -far.value
    again = rank_average_treatment_effect(priorities, scores, held_out=True)
    assert again.difference("x", "noise").lower == far.lower, "draws are the same from run to run"
    frame = ranking.to_frame()
    assert list(frame.index) == list(priorities) and set(frame["rows"]) == {"held out"}
    text = str(ranking)
    assert "AUTOC by x" in text and text.count("those put first gain more") == 2 and "not shown" in text


# --- arms, directions, rows ---


def test_arms_and_rules_against_a_baseline(rng):
    rewards = pd.DataFrame(rng.normal(size=(50, 3)), columns=["none", "pill", "talk"])
    priority, own = rng.normal(size=50), rng.choice(["pill", "talk"], size=50)

    def value(**options):
        return rank_average_treatment_effect(priority, rewards, **options).estimate.value

    def by_hand(scores):
        return literal(priority, scores, np.ones(50))[0]

    assert value(treatment="talk") == pytest.approx(by_hand(rewards["talk"] - rewards["none"]))
    assert value(treatment="talk", baseline="pill") == pytest.approx(by_hand(rewards["talk"] - rewards["pill"]))
    ruled = rewards.to_numpy()[np.arange(50), np.where(own == "pill", 1, 2)] - rewards["none"].to_numpy()
    assert value(treatment=own) == pytest.approx(by_hand(ruled))
    assert value(treatment="talk", direction="minimize") == pytest.approx(-value(treatment="talk"))
    with pytest.raises(InputError, match=r"several treatments to put people first for \(pill, talk\); name one"):
        value()


def test_training_rows_are_marked_and_have_no_interval(rng):
    x = rng.normal(size=60)
    ranking = rank_average_treatment_effect(x, against_nothing(x))
    e = ranking.estimate
    assert ranking.rows == "training rows" and set(ranking.toc["rows"]) == {"training rows"}
    assert np.isnan([e.standard_error, e.lower, e.upper]).all() and e.value > 0
    assert ranking.toc[["standard_error", "lower", "upper"]].isna().all().all()
    assert "(training rows: flattered, no interval)" in str(ranking)
    assert np.isnan(ranking.difference("priority", "priority").lower)
    assert np.isfinite(ranking.average_gain.lower), "the same for everybody: nothing was chosen here"
    rule = rank_average_treatment_effect(x, against_nothing(x), treatment=(x > 0).astype(int))
    assert np.isnan(rule.average_gain.lower) and ", by 60 training rows: everybody gains " in str(rule)
    assert str(rule).splitlines()[0].endswith("on average.")
    assert np.isfinite(
        rank_average_treatment_effect(
            x, against_nothing(x), treatment=(x > 0).astype(int), held_out=True
        ).average_gain.lower
    )


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(5)
    n = 400
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    T = rng.choice(["drug", "none"], size=n)
    Y = (T == "drug") * X["u"] + rng.normal(size=n)
    return {"Y": Y, "T": T, "X": X, "propensity": 0.5, "groups": np.repeat(np.arange(200), 2),
            "sample_weight": rng.uniform(0.5, 2.0, n)}  # fmt: skip


@pytest.fixture(scope="module")
def held(study):
    return held_out_rewards(RewardEstimator(LinearRegression(), random_state=0), **study, random_state=0)


def test_held_out_rewards_are_those_of_models_that_saw_only_the_others(study, held):
    rows, others = held.rows, np.setdiff1d(np.arange(400), held.rows)
    assert len(rows) == 200 and not set(study["groups"][rows]) & set(study["groups"][others])
    model = RewardEstimator(LinearRegression(), random_state=0)
    model.fit(study["Y"].iloc[others], study["T"][others], X=study["X"].iloc[others], propensity=0.5,
              groups=study["groups"][others], sample_weight=study["sample_weight"][others])  # fmt: skip
    X = study["X"].iloc[rows]
    np.testing.assert_allclose(held.outcomes, model.predict_outcomes(X=X), rtol=1e-12)
    np.testing.assert_allclose(held.rewards, model.predict_rewards(study["Y"].iloc[rows], study["T"][rows], X=X))
    np.testing.assert_array_equal(held.rewards.index, study["Y"].index[rows])
    tree = DRPolicyTree(LinearRegression(), max_depth=1, direction="minimize", random_state=0)
    leaves = honest_leaf_summary(tree, **study, honest=rows)
    by_tree = held_out_rewards(tree, **study, honest=rows)
    np.testing.assert_array_equal(by_tree.rewards, leaves.rewards)
    assert by_tree.direction == "minimize" and by_tree.estimator.get_depth() == leaves.estimator.get_depth() == 1
    np.testing.assert_allclose(by_tree.predicted_gain("drug", "none"), -held.predicted_gain("drug", "none"))


def test_held_out_rewards_bring_what_is_known_of_them(study, held):
    gain = held.predicted_gain("drug", "none")
    ranking = rank_average_treatment_effect(gain, held, baseline="none")
    by_hand = rank_average_treatment_effect(
        gain, held.rewards, baseline="none", groups=held.groups, sample_weight=held.sample_weight, held_out=True
    )
    assert ranking.held_out and ranking.estimate.n_clusters == 100
    assert (ranking.estimate.lower, ranking.estimate.upper) == (by_hand.estimate.lower, by_hand.estimate.upper)
    assert ranking.estimate.lower > 0, "the drug helps where u is large"
    for name, value in (("groups", held.groups), ("held_out", True), ("direction", "maximize")):
        with pytest.raises(InputError, match=f"{name} comes with these held-out rewards"):
            rank_average_treatment_effect(gain, held, **{name: value})
    with pytest.raises(InputError, match="no treatment 'placebo'; the treatments are drug, none"):
        held.predicted_gain("placebo", "none")


def test_leaves_of_a_tree_are_a_priority(study, held):
    tree = PolicyTree(max_depth=1).fit(study["X"], np.column_stack([study["X"]["u"], np.zeros(400)]))
    values = tree.predict_value(study["X"].iloc[held.rows])
    ranking = rank_average_treatment_effect(values[:, 0] - values[:, 1], held, baseline="none")
    order = Order.of(values[:, 0] - values[:, 1])
    assert len(order.starts) == 2, "two leaves, two values"
    toc = ranking.toc.set_index("share")["value"]
    first = order.rows[: order.starts[1]]
    share = held.sample_weight[first].sum() / held.sample_weight.sum()
    flat = toc[toc.index <= share]
    assert len(flat) > 20 and np.ptp(flat) < 1e-12, "within a leaf nobody is first"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "AUC"}, "target must be 'AUTOC' or 'QINI'"),
        ({"direction": "up"}, "direction must be"),
        ({"level": 95}, "level must lie between 0 and 1"),
        ({"n_bootstrap": 1}, "n_bootstrap must be a whole number of at least 2"),
        ({"n_bootstrap": 2.5}, "n_bootstrap must be a whole number"),
        ({"treatment": 7}, "treatment recommends 7, which has no rewards"),
        ({"held_out": "yes"}, "held_out must be True or False"),
        ({"groups": [1] * 10}, "at least two clusters"),
        ({"priority": [1.0] * 9}, "^priority has 9 rows, but rewards has 10"),
        ({"priority": {"age": [1.0] * 9 + [None]}}, "priority age has 1 missing value.*give every row a priority"),
        ({"priority": ["a"] * 10}, "numbers"),
        ({"priority": {}}, "names no priority"),
        ({"priority": {1: [1.0] * 10, "1": [2.0] * 10}}, "priority names 1 twice"),
        ({"held_out": True, "groups": np.arange(10) // 2}, "Half-samples of 5 clusters .* at least 10"),
    ],
)
def test_bad_input_is_one_sentence(options, message):
    arguments = {"priority": np.arange(10.0), "rewards": against_nothing(np.arange(10.0)), **options}
    with pytest.raises(InputError, match=message) as caught:
        rank_average_treatment_effect(**arguments)
    assert "\n" not in str(caught.value)


def test_names_of_priorities(rng):
    x, scores = rng.normal(size=(20, 2)), against_nothing(rng.normal(size=20))
    ranking = rank_average_treatment_effect(pd.DataFrame(x, columns=["age", "risk"]), scores)
    assert list(ranking.estimates) == ["age", "risk"]
    with pytest.raises(InputError, match=r"several priorities \(age, risk\); take estimates"):
        _ = ranking.estimate
    with pytest.raises(InputError, match="no priority 'weight'; there are age, risk"):
        ranking.difference("age", "weight")


@pytest.mark.parametrize("name", ["targeting.rate", "targeting.qini", "policy_value.sample_split"])
def test_examples_in_docstrings_print_what_they_say(name):
    found = doctest.testmod(importlib.import_module(f"policytree.evaluation.{name}"))
    assert found.attempted > 3 and found.failed == 0


def test_rewards_of_other_populations_are_refused():
    """Shares of people and budgets count everybody; scores of the treated do not."""
    rng = np.random.default_rng(3)
    T = rng.integers(0, 2, 60)
    for estimand in ("treated", "overlap"):
        with pytest.raises(InputError, match="estimand="):
            held_out_rewards(RewardEstimator(estimand=estimand), T + rng.normal(size=60), T, X=rng.normal(size=(60, 2)))


def test_a_treatment_is_not_compared_with_itself():
    rewards = pd.DataFrame(np.random.default_rng(4).normal(size=(50, 3)), columns=["drug", "placebo", "other"])
    priority = np.arange(50.0)
    two = rewards[["drug", "placebo"]]
    named = rank_average_treatment_effect(priority, two, treatment="drug", baseline="placebo", held_out=True)
    alone = rank_average_treatment_effect(priority, two, treatment="drug", held_out=True)
    assert alone.estimate.value == named.estimate.value
    for arguments in ({"treatment": "drug"}, {"treatment": "other", "baseline": "other"}):
        with pytest.raises(InputError, match="both"):
            rank_average_treatment_effect(priority, rewards, held_out=True, **arguments)
