"""The command line's sentences on hidden confounders: of which estimates, when, and when not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.cli.questions import sensitivity
from policytree.cli.study import study_from_file
from policytree.cli.study_options import StudyOptions
from policytree.evaluation import marginal_sensitivity
from policytree.evaluation.policy_value.verdict import Reason
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds


def studied(folder, frame: pd.DataFrame, **roles):
    """A study, its fitted learner with quick nuisances, and held-out values."""
    frame.to_csv(folder / "study.csv", index=False)
    study, _ = study_from_file(str(folder / "study.csv"), StudyOptions("arm", "y", **roles))
    learner = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0)
    learner.fit(study)
    values = cross_val_policy_value(learner, study, cv=2, n_repeats=2, random_state=0)
    return study, learner, values


def people(effect, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, n), "height": rng.normal(size=n).round(2)})
    frame["arm"] = np.where(rng.random(n) < 1 / (1 + np.exp(-frame["height"])), "pill", "none")
    frame["y"] = effect(frame) * (frame["arm"] == "pill") + frame["height"] + rng.normal(size=n).round(3)
    return frame


@pytest.fixture(scope="module")
def different(tmp_path_factory):
    """Those under 50 gain, the others lose."""
    frame = people(lambda f: np.where(f["age"] < 50, 3.0, -3.0))
    return studied(tmp_path_factory.mktemp("different"), frame)


def test_a_tree_to_use_is_compared_with_the_best_treatment(different):
    study, learner, values = different
    assert values.verdict.use_tree
    marginal, omitted = sensitivity(values, learner, study, level=0.9, seed=0)
    assert isinstance(marginal, MarginalSensitivity) and isinstance(omitted, OmittedVariableBounds)
    best = values.against_best.best
    assert marginal.what == omitted.what == f"policy tree - {best}"
    assert (marginal.level, marginal.rows, omitted.rows) == (0.9, "held out", "held out")
    assert [b.name for b in omitted.benchmarks] == ["height", "age"]  # height decides about treatment and outcome
    for benchmark in omitted.benchmarks:
        assert values.hidden.moved[benchmark.name] == pytest.approx(benchmark.change, abs=0.1)
    fitted = learner.reward_estimator_
    again = marginal_sensitivity(
        values, study.table["y"], study.table["arm"], propensity=fitted.propensity_, regression=fitted.regression_,
        baseline=best.removeprefix("always "), level=0.9, random_state=0,
    )  # fmt: skip
    pd.testing.assert_frame_equal(marginal.to_frame(), again.to_frame())


def test_a_treatment_for_all_is_compared_with_the_next_best_and_has_no_intervals(tmp_path):
    study, learner, values = studied(tmp_path, people(lambda f: 2.0 + 0.0 * f["age"]))
    assert values.verdict.rule == "always pill"
    marginal, omitted = sensitivity(values, learner, study, level=0.95, seed=0)
    assert marginal.what == omitted.what == "always pill - always none"
    assert (marginal.rows, omitted.rows) == ("training rows", "training rows")
    assert omitted.estimate.value == pytest.approx(values.difference("always pill", "always none").value, abs=0.2)
    assert marginal.kinds["sharp"][-1].lower < omitted.estimate.value < marginal.kinds["sharp"][-1].upper


def test_censored_times_are_bounded_by_what_takes_their_place(tmp_path):
    """Benchmarks complete outcomes anew without the covariate: they need to know how times ended."""
    frame, rng = people(lambda f: np.where(f["age"] < 50, 3.0, -3.0), 240), np.random.default_rng(1)
    lasted, lost = np.exp(1.0 + 0.4 * frame["y"]), rng.uniform(2, 30, 240)
    frame["y"], frame["seen"] = np.minimum(lasted, lost).round(3), (lasted <= lost).astype(int)
    study, learner, values = studied(tmp_path, frame, event_column="seen", horizon=5.0)
    assert values.verdict.use_tree and study.covariates == ("age", "height")
    marginal, omitted = sensitivity(values, learner, study, level=0.95, seed=0)
    assert [b.name for b in omitted.benchmarks] == ["height", "age"] and omitted.benchmarks[1].outcome_gain > 0.02
    fitted = learner.reward_estimator_
    again = marginal_sensitivity(
        values, fitted.outcome_, study.table["arm"], propensity=fitted.propensity_, regression=fitted.regression_,
        baseline=values.against_best.best.removeprefix("always "), random_state=0,
    )  # fmt: skip
    pd.testing.assert_frame_equal(marginal.to_frame(), again.to_frame())


def test_nothing_is_said_where_nothing_hidden_can_have_driven_treatment(tmp_path):
    frame = people(lambda f: np.where(f["age"] < 50, 3.0, -3.0))
    study, learner, values = studied(tmp_path, frame, propensity="0.5")
    assert sensitivity(values, learner, study, level=0.95, seed=0) == ()


def test_nothing_is_said_where_the_status_quo_is_best(different):
    study, learner, values = different
    verdict = replace(values.verdict, rule="status quo", reason=Reason.STATUS_QUO_BETTER)
    assert sensitivity(replace(values, verdict=verdict), learner, study, level=0.95, seed=0) == ()
