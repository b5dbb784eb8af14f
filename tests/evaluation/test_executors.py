"""Nuisance models and refits of held-out values on somebody else's workers: the same numbers, failures and refusals."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value
from policytree.exceptions import InputError
from tests.support.dask_cluster import local_client


@pytest.fixture
def trial(rng):
    X = pd.DataFrame({"x": rng.normal(size=240), "z": rng.normal(size=240)})
    T = rng.integers(0, 2, 240)
    return {"Y": T * X.x + rng.normal(size=240), "T": T, "X": X, "propensity": [0.5, 0.5]}


def table(trial: dict, **more) -> pd.DataFrame:
    model = DRPolicyTree(model_regression=LinearRegression(), max_depth=1, random_state=0)
    rest = {key: value for key, value in trial.items() if key not in ("Y", "T")}
    return cross_val_policy_value(
        model, trial["Y"], trial["T"], **rest, n_repeats=2, cv=3, random_state=1, **more
    ).to_frame()


def test_an_executor_gives_the_same_table(trial):
    told = []
    with ThreadPoolExecutor(2) as executor:
        found = table(trial, executor=executor, progress=lambda done, total: told.append((done, total)))
    pd.testing.assert_frame_equal(found, table(trial))
    assert told == [(k, 6) for k in range(1, 7)]


def test_what_is_no_executor_is_refused(trial):
    with pytest.raises(InputError, match="executor must have a method submit"):
        table(trial, executor="threads")


class Stubborn(LinearRegression):
    """Fails once it has been fitted a few times."""

    fits = 0

    def fit(self, *args, **kwargs):
        Stubborn.fits += 1
        if Stubborn.fits > 12:
            raise ArithmeticError("no more")
        return super().fit(*args, **kwargs)


def test_a_failure_on_a_worker_is_raised_here(trial):
    model = DRPolicyTree(model_regression=Stubborn(), max_depth=1, random_state=0)
    with ThreadPoolExecutor(1) as executor, pytest.raises(ArithmeticError, match="no more"):
        cross_val_policy_value(
            model, trial["Y"], trial["T"], X=trial["X"], propensity=[0.5, 0.5], random_state=1, executor=executor
        )


def rewards(trial: dict, executor=None, **more) -> RewardEstimator:
    learners = LinearRegression(), LogisticRegression()
    estimator = RewardEstimator(*learners, cv=3, n_repeats=2, random_state=0, executor=executor)
    return estimator.fit(trial["Y"], trial["T"], X=trial["X"], **more)


class Plain:
    """An executor of no library: runs tasks at once, from what was pickled."""

    def submit(self, task, *args):
        from concurrent.futures import Future

        future = Future()
        future.set_result(pickle.loads(pickle.dumps(task))(*pickle.loads(pickle.dumps(args))))
        return future


@pytest.mark.parametrize("kind", ["threads", "plain"])
def test_rewards_are_those_of_one_process(trial, kind):
    weight = np.linspace(0.5, 2.0, 240)
    expected = rewards(trial, sample_weight=weight, groups=np.arange(240) // 2)
    with ThreadPoolExecutor(2) as pool:
        executor = pool if kind == "threads" else Plain()
        found = rewards(trial, executor, sample_weight=weight, groups=np.arange(240) // 2)
    for name in ("rewards_", "regression_", "propensity_"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name))
    assert len(found.models_regression_) == len(expected.models_regression_) == 6
    new = {"X": trial["X"], "propensity": None}
    pd.testing.assert_frame_equal(
        found.predict_rewards(trial["Y"], trial["T"], **new), expected.predict_rewards(trial["Y"], trial["T"], **new)
    )


class Counted(LinearRegression):
    """Counts how often it is pickled in this process, and with it the data."""

    times = 0

    def __getstate__(self):
        Counted.times += 1
        return super().__getstate__()


@pytest.mark.slow
def test_processes_are_sent_the_data_once(trial):
    expected = rewards(trial).rewards_
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        estimator = RewardEstimator(Counted(), LogisticRegression(), cv=3, n_repeats=2, random_state=0, executor=pool)
        pd.testing.assert_frame_equal(estimator.fit_predict(trial["Y"], trial["T"], X=trial["X"]), expected)
    assert Counted.times == 1


def test_estimators_with_an_executor_are_copied_and_pickled(trial):
    with ThreadPoolExecutor(1) as pool:
        fitted = rewards(trial, pool)
        assert clone(fitted).executor is pool and not hasattr(clone(fitted), "rewards_")
        again = pickle.loads(pickle.dumps(fitted))
    assert again.executor is None
    pd.testing.assert_frame_equal(again.rewards_, fitted.rewards_)
    with pytest.raises(InputError, match="executor must have a method submit"):
        rewards(trial, "threads")


@pytest.mark.slow
def test_dask_workers_are_sent_the_data_once(trial):
    with local_client() as client:
        found = table(trial, executor=client.get_executor())
        scores = rewards(trial, client.get_executor()).rewards_
    pd.testing.assert_frame_equal(scores, rewards(trial).rewards_)
    np.testing.assert_allclose(found.select_dtypes("number"), table(trial).select_dtypes("number"))
