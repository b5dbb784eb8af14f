"""The Pareto path of two outcomes: against all trees there are, its picture, and what it refuses."""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import PolicyTree, policy_value
from policytree.constraints import Budget, Limit, Share
from policytree.evaluation import pareto_path
from policytree.exceptions import InputError, SearchWarning
from policytree.plotting.pareto import ParetoPathDisplay
from tests.support.pareto_oracles import all_vectors, not_covered


@st.composite
def studies(draw, most_rows=11):
    n, n_arms = draw(st.integers(4, most_rows)), draw(st.integers(2, 3))
    X = np.array(draw(st.lists(st.integers(0, 3), min_size=2 * n, max_size=2 * n)), dtype=float).reshape(n, 2)
    rewards, harm = (
        np.array(draw(st.lists(st.integers(-4, 4), min_size=n * n_arms, max_size=n * n_arms))).reshape(n, n_arms)
        for _ in range(2)
    )
    weight = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    return X, rewards, harm, weight


def front_by_hand(X, rewards, harm, weight, depth, *, price=0, most_leaves=None, min_leaf=1):
    """Pairs (harm, objective), both times the weight, of the trees that no other is as good as."""
    sums = np.stack([harm * weight[:, None], -rewards * weight[:, None], np.zeros_like(rewards)])
    vectors = all_vectors(X, sums, depth, leaf=[0, price, 1], min_leaf=min_leaf)
    allowed = [v[:2] for v in vectors if most_leaves is None or v[2] <= most_leaves]
    return sorted((v[0], -v[1]) for v in not_covered(allowed))


def hull_of(pairs):
    """Corners of the upper hull of (harm, objective), by trying every line between two pairs."""
    kept = []
    for x, y in pairs:
        below = any(
            a[0] < x < b[0] and (b[0] - a[0]) * (y - a[1]) <= (b[1] - a[1]) * (x - a[0]) for a in pairs for b in pairs
        )
        if not below:
            kept.append((x, y))
    return kept


@settings(max_examples=80)
@given(studies(), st.integers(0, 2), st.sampled_from([0, 2]), st.sampled_from([None, 2, 3]), st.sampled_from([1, 2]))
def test_all_trees_of_the_front_by_brute_force(study, depth, price, most_leaves, min_leaf):
    X, rewards, harm, weight = study
    total = weight.sum()
    arguments = {"max_leaf_nodes": most_leaves, "min_samples_leaf": min_leaf, "regularization": price / total}
    tree = PolicyTree(max_depth=depth, **arguments)
    path = pareto_path(tree, X, rewards, outcomes={"harm": harm}, sample_weight=weight)
    by_hand = front_by_hand(
        X, rewards, harm, weight, depth, price=price, most_leaves=most_leaves, min_leaf=min_leaf
    )  # fmt: skip
    objectives = [each.objective_value_ for each in path.estimators]
    found = list(zip(path.outcome_means * total, np.multiply(objectives, total), strict=True))
    np.testing.assert_allclose(found, by_hand, atol=1e-9)
    assert path.every
    assert path.proved
    corners = [pair for pair, low in zip(by_hand, path.low, strict=True) if np.isfinite(low)]
    assert corners == hull_of(by_hand)
    for each, mean in zip(path.estimators, path.outcome_means, strict=True):
        chosen = each.predict(X)
        assert np.average(harm[np.arange(len(X)), chosen], weights=weight) == pytest.approx(mean)
        assert each.outcome_means_["harm"] == pytest.approx(mean)
        assert each.price_of_limits_ == pytest.approx(objectives[-1] - each.objective_value_, abs=1e-9)


@settings(max_examples=30)
@given(studies(most_rows=8))
def test_deeper_paths_are_hulls_by_brute_force(study):
    X, rewards, harm, weight = study
    path = pareto_path(PolicyTree(max_depth=3), X, rewards, outcomes={"harm": harm}, sample_weight=weight)
    corners = hull_of(front_by_hand(X, rewards, harm, weight, 3))
    total = weight.sum()
    found = list(zip(path.outcome_means * total, path.values * total, strict=True))
    np.testing.assert_allclose(found, corners, atol=1e-9)
    assert not path.every
    assert path.proved


