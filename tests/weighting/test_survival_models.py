"""Survival models of the user's own, by the two methods of ``SurvivalModel``: lifelines' as an example."""

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, RewardEstimator, policy_value
from policytree.exceptions import InputError
from policytree.weighting.study_data import StudyData, by_columns
from policytree.weighting.time_to_event.survival_models import SurvivalModel

lifelines = pytest.importorskip("lifelines")
# lifelines 0.30 calls pandas in a way that pandas 4 will refuse.
pytestmark = pytest.mark.filterwarnings("ignore:Starting with pandas version 4.0:DeprecationWarning")


class Cox:
    """lifelines' proportional hazards by the two methods."""

    def __init__(self, penalizer: float = 0.1):
        self.penalizer = penalizer

    def fit(self, X: np.ndarray, time: np.ndarray, event: np.ndarray):
        self.varies_ = X.std(axis=0) > 0.0  # a rare category may be missing from an arm of a fold
        frame = self._named(X).assign(time=time, event=event)
        self.model_ = lifelines.CoxPHFitter(penalizer=self.penalizer).fit(frame, "time", "event")
        return self

    def predict_survival(self, X: np.ndarray, times: np.ndarray) -> np.ndarray:
        return self.model_.predict_survival_function(self._named(X), times=times).T.to_numpy()

    def _named(self, X: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(X[:, self.varies_]).add_prefix("x")


def trial(rng, n, tied=False):
    """Proportional hazards in both arms, and the mean gain of the drug up to time 4 by the formula."""
    X = pd.DataFrame({"severity": rng.normal(size=n), "age": rng.integers(20, 80, n).astype(float)})
    T = rng.choice(["drug", "placebo"], n)
    rates = {arm: np.exp(0.5 * X["severity"] - 0.7 * (arm == "drug")) / 3.0 for arm in ("drug", "placebo")}
    time = rng.exponential(1.0 / np.where(T == "drug", rates["drug"], rates["placebo"]))
    censored = rng.exponential(5.0 * np.exp(-0.4 * X["severity"]))
    Y = np.minimum(time, censored)
    means = {arm: ((1.0 - np.exp(-4.0 * rate)) / rate).mean() for arm, rate in rates.items()}
    return X, T, np.ceil(2.0 * Y) / 2.0 if tied else Y, (time <= censored).astype(int), means["drug"] - means["placebo"]


def test_a_cox_model_takes_the_place_of_either_default(rng):
    model: SurvivalModel = Cox()
    X, T, Y, event, truth = trial(rng, 400)
    asked = {"X": X, "propensity": 0.5, "event": event, "horizon": 4.0}
    for own in ({"model_event": model}, {"model_event": model, "model_censoring": model}):
        gain = policy_value(
            "drug",
            by_columns(RewardEstimator(cv=2, random_state=0, **own).fit_predict, Y=Y, T=T, **asked),
            baseline="placebo",
        )
        assert abs(gain.value - truth) < 3.5 * gain.standard_error
        assert 0.0 < gain.standard_error < 0.3
    assert not hasattr(model, "model_")  # copies are fitted


@pytest.mark.filterwarnings("ignore:Column")  # lifelines' own, of the rare town
def test_a_cox_model_on_a_small_trial_with_tied_times_and_a_rare_arm(rng):
    X, T, Y, event, _ = trial(rng, 180, tied=True)
    T = np.where(np.arange(180) % 12 == 0, "surgery", T)
    X["town"] = np.where(np.arange(180) % 45 == 1, "Oslo", "Rome")
    tree = DRPolicyTree(max_depth=1, rewards=RewardEstimator(cv=3, model_event=Cox(), random_state=0))
    tree.fit(StudyData.of(Y, T, X=X, event=event, horizon=3.0))
    rewards = tree.reward_estimator_.rewards_
    assert list(rewards) == ["drug", "placebo", "surgery"] and np.isfinite(rewards).all(axis=None)
    assert (tree.reward_estimator_.horizon_, tree.reward_estimator_.target_) == (3.0, "rmst")


def test_what_lacks_a_method_is_named(rng):
    X, T, Y, event, _ = trial(rng, 60)
    with pytest.raises(InputError, match=r"CoxPHFitter has no predict_survival"):
        RewardEstimator(model_event=lifelines.CoxPHFitter()).fit(StudyData.of(Y, T, X=X, event=event, horizon=2.0))
    with pytest.raises(InputError, match="write Cox\\(\\) instead of Cox"):
        RewardEstimator(model_censoring=Cox).fit(StudyData.of(Y, T, X=X, event=event, horizon=2.0))
