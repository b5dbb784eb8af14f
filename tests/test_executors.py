"""Refits of held-out values on somebody else's workers: the same table, failures and refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, InputError, cross_val_policy_value


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


@pytest.mark.slow
def test_dask_workers_are_sent_the_data_once(trial):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = table(trial, executor=client.get_executor())
    np.testing.assert_allclose(found.select_dtypes("number"), table(trial).select_dtypes("number"))
