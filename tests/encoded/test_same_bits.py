"""Codes, rewards, trees and values from batches are to the last bit those that were recorded on 27 November 2026.

Learners add exactly, so that no machine's sums differ: a changed digest is a changed result.
"""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from policytree import OptimalTreeClassifier, PolicyTree, RewardEstimator, Study
from policytree.encoded import (
    encode,
    hazards,
    reward_job,
    solve,
    stream_rewards,
)
from policytree.on_dask import DaskOptimalTreeClassifier, DaskPolicyTree
from policytree.study import Label, MayBeMissing, Rewards, TimeToEvent
from tests.support.streamed import Curves, parts

pytest.importorskip("pyarrow")
ARMS = ["a", "b", "c"]
X = ["x", "town", "many"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(reward_job, "FILE_ROWS", 64)
    monkeypatch.setattr(hazards, "CHUNK", 50)
    monkeypatch.setattr(solve, "FEW_ROWS", 0)


class Mean(RegressorMixin, BaseEstimator):
    """The mean outcome, weighted."""

    def fit(self, X, y, sample_weight=None):
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.mean_ = math.fsum(w * np.asarray(y)) / math.fsum(w)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Share(ClassifierMixin, BaseEstimator):
    """The share of every class, weighted."""

    def fit(self, X, y, sample_weight=None):
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.classes_ = np.unique(y)
        self.share_ = np.array([math.fsum(w[y == c]) / math.fsum(w) for c in self.classes_])
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


def people() -> pd.DataFrame:
    """300 rows of small whole numbers: of three arms, with gaps, text, weights, clusters and times."""
    n, row = 300, np.arange(300)
    table = pd.DataFrame({"x": (row * 37 % 11).astype(float), "many": (row * row * 7 % 293) / 4.0})
    table["town"] = np.array(["Bonn", "Oslo", "Ulm", None], dtype=object)[row * 13 % 17 % 4]
    table.loc[row % 23 == 4, "many"] = np.nan
    table["z"] = np.where(row % 7 == 3, np.nan, row % 5)
    table["arm"] = np.array(ARMS)[row * 29 % 13 % 3]
    table["time"], table["dead"] = 1.0 + row * 31 % 29, (row * 5 % 7 < 4).astype(int)
    table["cause"] = table.dead * (1 + row % 2)
    table["y"] = table.x - 2.0 * (table["arm"] == "b") + row % 4
    table["gap"] = table.y.where(row % 6 != 1)
    table["ill"] = np.where(table.y > 5, "yes", "no")
    table["w"], table["person"] = 0.5 + row % 3, row // 3
    table["good"], table["bad"] = (row * 17 % 19) / 8.0, 1.0 + (table.x > 4)
    assert len(table) == n
    return table


def digest(*values) -> str:
    """Of arrays of numbers and of what JSON holds."""
    found = hashlib.sha256()
    for value in values:
        exact = np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else json.dumps(value).encode()
        found.update(exact)
    return found.hexdigest()[:16]


def codes_of(data) -> str:
    rows = [data.rows(k) for k in range(len(data.stored))]
    arrays = [np.asarray(getattr(each, name)) for each in rows for name in ("codes", "numbers")]
    features = [[f.name, f.kind, [str(c) for c in f.categories], f.has_missing] for f in data.features]
    return digest(*arrays, features, [str(label) for label in data.labels], data.total_weight)


def of_tree(tree) -> str:
    return digest(tree.to_dict(), tree.node_values_, tree.objective_value_)


CODES = {
    "rewards": {"outcome": Rewards(["good", "bad"])},
    "weighted rewards": {"outcome": Rewards(["good", "bad"]), "weights": "w"},
    "labels": {"outcome": Label("ill")},
    "weighted labels": {"outcome": Label("ill"), "weights": "w"},
}
RECORDED = {
    "rewards": ["337d833910495c03", "8188fe3633ea7f05"],
    "weighted rewards": ["e37698c7d19ad889", "b5daa57c4fe62869"],
    "labels": ["8d7908b676ca4341", "399dec7f524cd8a2"],
    "weighted labels": ["1257851683a2d323", "182eef0d342b6bb6"],
    "numbers": ["e6e545bb2115dc9a", "adfcaceec4be4113", "f54425742326df61"],
    "clusters and weights": ["28e9081436184144", "c1721ff17f78c7e7", "f74aa431ddf3595c"],
    "estimated chances": ["0f8145dad38daa64", "c77997916a00ffa1", "ee1dccc489cd1c10"],
    "missing": ["6caf083dacf418b9", "9eb1895c8a8cbbbc", "2f37f449f1cb2056"],
    "times": ["9b69c47a7392a3cf", "9fd86304457d672f", "05f34eef6762bc21"],
    "default horizon": ["499f07a1cb7cd1a2", "c7b0b1103a99e0fb", "7579b47700d34655"],
    "several causes": ["ed02a0f749c3f523", "fcefef853d780e4e", "6ff22edcba244982"],
}


@pytest.mark.parametrize("kind", CODES)
def test_codes_and_trees(tmp_path, kind):
    data = encode(Study(people(), covariates=X, **CODES[kind]), max_bins=16, directory=tmp_path / "e")
    tree = (PolicyTree if "rewards" in kind else OptimalTreeClassifier)(max_depth=2).fit(data)
    assert [codes_of(data), of_tree(tree)] == RECORDED[kind]


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("files", [False, True])
def test_trees_on_dask(tmp_path, kind, files):
    dd = pytest.importorskip("dask.dataframe")
    rows = dd.from_pandas(people(), npartitions=3, sort=False)
    if files:
        rows = tmp_path / "rows.parquet"
        people().to_parquet(rows, row_group_size=70)
    cls = DaskPolicyTree if "rewards" in kind else DaskOptimalTreeClassifier
    tree = cls(max_depth=2, max_bins=16).fit(Study(rows, covariates=X, **CODES[kind]))
    assert of_tree(tree.to_local()) == RECORDED[kind][1]


CHANCES = {"a": 0.25, "b": 0.25, "c": 0.5}
SCORES = {
    "numbers": {"outcome": "y", "propensity": CHANCES},
    "clusters and weights": {"outcome": "y", "propensity": CHANCES, "weights": "w", "cluster": "person"},
    "estimated chances": {"outcome": "y"},
    "missing": {"outcome": MayBeMissing("gap"), "propensity": CHANCES},
    "times": {"outcome": TimeToEvent("time", "dead", horizon=20.0), "propensity": CHANCES},
    "default horizon": {"outcome": TimeToEvent("time", "dead", measure="survival"), "propensity": CHANCES},
    "several causes": {"outcome": TimeToEvent("time", "cause", cause=2, horizon=20.0), "propensity": CHANCES},
}


@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")
@pytest.mark.parametrize("kind", SCORES)
def test_rewards_and_values(tmp_path, kind):
    learners = {"model_event": Curves(), "model_censoring": Curves(), "model_observation": Share()}
    estimator = RewardEstimator(Mean(), Share(), **learners, cv=3, random_state=0)
    study = Study(people(), covariates=["x", "town"], confounders=["z"], treatment="arm", **SCORES[kind])
    scores = stream_rewards(estimator, study, directory=tmp_path / "s")
    learning, held_out = parts(scores)
    arrays = [part[[*ARMS, "fold"]].to_numpy(dtype=np.float64) for part in (learning, held_out)]
    tree = PolicyTree(max_depth=2).fit(encode(scores.learning, directory=tmp_path / "e"))
    values = tree.streamed_values(scores.held_out)
    leaves = tree.streamed_leaves(scores.held_out, held_out=True)
    tables = [table.select_dtypes("number").to_numpy(dtype=np.float64) for table in (values, leaves)]
    assert [digest(*arrays, scores.horizon), of_tree(tree), digest(*tables)] == RECORDED[kind]
