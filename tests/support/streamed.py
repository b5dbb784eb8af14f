"""Shared code of tests of jobs that write into folders: rewards as tables, stopped jobs, a model of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from policytree import Study
from policytree.encoded import encoding, reward_job
from policytree.study import Label, Rewards
from policytree.weighting.time_to_event.product_limit import product_limit


def parts(scores) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows that learn, and those held out."""
    return tuple(
        pd.concat([pd.read_parquet(f) for f in files]) for files in (scores.learning_files, scores.held_out_files)
    )


class Stopped(Exception):
    """The job was stopped."""


def stop_after(files: int, make: Callable[[], Any], monkeypatch) -> None:
    """Begin a job, of codes or of rewards, and stop it once it has written so many files."""
    with monkeypatch.context() as patch:
        for job, name in ((encoding._Job, "_write_file"), (reward_job.RewardJob, "_write")):
            patch.setattr(job, name, _stopped(getattr(job, name), files))
        with pytest.raises(Stopped):
            make()


def _stopped(write: Callable[..., Any], files: int) -> Callable[..., Any]:
    done = iter(range(100))

    def stop(*arguments):
        if next(done) >= files:
            raise Stopped
        return write(*arguments)

    return stop


class Curves:
    """A survival model of one's own: the curve of Kaplan and Meier."""

    def fit(self, X, time, event):
        self.curve_ = product_limit(time, event)
        return self

    def predict_survival(self, X, times):
        return np.tile(self.curve_.at(times), (len(X), 1))


def to_learn(rows, X, *, rewards=None, y=None, weights=None) -> Study:
    """A study of rewards, or of the labels ``y``."""
    outcome = Label(y) if rewards is None else Rewards(rewards)
    return Study(rows, outcome=outcome, covariates=X, weights=weights)