@settings(max_examples=40)
@given(studies(), st.integers(-3, 3), st.sampled_from([0.0, 0.3, 1.0, 2.7]))
def test_limits_and_weights_choose_what_single_searches_find(study, limit, weight):
    X, rewards, harm, mass = study
    path = pareto_path(PolicyTree(max_depth=2), X, rewards, outcomes={"harm": harm}, sample_weight=mass)
    one = PolicyTree(max_depth=2).fit(X, rewards - weight * harm, sample_weight=mass)
    k = path.weighted(weight)
    assert path.values[k] - weight * path.outcome_means[k] == pytest.approx(one.objective_value_, abs=1e-9)
    limited = PolicyTree(max_depth=2, constraints=[Limit("harm", limit)])
    if path.outcome_means[0] > limit:
        with pytest.raises(InputError, match="change the limit of"):
            path.within(limit)
        return
    limited.fit(X, rewards, sample_weight=mass, outcomes={"harm": harm})
    assert path.values[path.within(limit)] == pytest.approx(limited.objective_value_, abs=1e-9)


def test_directions_turn_the_path():
    """Costs to be minimised, and a good of which more is better: the same trees as with both signs turned."""
    rng = np.random.default_rng(0)
    X, rewards, harm = rng.integers(0, 5, (60, 3)), rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    path = pareto_path(PolicyTree(max_depth=2), X, rewards, outcomes={"harm": harm})
    tree = PolicyTree(max_depth=2, direction="minimize")
    turned = pareto_path(tree, X, -rewards, outcomes={"good": (-harm, "maximize")})
    assert turned.outcome_direction == "maximize"
    np.testing.assert_allclose(turned.outcome_means, -path.outcome_means)
    np.testing.assert_allclose(turned.values, -path.values)
    np.testing.assert_allclose(turned.low, path.low)
    limit = float(np.median(path.outcome_means))
    assert turned.within(-limit) == path.within(limit)
    assert turned.weighted(0.7) == path.weighted(0.7)


