"""Rewards from batches are those of RewardEstimator, whatever the batches, and jobs go on after they were stopped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from policytree import PolicyTree, RewardEstimator, Study
from policytree.encoded import encode, reward_job, stream_rewards
from policytree.encoded.draws import SAMPLE, Smallest, folds_of, held_out_of, random_bits
from policytree.exceptions import InputError, OverlapWarning
from policytree.study import Label, Offered, Population, Rewards
from policytree.study.outcomes import Outcome
from tests.support.streamed import parts, stop_after

pa = pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(reward_job, "FILE_ROWS", 64)


@pytest.fixture
def rows(rng):
    """300 rows of three arms, with gaps, text, weights and clusters."""
    n = 300
    frame = pd.DataFrame({"x": rng.normal(size=n), "town": rng.choice(["Bonn", "Oslo", None], n)})
    frame["z"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    frame["arm"] = rng.choice(["a", "b", "c"], n)
    frame["y"] = frame.x * (frame.arm == "a") + rng.normal(size=n)
    return frame.assign(w=rng.uniform(0.5, 2.0, n), person=rng.integers(0, 60, n), p=0.3 + 0.1 * (frame.x > 0))


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=8), max_size=12), st.integers(1, 10))
def test_samples_are_the_smallest_numbers_however_they_come(batches, most):
    sample = Smallest(most)
    for batch in batches:
        sample.add("a", np.array(batch, dtype=np.uint64))
    every = sorted(number for batch in batches for number in batch)
    inside = [number for number in every if number <= int(sample.threshold("a"))]
    assert inside[:most] == every[:most] and set(inside[most:]) <= set(every[most - 1 : most])


def test_draws_are_even_and_independent():
    keys = np.arange(90_000, dtype=np.uint64)
    fold, out = folds_of(keys, 5, 3), held_out_of(keys, 5, 0.2)
    bits = random_bits(keys, 5, SAMPLE) >> np.uint64(63)
    for counts in (np.bincount(fold), np.bincount(fold[out]) * 5, np.bincount(bits) * 2 / 3):
        np.testing.assert_allclose(counts, 30_000, rtol=0.04)  # four standard errors at most
    assert np.mean(fold == folds_of(keys, 6, 3)) == pytest.approx(1 / 3, abs=0.01)


LEARNERS = {
    "sample": (LinearRegression(), LogisticRegression()),
    "boosting": (HistGradientBoostingRegressor(max_iter=5), LogisticRegression()),
}


@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")
@pytest.mark.parametrize("learners", LEARNERS)
@pytest.mark.parametrize(("weights", "groups"), [(None, None), ("w", "person")])
def test_rewards_are_those_in_memory(rows, tmp_path, learners, weights, groups):
    regression, propensity = LEARNERS[learners]
    settings = {"model_regression": regression, "model_propensity": propensity, "min_propensity": 0.2}
    scores = stream_rewards(
        RewardEstimator(**settings, cv=3, random_state=0),
        Study(
            rows,
            covariates=["x", "town"],
            confounders=["z"],
            outcome="y",
            treatment="arm",
            weights=weights,
            cluster=groups,
        ),
        held_out=0.3,
        directory=tmp_path / "s",
    )
    assert scores.rewards == ["a", "b", "c"] and scores.n_learning + scores.n_held_out == 300
    learning, held_out = parts(scores)
    # the files keep the order of the source, so that rows are found again by their x
    memory = rows.set_index("x").loc[learning.x].reset_index()
    other = rows.set_index("x").loc[held_out.x].reset_index()
    assert not {*memory.x} & {*other.x} and (held_out.fold == -1).all()
    if groups:
        assert learning.groupby("person").fold.nunique().max() == 1
        assert not {*memory.person} & {*other.person}
    fitted = RewardEstimator(**settings, cv=learning.fold.to_numpy()).fit(
        memory.y, memory["arm"], X=memory[["x", "town"]], W=memory[["z"]],
        sample_weight=None if weights is None else memory[weights],
        groups=None if groups is None else memory[groups],
    )  # fmt: skip
    expected = fitted.predict_rewards(other.y, other["arm"], X=other[["x", "town"]], W=other[["z"]])
    names = ["a", "b", "c"]
    np.testing.assert_allclose(learning[names], fitted.rewards_[names], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(held_out[names], expected[names], rtol=1e-9, atol=1e-10)
    assert scores.n_clipped >= fitted.n_clipped_ > 0


def test_models_are_fitted_where_the_executor_says(rows, tmp_path):
    def scored(executor, **more) -> pd.DataFrame:
        learner = make_pipeline(StandardScaler(), SGDRegressor(random_state=0))
        estimator = RewardEstimator(learner, LogisticRegression(), cv=2, random_state=3, executor=executor)
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        return parts(
            stream_rewards(
                estimator, Study(rows, covariates=["x"], outcome="y", treatment="arm"), directory=folder, **more
            )
        )[0]

    with ThreadPoolExecutor(2) as pool:
        pd.testing.assert_frame_equal(scored(pool), scored(None, n_jobs=2))
    with pytest.raises(InputError, match="executor must have a method submit"):
        scored("threads")


@pytest.mark.parametrize("size", [1, 50, 1000])
def test_no_score_depends_on_batches(rows, tmp_path, monkeypatch, size):
    def scored(file_rows: int) -> list[pd.DataFrame]:
        monkeypatch.setattr(reward_job, "FILE_ROWS", file_rows)
        estimator = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=3)
        scores = stream_rewards(
            estimator,
            Study(rows, covariates=["x", "town"], outcome="y", treatment="arm", cluster="person"),
            fit_rows=60,
            directory=tmp_path / f"{file_rows}",
        )
        return [part.reset_index(drop=True) for part in parts(scores)]

    for found, expected in zip(scored(size), scored(64), strict=True):
        pd.testing.assert_frame_equal(found, expected, rtol=1e-9)


def test_a_sample_is_random_and_of_the_size_asked_for(rows, tmp_path):
    sizes = []

    class Counted(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            sizes.append(len(y))
            return super().fit(X, y, sample_weight)

    chances = dict.fromkeys("abc", 1 / 3)
    study = Study(rows, treatment="arm", outcome="y", covariates=["x"], propensity=chances)
    stream_rewards(RewardEstimator(Counted(), cv=2, random_state=0), study, fit_rows=20, directory=tmp_path / "s")
    assert sizes == [20] * 6


def test_learners_that_stream_see_every_row_once(rows, tmp_path):
    seen = []

    class Spy(SGDRegressor):
        def partial_fit(self, X, y, sample_weight=None):
            seen.extend(y)
            return super().partial_fit(X, y, sample_weight)

    estimator = RewardEstimator(
        make_pipeline(StandardScaler(), Spy(random_state=0)), GaussianNB(), cv=3, random_state=0
    )
    scores = stream_rewards(
        estimator,
        Study(rows, covariates=["x", "town"], confounders=["z"], outcome="y", treatment="arm", weights="w"),
        fit_rows=30,
        directory=tmp_path / "s",
    )
    learning, _ = parts(scores)
    learnt = rows.set_index("x").loc[learning.x]
    assert sorted(seen) == sorted([*learnt.y] * 2)  # once by each of the two models that may see it
    rewards = learning[scores.rewards].to_numpy()
    assert np.isfinite(rewards).all()


def test_gaussian_bayes_in_batches_is_that_of_all_rows(rows, tmp_path):
    """Its sums add up, so that batches change nothing."""
    rows = rows.assign(arm=np.where(rows.x + rows.y > 0, "a", "b"))
    estimator = RewardEstimator(LinearRegression(), GaussianNB(), cv=2, random_state=0, min_propensity=0.05)
    study = Study(rows, treatment="arm", outcome="y", covariates=["x"])
    with pytest.warns(UserWarning, match="estimated propensity"):
        scores = stream_rewards(estimator, study, held_out=0.0, directory=tmp_path / "s", fit_rows=100_000)
    learning = pd.concat([pd.read_parquet(f) for f in scores.learning_files])
    assert scores.held_out_files == [] and len(learning) == 300
    with pytest.warns(UserWarning, match="estimated propensity"):
        fitted = RewardEstimator(
            LinearRegression(), GaussianNB(), cv=learning.fold.to_numpy(), min_propensity=0.05
        ).fit(rows.y, rows["arm"], X=rows[["x"]])
    np.testing.assert_allclose(learning[["a", "b"]], fitted.rewards_, rtol=1e-6, atol=1e-8)
    assert scores.n_clipped == fitted.n_clipped_


def test_outcomes_of_zero_and_one_take_classifiers(rows, tmp_path):
    rows = rows.assign(y=(rows.y > 0).astype(int))
    sgd = SGDClassifier(loss="log_loss", random_state=0)
    for name, learner in (("auto", "auto"), ("stream", make_pipeline(StandardScaler(), sgd))):
        scores = stream_rewards(
            RewardEstimator(learner, cv=2, random_state=0),
            Study(
                rows, covariates=["x", "town"], outcome="y", treatment="arm", propensity={"a": 0.3, "b": 0.3, "c": 0.4}
            ),
            directory=tmp_path / name,
        )
        learning, _ = parts(scores)
        for k, arm in enumerate(scores.rewards):
            others = learning[learning["arm"] != arm].iloc[:, -3 + k]
            assert others.between(0, 1).all(), "an outcome model's probabilities"


@pytest.mark.parametrize("form", ["number", "column", "columns", "mapping"])
def test_known_propensities(rows, tmp_path, form):
    rows = rows.assign(arm=np.where(rows["arm"] == "a", "a", "b"), q=1 - rows.p)
    given = {"number": 0.5, "column": "p", "columns": {"a": "q", "b": "p"}, "mapping": {"a": 0.6, "b": 0.4}}[form]
    estimator = RewardEstimator(method="ipw", cv=2, random_state=0)
    scores = stream_rewards(
        estimator,
        Study(rows, covariates=["x"], outcome="y", treatment="arm", propensity=given),
        directory=tmp_path / "s",
        held_out=0.0,
    )
    learning = pd.concat([pd.read_parquet(f) for f in scores.learning_files])
    of_b = rows.p if form.startswith("column") else {"number": 0.5, "mapping": 0.4}[form]
    assert scores.n_clipped == 0
    np.testing.assert_allclose(learning.b, np.where(rows["arm"] == "b", rows.y / of_b, 0.0))
    np.testing.assert_allclose(learning.a, np.where(rows["arm"] == "a", rows.y / (1 - of_b), 0.0))


@pytest.mark.parametrize("method", ["dr", "ipw", "regression"])
@pytest.mark.parametrize("size", [50, 1000])
def test_chances_of_every_row_are_those_in_memory(rows, tmp_path, monkeypatch, method, size):
    """Three treatments with a column each, rows held out among them; a method that divides by none leaves them out."""
    monkeypatch.setattr(reward_job, "FILE_ROWS", size)
    given = {"a": "of_a", "b": "of_b", "c": "of_c"}
    drawn = np.random.default_rng(7).dirichlet([4.0, 4.0, 4.0], len(rows)) * 0.7 + 0.1  # every row has its own
    rows[list(given.values())] = drawn
    settings = {"model_regression": LinearRegression(), "method": method}
    study = Study(rows, treatment="arm", outcome="y", covariates=["x", "town"], weights="w", propensity=given)
    scores = stream_rewards(
        RewardEstimator(**settings, cv=2, random_state=0), study, held_out=0.3, directory=tmp_path / "s"
    )
    assert scores.n_clipped == 0
    learning, held_out = parts(scores)
    assert len(held_out) and not {*given.values()} & {*learning}, "chances are no covariates"
    learns = rows["x"].isin(learning["x"]).to_numpy()
    assert learning["x"].tolist() == rows["x"][learns].tolist(), "files keep the order of the source"
    estimator = RewardEstimator(**settings, cv=learning["fold"].to_numpy()).fit(study[learns])
    other = study[~learns]
    known = {} if method == "regression" else {"propensity": rows.loc[~learns, list(given.values())].to_numpy()}
    expected = estimator.predict_rewards(other.Y, other.T, X=other.X, **known)
    np.testing.assert_allclose(learning[[*given]], estimator.rewards_[[*given]], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(held_out[[*given]], expected[[*given]], rtol=1e-9, atol=1e-10)


def test_chances_that_are_none_are_named_where_they_stand(rows, tmp_path):
    rows = rows.assign(p=0.3, q=0.5)
    rows.loc[200, "q"] = 0.6  # in the fourth file of rewards
    rows.to_parquet(tmp_path / "rows.parquet")
    known = {"a": "p", "b": "q", "c": 0.2}
    study = Study(tmp_path / "rows.parquet", treatment="arm", outcome="y", covariates=["x"], propensity=known)
    with pytest.raises(InputError, match=r"The propensities of row 200 sum to 1\.1, not to 1;"):
        stream_rewards(RewardEstimator(method="ipw", cv=2, random_state=0), study, directory=tmp_path / "s")


def test_small_known_propensities_are_used_and_told(rows, tmp_path):
    rows = rows.assign(arm=np.where(rows["arm"] == "a", "a", "b"))
    with pytest.warns(
        OverlapWarning, match="given propensity of treatment b is below min_propensity=0.2 in 300 of 300"
    ):
        scores = stream_rewards(
            RewardEstimator(method="ipw", cv=2, min_propensity=0.2),
            Study(rows, covariates=["x"], outcome="y", treatment="arm", propensity={"a": 0.9, "b": 0.1}),
            directory=tmp_path / "s",
        )
    assert scores.n_clipped == 0


def test_one_number_other_than_a_half_needs_a_label_as_in_memory(rows, tmp_path):
    rows = rows.assign(arm=np.where(rows["arm"] == "a", "a", "b"))
    with pytest.raises(
        InputError, match=r"propensity=0.4 may be .* a=0.4,b=0.6 or b=0.4,a=0.6.*shares are a 0\.\d+, b"
    ):
        stream_rewards(
            RewardEstimator(method="ipw", cv=2),
            Study(rows, covariates=["x"], outcome="y", treatment="arm", propensity=0.4),
            directory=tmp_path / "s",
        )


def test_from_files_to_a_tree_and_its_held_out_value(rng, tmp_path):
    n = 3000
    frame = pd.DataFrame({"x": rng.integers(0, 10, n), "t": rng.integers(0, 2, n)})
    frame["y"] = np.where(frame.t == 1, np.where(frame.x > 4, 1.0, -1.0), 0.0) + rng.normal(size=n)
    (tmp_path / "files").mkdir()
    for k in range(3):
        frame.iloc[k::3].to_parquet(tmp_path / "files" / f"{k}.parquet")
    scores = stream_rewards(
        RewardEstimator(cv=3, random_state=0),
        Study(tmp_path / "files", covariates=["x"], outcome="y", treatment="t"),
        directory=tmp_path / "scores",
        held_out=0.4,
        n_jobs=2,
    )
    assert scores.treatments == [0, 1] and scores.rewards == ["0", "1"]
    data = encode(scores.learning, directory=tmp_path / "codes")
    tree = PolicyTree(max_depth=1).fit(data)
    assert tree.tree_.threshold[0] == 4.5
    value = tree.streamed_values(scores.held_out).set_index(["rule", "less"])
    assert value.loc[("policy", ""), "n"] == scores.n_held_out
    assert value.loc[("policy", ""), "lower"] < 0.5 < value.loc[("policy", ""), "upper"]


@pytest.mark.parametrize("after", [0, 2])
def test_a_stopped_job_goes_on_where_it_was(rows, tmp_path, monkeypatch, after):
    rows.to_parquet(tmp_path / "rows.parquet")

    def score(folder: str):
        estimator = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=5)
        return stream_rewards(
            estimator,
            Study(tmp_path / "rows.parquet", covariates=["x", "town"], outcome="y", treatment="arm"),
            directory=tmp_path / folder,
        )

    whole = score("whole")
    stop_after(after, lambda: score("s"), monkeypatch)
    done = {f: f.stat().st_mtime_ns for f in (tmp_path / "s").glob("learning-*")}
    assert len(done) == after
    assert not [f for f in (tmp_path / "s").iterdir() if f.suffix not in (".parquet", ".json")]
    scores = score("s")
    assert done.items() <= {f: f.stat().st_mtime_ns for f in (tmp_path / "s").glob("learning-*")}.items()
    assert sorted(f.name.split("-")[0] for f in (tmp_path / "s").iterdir()).count("notes") == 0
    assert score("s") == scores, "a job that is done is not done again"
    for found, expected in zip(parts(scores), parts(whole), strict=True):
        pd.testing.assert_frame_equal(found, expected)


def test_a_full_disk_leaves_nothing_half_written(rows, tmp_path, monkeypatch):
    import errno
    import os

    rows.to_parquet(tmp_path / "rows.parquet")
    calls = iter(range(1000))
    fsync = os.fsync

    def full(descriptor):
        if next(calls) >= 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    study = Study(tmp_path / "rows.parquet", treatment="arm", outcome="y", covariates=["x"])
    estimator = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left on device"):
            stream_rewards(estimator, study, directory=tmp_path / "s")
    for file in (tmp_path / "s").iterdir():
        assert not file.name.startswith("."), "a half-written file"
        if file.suffix == ".parquet":
            pd.read_parquet(file)
    assert stream_rewards(estimator, study, directory=tmp_path / "s").n_learning > 0


def test_what_cannot_be_scored_is_refused(rows, tmp_path):
    for change, match in [
        ({"estimator": LinearRegression()}, "must be a RewardEstimator"),
        ({"estimator": RewardEstimator(cv=[0, 1])}, "number of folds"),
        ({"estimator": RewardEstimator(n_repeats=2)}, "cross-fitted once"),
        ({"estimator": RewardEstimator(estimand="overlap")}, "about all rows"),
        ({"estimator": RewardEstimator(method="ipw_normalized")}, "row by row"),
        ({"estimator": RewardEstimator(method="matching")}, "row by row"),
        ({"estimator": RewardEstimator(method="magic")}, "method must be 'dr', 'dr_normalized'"),
        ({"estimator": RewardEstimator(cv=2, min_propensity=0.4)}, "min_propensity must lie"),
        ({"covariates": None}, r"name them: covariates=\[...\]. Columns without another role are x, town, z, w,"),
        ({"covariates": ["x", "y"]}, "'y', which is the outcome"),
        ({"covariates": ["nose"]}, "There is no column 'nose'"),
        ({"outcome": "town"}, "must hold numbers"),
        ({"held_out": 1.0}, r"held_out must lie in \[0, 1\)"),
        ({"fit_rows": 0}, "fit_rows"),
        ({"fit_rows": 1}, r"\(1 rows\) holds one treatment only; raise fit_rows"),
        ({"propensity": 0.5}, "3 treatments"),
        ({"control": "nobody"}, "control='nobody' is not among the treatments; they are a, b, c"),
        ({"table": rows.assign(y=np.nan)}, "'y' of outcome is missing or infinite in row 0"),
        ({"table": rows.assign(arm=pd.Series([None] + ["a"] * 299))}, "no value in row 0"),
        ({"table": rows.assign(arm="a")}, "holds a only"),
        ({"table": rows.assign(person=np.nan), "cluster": "person"}, "no value in row 0"),
        ({"table": rows.assign(person=1), "cluster": "person", "held_out": 0.0}, "fall into one fold"),
        ({"table": rows.iloc[:0]}, "no rows"),
        ({"table": rows.assign(a=1.0), "covariates": ["a"]}, "called 'a'"),
        ({"table": rows.assign(w=0.0), "weights": "w"}, "zero in all rows"),
    ]:
        ask = {"estimator": RewardEstimator(cv=2), "table": rows} | change
        ask.pop("table").to_parquet(tmp_path / "rows.parquet")
        estimator, settings = ask.pop("estimator"), {k: ask.pop(k) for k in ("held_out", "fit_rows") if k in ask}
        roles = {"treatment": "arm", "outcome": "y", "covariates": ["x"]} | ask
        with pytest.raises(InputError, match=match):
            stream_rewards(
                estimator, Study(tmp_path / "rows.parquet", **roles), directory=tmp_path / "s", **settings,
                overwrite=True,
            )  # fmt: skip


@dataclass(frozen=True)
class Change(Outcome):
    """A kind of one's own, of which nobody said that it can be read in parts."""

    column: str
    since: str

    def columns(self):
        return {"outcome": self.column, "baseline": self.since}

    def arguments(self, table):
        return {"Y": (table[self.column] - table[self.since]).rename(self.column)}


