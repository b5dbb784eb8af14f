"""Times to an event and missing outcomes in batches: the rewards of RewardEstimator, whatever the batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from policytree import RewardEstimator, Study
from policytree.encoded import hazards, reward_job, stream_rewards
from policytree.exceptions import InputError
from policytree.study import Event, MayBeMissing, TimeToEvent
from policytree.weighting.study_data import StudyData, by_columns
from tests.support.streamed import Curves, parts, stop_after

pa = pytest.importorskip("pyarrow")
ARMS = ["a", "b", "c"]
CHANCES = dict.fromkeys(ARMS, 1 / 3)
LEARNERS = {"model_regression": LinearRegression(), "model_observation": LogisticRegression()}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(reward_job, "FILE_ROWS", 64)
    monkeypatch.setattr(hazards, "CHUNK", 50)


@pytest.fixture
def rows(rng):
    """300 rows of three arms, one of them rare, with gaps, a rare town, weights, clusters and late entries."""
    n = 300
    frame = pd.DataFrame(
        {"x": rng.normal(size=n), "town": rng.choice(["Bonn", "Oslo", "Ulm", None], n, p=[0.5, 0.4, 0.02, 0.08])}
    )
    frame["z"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    frame["arm"] = rng.choice(ARMS, n, p=[0.5, 0.4, 0.1])
    until, censoring = rng.exponential(size=n) * np.exp(0.3 * frame.x), 2 * rng.exponential(size=n)
    frame["time"], frame["dead"] = np.minimum(until, censoring), (until <= censoring).astype(int)
    frame["cause"] = np.where(frame.dead == 1, rng.choice(["heart", "other"], n), "0").astype(object)
    frame["status"] = np.where(frame.dead == 1, "died", "alive")
    frame["cause_number"] = frame.dead * rng.integers(1, 3, n)
    frame["months"] = np.ceil(frame.time * 6)
    frame["start"] = (frame.time * rng.uniform(0.0, 0.3, n)).clip(upper=0.9)
    frame["y"] = np.where(rng.random(n) < 0.8 - 0.2 * (frame.x > 0), frame.x + rng.normal(size=n), np.nan)
    frame["state"] = np.where(frame.y.isna(), None, np.where(frame.y > 0, "well", "ill"))
    return frame.assign(w=rng.uniform(0.5, 2.0, n), person=rng.integers(0, 80, n))


AREA = TimeToEvent("time", event="dead", horizon=1.0)
KINDS = {
    "area": {"outcome": AREA},
    "default horizon": {"outcome": TimeToEvent("time", event="dead", measure="survival")},
    "weights and clusters": {"outcome": AREA, "weights": "w", "cluster": "person"},
    "discrete time": {"outcome": TimeToEvent("months", event="dead", horizon=6.0)},
    "several causes": {"outcome": TimeToEvent("time", event="cause_number", cause=2, horizon=1.0)},
    "a cause in words": {"outcome": TimeToEvent("time", event="cause", cause="heart", horizon=1.0)},
    "an event in words": {"outcome": TimeToEvent("time", event="status", happened="died", horizon=1.0)},
    "late entries": {"outcome": TimeToEvent("time", event="dead", entry="start", horizon=1.0)},
    "missing": {"outcome": MayBeMissing("y")},
    "missing, with weights": {"outcome": MayBeMissing("y"), "weights": "w", "cluster": "person"},
    "missing events in words": {"outcome": MayBeMissing(Event("state", "well"))},
}
ROLES = {"treatment": "arm", "covariates": ["x", "town"], "propensity": CHANCES}


@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_rewards_are_those_in_memory(rows, tmp_path, kind):
    study = Study(rows, **ROLES, confounders=["z"], **KINDS[kind])
    estimator = RewardEstimator(**LEARNERS, cv=3, random_state=0)
    share = 0.5 if "missing" in kind else 0.4 if kind == "weights and clusters" else 0.25  # enough rows of every arm
    scores = stream_rewards(estimator, study, held_out=share, directory=tmp_path / "s")
    learning, held_out = parts(scores)
    memory, other = (rows.set_index("x").loc[part.x].reset_index() for part in (learning, held_out))

    def columns(frame) -> dict:
        """Of rows that are too few for a study of their own."""
        told = {**KINDS[kind]["outcome"].arguments(frame), "T": frame["arm"], "X": frame[["x", "town"]]}
        return told | {"W": frame[["z"]], "propensity": CHANCES}

    more = {"sample_weight": memory.w, "groups": memory.person} if study.weights else {}
    estimator.set_params(cv=learning.fold.to_numpy())
    fitted = by_columns(estimator.fit, **columns(memory), **more)
    new = {
        role: column for role, column in columns(other).items() if role != "horizon"
    }  # of too few rows to choose one
    expected = by_columns(fitted.predict_rewards, **new)
    np.testing.assert_allclose(learning[ARMS], fitted.rewards_[ARMS], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(held_out[ARMS], expected[ARMS], rtol=1e-8, atol=1e-9)
    assert scores.horizon == fitted.horizon_ and scores.target == fitted.target_
    assert scores.n_raised >= fitted.n_raised_


def test_default_learners_agree_with_those_in_memory(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(reward_job, "FILE_ROWS", 1000)
    n = 3000
    x, T = rng.normal(size=n), rng.integers(2, size=n)
    until = rng.exponential(size=n) * np.exp(0.4 * x * T)
    censoring = rng.exponential(size=n) * np.exp(0.8 * x * T + 0.5)
    frame = pd.DataFrame({"x": x, "t": T, "time": np.minimum(until, censoring), "dead": until <= censoring})
    study = Study(frame, treatment="t", outcome=TimeToEvent("time", event="dead", horizon=1.5), covariates=["x"])
    # Hazards learn from 1,200 rows: some of the sample.
    scores = stream_rewards(
        RewardEstimator(cv=3, random_state=0), study, held_out=0.0, fit_rows=19_200, directory=tmp_path / "s"
    )
    rewards = pd.concat([pd.read_parquet(f) for f in scores.learning_files])[["0", "1"]].to_numpy()
    fitted = RewardEstimator(cv=3, random_state=0).fit(
        StudyData.of(frame.time, frame.t, X=frame[["x"]], event=frame.dead, horizon=1.5)
    )
    off = rewards - fitted.rewards_.to_numpy()
    assert (np.abs(off.mean(axis=0)) < 2 * off.std(axis=0) / np.sqrt(n) + 1e-3).all()
    rates = np.column_stack([np.ones(n), np.exp(-0.4 * x)])
    truth = (1 - np.exp(-1.5 * rates)) / rates
    error = (rewards - truth).std(axis=0) / np.sqrt(n)
    assert (np.abs((rewards - truth).mean(axis=0)) < 3 * error).all()


def test_learners_that_stream_see_completed_outcomes(rows, tmp_path):
    seen = []

    class Spy(SGDRegressor):
        def partial_fit(self, X, y, sample_weight=None):
            seen.extend(y)
            return super().partial_fit(X, y, sample_weight)

    settings = {"model_event": Curves(), "model_censoring": Curves(), "cv": 2, "random_state": 0}
    study = Study(rows, **ROLES | {"covariates": ["x"]}, outcome=AREA)
    learner = make_pipeline(StandardScaler(), Spy(random_state=0))
    stream_rewards(RewardEstimator(learner, **settings), study, held_out=0.0, directory=tmp_path / "s")
    scores = stream_rewards(
        RewardEstimator(LinearRegression(), **settings), study, held_out=0.0, directory=tmp_path / "t"
    )
    folds = pd.concat([pd.read_parquet(f) for f in scores.learning_files]).fold.to_numpy()
    memory = RewardEstimator(LinearRegression(), **{**settings, "cv": folds}).fit(
        StudyData.of(rows.time, rows["arm"], X=rows[["x"]], event=rows.dead, horizon=1.0, propensity=CHANCES)
    )
    np.testing.assert_allclose(sorted(seen), sorted(memory.outcome_), rtol=1e-9, atol=1e-10)


def test_a_stopped_job_goes_on_where_it_was(rows, tmp_path, monkeypatch):
    rows.to_parquet(tmp_path / "rows.parquet")

    def score(folder: str):
        return stream_rewards(
            RewardEstimator(**LEARNERS, cv=2, random_state=5),
            Study(tmp_path / "rows.parquet", **ROLES, **KINDS["default horizon"]),
            directory=tmp_path / folder,
        )

    whole = score("whole")
    stop_after(2, lambda: score("s"), monkeypatch)
    done = {f: f.stat().st_mtime_ns for f in (tmp_path / "s").glob("learning-*")}
    assert len(done) == 2
    scores = score("s")
    assert done.items() <= {f: f.stat().st_mtime_ns for f in (tmp_path / "s").glob("learning-*")}.items()
    for found, expected in zip(parts(scores), parts(whole), strict=True):
        pd.testing.assert_frame_equal(found, expected)
    assert scores.horizon == whole.horizon is not None
    assert score("s") == scores, "a job that is done is not done again"


@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")
def test_hardly_any_missing_outcome_is_no_error(rows, tmp_path):
    y = rows.x + rows.x.index % 3
    y.iloc[[3, 50]] = np.nan
    study = Study(rows.assign(y=y), **ROLES, outcome=MayBeMissing("y"))
    scores = stream_rewards(RewardEstimator(cv=2, random_state=0), study, held_out=0.0, directory=tmp_path / "s")
    rewards = pd.concat([pd.read_parquet(f) for f in scores.learning_files])
    assert np.isfinite(rewards[ARMS]).all(axis=None)
    assert (rewards[ARMS].mean() - y.groupby(rows["arm"]).mean()).abs().max() < 0.6


def test_hazards_learn_from_equally_many_rows_of_every_arm_and_fold(rng):
    arm, fold = (rng.random(20_000) < 0.1).astype(int), rng.integers(3, size=20_000)
    bits = rng.integers(0, 2**63, size=20_000).astype(np.uint64)
    use = hazards.hazard_rows(bits, arm, fold, 2, 3, fit_rows=24 * 2 * 2 * 300)
    assert (np.bincount(2 * fold[use] + arm[use]) == 300).all()
    own = (arm == 0) & (fold == 1)
    assert bits[own & use].max() < bits[own & ~use].min()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"event": "nose"}, "There is no column 'nose'"),
        ({"event": "person"}, "holds 43 different values; it must say whether the event was seen"),
        ({"event": "status"}, "holds alive, died and not 1 and 0; say which value stands for the event"),
        ({"event": "status", "happened": "left"}, "never holds 'left'"),
        ({"event": "cause", "cause": "lung"}, "never holds 'lung'"),
        ({"event": "none"}, "holds nothing but 0, so that every time is censored"),
        ({"horizon": -1.0}, "horizon must be a time greater than 0"),
        ({"horizon": 99.0}, "beyond all follow-up"),
        ({"measure": "median"}, "target must be 'rmst'"),
        ({"measure": "years_lost"}, "name it: cause=1"),
        ({"time": "x"}, "'x', which is the outcome"),
        ({"time": "town2"}, "'town2' of outcome holds text; it must hold numbers"),
        ({"entry": "dead"}, "'dead', which is the"),
        ({"entry": "town2"}, "'town2' of entry holds text"),
        ({"time": "minus"}, "minus has 1 negative times, the first in row 100"),
        ({"entry": "late"}, r"entry \(column 'late'\) is not before time in 1 rows, the first of them row 100"),
        ({"entry": "start", "horizon": 0.01}, "rows enter at or after horizon"),
        ({"event": "gap"}, "is missing in 1 rows"),
    ],
)
def test_one_sentence_for_what_cannot_be_used(rows, tmp_path, changed, words):
    at = np.arange(300) == 100
    rows = rows.assign(
        minus=np.where(at, -1.0, rows.time), late=np.where(at, 9.0, 0.0), gap=np.where(at, np.nan, rows.dead), none=0,
        town2=rows.town,
    )  # fmt: skip
    rows.to_parquet(tmp_path / "rows.parquet")
    asked = {"time": "time", "event": "dead", "horizon": 1.0} | changed
    with pytest.raises(InputError, match=words):
        study = Study(tmp_path / "rows.parquet", **ROLES, outcome=TimeToEvent(**asked))
        stream_rewards(RewardEstimator(**LEARNERS, cv=2), study, directory=tmp_path / "s")


def test_treatments_without_any_outcome_are_refused(rows, tmp_path):
    rows.assign(y=rows.y.where(rows["arm"] != "b")).to_parquet(tmp_path / "rows.parquet")
    study = Study(tmp_path / "rows.parquet", treatment="arm", outcome=MayBeMissing("y"), covariates=["x"])
    with pytest.raises(InputError, match="All outcomes of treatment b are missing"):
        stream_rewards(RewardEstimator(cv=2), study, directory=tmp_path / "s")
    with pytest.raises(InputError, match=r"'y' of outcome is missing .* take outcome=MayBeMissing"):
        stream_rewards(RewardEstimator(cv=2), study.replace(outcome="y"), directory=tmp_path / "s")