def dirty_study(n: int = 200, seed: int = 0):
    """Ages with gaps, a rare town, a rare arm, weights with zeros; the drug helps the young and harms some of them."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n).astype(float)
    X = pd.DataFrame({"age": age, "town": rng.choice(["A", "B", "rare"], n, p=[0.6, 0.38, 0.02])})
    X.loc[::11, "age"] = np.nan
    gain = np.where(age < 50, 1.0, -0.5)
    rewards = pd.DataFrame({"none": 0.0, "drug": gain + rng.normal(size=n), "both": gain / 2 + rng.normal(size=n)})
    harm = pd.DataFrame({"none": 0.05, "drug": np.where(age < 35, 0.4, 0.1), "both": 0.2}, index=X.index)
    weight = rng.choice([0.0, 1.0, 2.5], n, p=[0.05, 0.7, 0.25])
    return X, rewards, harm, weight


def test_held_out_values_of_a_path_of_dirty_data():
    X, rewards, harm, weight = dirty_study()
    path = pareto_path(PolicyTree(max_depth=2), X, rewards, outcomes={"harm": harm}, sample_weight=weight)
    assert len(path) > 10
    assert (np.diff(path.outcome_means) > 0).all()
    assert (np.diff(path.values) > 0).all()
    new, rewards, harm, weight = dirty_study(seed=1)
    found = path.evaluate(new, rewards[["both", "none", "drug"]], outcomes={"harm": harm}, sample_weight=weight)
    k = path.within(0.12)
    estimate = policy_value(path.estimators[k].predict(new), harm, sample_weight=weight)
    assert found.loc[k, ("harm", "value")] == pytest.approx(estimate.value)
    assert found.loc[k, ("harm", "upper")] == pytest.approx(estimate.upper)
    assert (found["rows"] == "held out").all()
    frame = path.to_frame()
    assert list(frame["harm"]) == list(path.outcome_means)
    assert set(frame["rows"]) == {"training rows"}


def test_the_picture_says_the_rules_of_its_points(tmp_path):
    X, rewards, harm, weight = dirty_study()
    path = pareto_path(PolicyTree(max_depth=1), X, rewards, outcomes={"harm": harm}, sample_weight=weight)
    new, other, harmed, mass = dirty_study(seed=1)
    held_out = path.evaluate(new, other, outcomes={"harm": harmed}, sample_weight=mass)
    k = path.within(0.12)
    display = path.plot(held_out, chosen=k, unit="points")
    legend = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert "chosen" in legend
    assert "the chosen tree, held out" in legend
    said = [t.get_text() for axes in display.figure_.axes for t in axes.texts]
    assert any(path.estimators[k].export_text() in text and f"{k + 1} (chosen)" in text for text in said)
    element = ParetoPathDisplay(path, chosen=k).to_html(tmp_path / "path.html")
    titles = [title.text for title in ElementTree.fromstring(element).iter("title")]
    assert titles == [ParetoPathDisplay(path, chosen=k).text(j) for j in range(len(path))]
    assert element in (tmp_path / "path.html").read_text()
    alone = path.plot(held_out, ax=plt.subplots()[1])
    assert len(alone.figure_.axes) == 1
    with pytest.raises(InputError, match="points 1 to"):
        path.plot(trees=[0])
    with pytest.raises(InputError, match="chosen must be a position"):
        ParetoPathDisplay(path, chosen=len(path))
    with pytest.raises(InputError, match="evaluate this path"):
        ParetoPathDisplay(path, held_out.iloc[1:])
    plt.close("all")


REFUSED = {
    "no outcome": ({}, {"outcomes": {}}, "outcomes holds 0"),
    "two outcomes": ({}, {"outcomes": {"a": np.ones((20, 2)), "b": np.ones((20, 2))}}, "outcomes holds 2"),
    "a budget": ({"constraints": [Budget(1.0)]}, {}, "takes no constraints"),
    "a limit": ({"constraints": [Limit("harm", 1.0)]}, {}, "takes no constraints"),
    "shares": ({"constraints": [Share(1, most=0.5)]}, {}, "takes no constraints"),
    "gaps": ({}, {"outcomes": {"harm": np.full((20, 2), np.nan)}}, "missing or infinite reward in row 0"),
    "large leaves": ({"min_samples_leaf": 30}, {}, "min_samples_leaf"),
}


@pytest.mark.parametrize(("arguments", "data", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_path_refuses(arguments, data, message):
    X, rewards = np.arange(20.0)[:, None], np.tile([0.0, 1.0], (20, 1))
    data = {"outcomes": {"harm": rewards}} | data
    with pytest.raises(InputError, match=message):
        pareto_path(PolicyTree(max_depth=1, **arguments), X, rewards, **data)
    path = pareto_path(PolicyTree(max_depth=1), X, rewards, outcomes={"harm": rewards})
    with pytest.raises(InputError, match="weight must be"):
        path.weighted(-1.0)
    with pytest.raises(InputError, match="limit must be"):
        path.within(np.nan)
    with pytest.raises(InputError, match="the path is one of 'harm'"):
        path.evaluate(X, rewards, outcomes={"good": rewards})


def test_a_path_that_ran_out_of_time_says_so():
    rng = np.random.default_rng(0)
    X, rewards, harm = rng.normal(size=(3_000, 12)), rng.normal(size=(3_000, 3)), rng.normal(size=(3_000, 3))
    with pytest.warns(SearchWarning, match="ended without a proof"):
        path = pareto_path(PolicyTree(max_depth=2, time_limit=0.2), X, rewards, outcomes={"harm": harm})
    assert not path.proved
    assert not path.estimators[0].status_.proved