class ChangeInParts(Change):
    """The same, read in parts."""

    def arguments_of_part(self, table):
        return self.arguments(table)


def test_a_kind_of_ones_own_is_scored_in_batches_once_it_can_be_read_in_parts(rows, tmp_path):
    rows = rows.assign(before=rows.x.round(1), change=rows.y - rows.x.round(1))
    found = []
    for name, outcome in (("own", ChangeInParts("y", "before")), ("number", "change")):
        study = Study(rows, covariates=["x", "town"], outcome=outcome, treatment="arm")
        estimator = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=3)
        scores = stream_rewards(estimator, study, directory=tmp_path / name)
        found.append(np.concatenate([part[scores.rewards].to_numpy() for part in parts(scores)]))
    assert found[0].shape == (300, 3)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("where", ["memory", "files"])
@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (
            {"treatment": Offered("took", by="offer")},
            "know no Offered; pass the offers as treatment, or",
        ),
        ({"treatment": ["took", "offer"]}, "know no Combined; write combinations of the treatments into one column"),
        ({"outcome": Rewards(["y", "z0"])}, "know no Rewards; they are scored already: pass the study to encode"),
        ({"outcome": Label("town0")}, "know no Label; labels need no scores: pass the study to encode"),
        ({"outcome": Change("y", "z0")}, r"know no Change; score the rows in memory: .*study.in_memory\(\)"),
        (
            {"population": Population(pd.DataFrame({"x": [0.0, 1.0]}))},
            "do not read population of a study; leave it",
        ),
        ({"strata": ["took"]}, "do not read strata of a study; folds are drawn by row or by cluster"),
        ({"arm_costs": {"a": 1.0}}, "do not read arm_costs of a study; subtract costs from outcomes"),
        ({"budget_costs": {"a": 1.0}}, "do not read budget_costs of a study"),
        ({"further_outcomes": {"z0": "minimize"}}, "do not read further_outcomes of a study; score each in a study"),
        ({"subgroups": ["took"]}, "do not read subgroups of a study"),
    ],
)
def test_kinds_that_batches_do_not_know_are_named_with_a_remedy(rows, tmp_path, where, roles, words):
    rows = rows.assign(z0=1.0, town0=rows.town.fillna("Bonn"), offer=np.where(rows.x > 0, "yes", "no"))
    rows["took"] = np.where(np.arange(300) % 3 > 0, rows.offer, "no")
    if where == "files":
        rows.to_parquet(tmp_path / "rows.parquet")
        rows = tmp_path / "rows.parquet"
    study = Study(rows, **{"treatment": "arm", "outcome": "y", "covariates": ["x"]} | roles)
    with pytest.raises(InputError, match=words):
        stream_rewards(RewardEstimator(cv=2), study, directory=tmp_path / "s")
