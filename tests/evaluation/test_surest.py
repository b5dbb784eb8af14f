"""The surest rule: its bound by hand, candidates and baselines; small dirty data; whether the bound holds."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from scipy.stats import t as student_t
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, policy_value
from policytree.evaluation import near_ties, surest_rule
from policytree.evaluation.inference.simultaneous import critical_values, upper_critical_values
from policytree.exceptions import InputError
from policytree.serialization import from_json
from policytree.weighting.study_data import by_columns
from tests.support.simulations import benchmark_script


def study(n=400, seed=0, effect=1.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "town": rng.choice(["Rome", "Oslo", "Bern"], n)})
    T = rng.permutation(np.arange(n) % 2)
    gain = effect * np.where(X["age"] > 50, 1.0, -1.0)
    return {"Y": gain * T + rng.normal(size=n), "T": np.array(["none", "drug"])[T], "X": X, "propensity": 0.5}


def model(**options):
    chosen = {"max_depth": 2, "min_samples_leaf": 20, "model_regression": LinearRegression(), "cv": 2} | options
    return DRPolicyTree(random_state=0, **chosen)


@pytest.fixture(scope="module")
def found():
    return surest_rule(model(), **study(), epsilon=0.1, random_state=0)


def test_gains_are_those_of_the_judging_rows(found):
    data = study()
    policy = found.predict(data["X"].iloc[found.rows])
    by_hand = [policy_value(policy, found.rewards, baseline=arm) for arm in ("drug", "none")]
    least = min(by_hand, key=lambda each: each.value)
    assert found.surest.gain == pytest.approx(least.value)
    assert found.surest.standard_error == pytest.approx(least.standard_error)
    ends = [each.value - found.critical_value * each.standard_error for each in by_hand]
    # Each baseline has its own critical value, and the larger one is told.
    assert found.surest.lower == pytest.approx(min(ends), abs=0.05 * least.standard_error)
    assert found.shown and found.surest.lower > 0
    assert len(found.rewards) == found.n == 200


def test_the_largest_bound_is_chosen_among_near_ties_and_single_treatments(found):
    frame = found.candidates
    assert frame["lower"].is_monotonic_decreasing
    assert found.surest.name == frame.index[0] and found.largest.name == "tree 0"
    assert {"always drug", "always none", "tree 0"} <= set(frame.index) and len(frame) <= 52
    assert frame.loc["tree 0", "differs"] == 0 and frame.loc["always drug", "n_leaves"] == 1
    assert frame.loc["always drug", "differs"] == pytest.approx(1 - frame.loc["always none", "differs"])
    learning = np.setdiff1d(np.arange(400), found.rows)
    ties = near_ties(found.estimator, study()["X"].iloc[learning], T=study()["T"][learning], epsilon=0.1)
    assert found.n_near_ties == ties.n_trees
    number = int(found.surest.name.removeprefix("tree "))
    assert found.tree.threshold == pytest.approx(ties.trees[number].threshold, nan_ok=True)


def test_more_candidates_never_raise_the_bound_of_one(found):
    few = surest_rule(model(), **study(), epsilon=0.1, random_state=0, n_candidates=1)
    assert set(few.candidates.index) == {"tree 0", "always drug", "always none"}
    assert few.critical_value < found.critical_value
    assert few.largest.lower > found.largest.lower and few.largest.gain == found.largest.gain


def test_a_control_has_the_bound_zero():
    found = by_columns(surest_rule, model(), control="none", random_state=0, **study(effect=0.0))
    frame = found.candidates
    assert frame.loc["always none", ["gain", "lower"]].tolist() == [0.0, 0.0]
    assert np.isnan(frame.loc["always none", "standard_error"])
    assert found.surest.name == "always none" and not found.shown
    assert "No rule is shown to gain over always none" in str(found)
    assert found.predict(study()["X"]).tolist() == ["none"] * 400


def test_minimising_the_negative_outcome_is_the_same(found):
    data = study()
    turned = surest_rule(model(direction="minimize"), **(data | {"Y": -data["Y"]}), epsilon=0.1, random_state=0)
    assert turned.surest.name == found.surest.name
    assert turned.surest.lower == pytest.approx(found.surest.lower)
    assert turned.surest.gain == pytest.approx(found.surest.gain)


def test_costs_count():
    dear = by_columns(
        surest_rule, model(), sample_treatment_costs={"drug": 3.0, "none": 0.0}, random_state=0, **study()
    )
    assert dear.surest.name == dear.largest.name == "always none" and not dear.shown
    assert sorted(dear.candidates.index) == ["always drug", "always none"]


def test_what_is_said_and_saved(found):
    text = found.to_text()
    assert text.startswith("Shown to gain over the best single treatment: tree")
    assert "at most 2.5% of studies" in text and "200 rows that chose none of the rules" in text
    assert found.export_text() in text
    again = from_json(found.to_json())
    assert again.actions == ("drug", "none")
    encoded = found.estimator.policy_tree_.encoder_.encode(study()["X"])
    np.testing.assert_array_equal(again.apply(encoded), found.tree.apply(encoded))
    data = json.loads(json.dumps(found.to_dict()))
    assert data["surest"]["lower"] == found.surest.lower and data["n_candidates"] == len(found.candidates)


def test_a_bound_for_one_is_students_and_for_many_it_is_lower():
    one = upper_critical_values(np.array([[4.0]]), np.array([30]), 0.975)
    assert one[0] == pytest.approx(student_t.ppf(0.975, 30), abs=0.03)
    independent = upper_critical_values(np.eye(10), np.full(10, 10_000), 0.975)
    assert independent[0] == pytest.approx(norm.ppf(0.975 ** (1 / 10)), abs=0.03)
    alike = upper_critical_values(np.ones((10, 10)), np.full(10, 10_000), 0.975)
    assert alike[0] == pytest.approx(norm.ppf(0.975), abs=0.03)
    with_zero = upper_critical_values(np.diag([1.0, 0.0]), np.array([50, 50]), 0.975)
    assert with_zero[1] == 0 and with_zero[0] == pytest.approx(student_t.ppf(0.975, 50), abs=0.03)
    assert upper_critical_values(np.zeros((2, 2)), np.array([5, 5]), 0.9).tolist() == [0, 0]
    both = critical_values(np.eye(10), np.full(10, 10_000), 0.95)
    assert both[0] == pytest.approx(independent[0], abs=0.03)  # two-sided 95 % is nearly two times one-sided 97.5 %


def dirty(n=240):
    """A third arm of a few rows, a rare town, missing ages, persons with several rows, weights of zero."""
    rng = np.random.default_rng(3)
    data = study(n, seed=3)
    data["X"] = data["X"].astype({"age": float, "town": object})
    data["X"].loc[:9, "age"] = np.nan
    data["X"].loc[5, "town"] = "Ur"
    arms = np.where(np.arange(n) % 12 == 0, "both", data["T"])
    weight = rng.uniform(0.5, 2.0, n)
    weight[[17, 60, 61]] = 0.0
    shares = {"both": 1 / 12, "drug": 11 / 24, "none": 11 / 24}
    return data | {"T": arms, "sample_weight": weight, "groups": rng.integers(0, 90, n), "propensity": shares}


@pytest.mark.filterwarnings("ignore::policytree.exceptions.UnseenValueWarning")
def test_small_dirty_data():
    data = dirty()
    found = by_columns(surest_rule, model(min_samples_leaf=10), control="none", random_state=1, **data)
    assert found.n_clusters == len(np.unique(data["groups"][found.rows][data["sample_weight"][found.rows] > 0]))
    learning = np.setdiff1d(np.arange(240), found.rows)
    assert np.intersect1d(data["groups"][found.rows], data["groups"][learning]).size == 0
    policy = found.predict(data["X"].iloc[found.rows])
    rows = {"groups": data["groups"][found.rows], "sample_weight": data["sample_weight"][found.rows]}
    by_hand = policy_value(policy, found.rewards, baseline="none", **rows)
    assert found.surest.gain == pytest.approx(by_hand.value)
    assert np.isfinite(found.candidates["lower"]).all()


def test_bad_input():
    data = study()
    with pytest.raises(InputError, match="surest_rule takes a DRPolicyTree; got PolicyTree"):
        surest_rule(PolicyTree(), **data)
    with pytest.raises(InputError, match="control is 'placebo'; the treatments are drug, none"):
        by_columns(surest_rule, model(), control="placebo", **data)
    with pytest.raises(InputError, match="n_candidates"):
        surest_rule(model(), **data, n_candidates=0)
    with pytest.raises(InputError, match="level"):
        surest_rule(model(), **data, level=1.5)
    with pytest.raises(InputError, match="max_depth is 4"):
        surest_rule(model(max_depth=4), **data)
    with pytest.raises(InputError, match="epsilon and slack both say"):
        surest_rule(model(), **data, epsilon=0.1, slack=0.1)
    with pytest.raises(InputError, match="leave the target out"):
        by_columns(surest_rule, model(), target_X=data["X"].iloc[:30], **data)
    with pytest.raises(InputError, match="honest"):
        surest_rule(model(), **data, honest=1.0)


@pytest.mark.slow
def test_the_bound_holds():
    """40 studies without effects, 20 with; at most 2.5 % of bounds are wrong: the benchmark has 400 of each."""
    with benchmark_script("surest_rule") as benchmark:
        cells = {cell.name: cell for cell in benchmark.cells()}
        for name, runs in (("no effect, n=300, 2 arms", 40), ("effects, n=300, 2 arms", 20)):
            draws = pd.DataFrame([benchmark.one_run(cells[name], draw) for draw in range(1000, 1000 + runs)])
            for over in ("control", "best"):
                wrong = draws[f"lower_{over}"] > draws[f"truth_{over}"] + 1e-12
                assert wrong.sum() <= binom.ppf(0.999, runs, 0.025)
    assert (draws["lower_control"] > 0).sum() >= binom.ppf(0.001, 20, 0.49)  # as in the benchmark
