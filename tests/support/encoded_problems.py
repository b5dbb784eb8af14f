"""Random problems with all at once (gaps, text, weights, ties, counts, prices), for encoded rows and for dask."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.exceptions import SearchWarning


@dataclass
class Case:
    """A table with its roles, and the arguments of the tree to fit to it."""

    frame: pd.DataFrame
    X: list[str]
    rewards: list[str] | None
    y: str | None
    weights: str | None
    max_bins: int
    arguments: dict

    @property
    def roles(self) -> dict:
        return {"rewards": self.rewards, "y": self.y, "weights": self.weights}

    def estimator(self, **more):
        cls = PolicyTree if self.y is None else OptimalTreeClassifier
        return cls(**self.arguments, **more)

    def in_memory(self):
        """The same tree, fitted to the table in memory."""
        target = self.frame[self.rewards] if self.y is None else self.frame[self.y]
        weight = None if self.weights is None else self.frame[self.weights].to_numpy()
        return self.estimator(max_bins=self.max_bins).fit(self.frame[self.X], target, sample_weight=weight)

    def own_objective(self, tree) -> float:
        """Objective of a tree from its predictions alone."""
        weight = None if self.weights is None else self.frame[self.weights].to_numpy()
        price = tree.regularization * tree.get_n_leaves()
        predicted = tree.predict(self.frame[self.X])
        if self.y is not None:
            return 1 - np.average(predicted == self.frame[self.y], weights=weight) + price
        rewards = self.frame[self.rewards].to_numpy()
        chosen = rewards[np.arange(len(rewards)), [self.rewards.index(a) for a in predicted]]
        sign = 1 if tree.direction == "minimize" else -1
        return np.average(chosen, weights=weight) + sign * price


def _column(rng: np.random.Generator, n: int):
    x = rng.normal(size=n) if rng.random() < 0.3 else rng.integers(0, rng.integers(1, 6), n).astype(float)
    if rng.random() < 0.4:
        x[rng.random(n) < 0.3] = np.nan
    if rng.random() < 0.05:
        x[:] = np.nan
    if rng.random() < 0.3:
        return pd.Series([None if np.isnan(v) else f"c{abs(v):.0f}" for v in x], dtype=object)
    return x


def random_case(seed: int) -> Case:
    """The problem of this number."""
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 120)), int(rng.integers(1, 4))
    X = [f"x{j}" for j in range(rng.integers(1, 5))]
    frame = pd.DataFrame({name: _column(rng, n) for name in X})
    labelled = rng.random() < 0.4
    rewards = None if labelled else [f"r{k}" for k in range(K)]
    if labelled:
        frame["y"] = rng.choice(["a", "b", "c"][:K], n)
    for name in rewards or []:
        frame[name] = rng.normal(size=n).round(3) if rng.random() < 0.7 else rng.integers(0, 3, n) * 1.0
    weights = "w" if rng.random() < 0.4 else None
    if weights:
        frame["w"] = rng.choice([0.0, 1.0, 2.5, 0.3], n)
        frame.loc[0, "w"] = 1.0
    arguments = {
        "max_depth": int(rng.integers(0, 4)),
        "regularization": float(rng.choice([0, 0.01, 0.1])),
        "min_samples_leaf": int(rng.choice([1, 1, 3])),
        "max_leaf_nodes": None if rng.random() < 0.7 else int(rng.integers(1, 6)),
    }
    if rng.random() < 0.2:
        arguments["split_features"] = [X[-1]]
    elif rng.random() < 0.2:
        arguments["root_feature"] = X[0]
    if not labelled:
        arguments["direction"] = str(rng.choice(["minimize", "maximize"]))
    return Case(frame, X, rewards, "y" if labelled else None, weights, int(rng.choice([2, 3, 5, 30])), arguments)


def outcome(fit):
    """A fitted tree, or the sentence that refused it; and what was said of leaves that no split can make."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.filterwarnings("always", "No split leaves", SearchWarning)  # drawn problems may be as small
        try:
            tree, refused = fit(), None
        except ValueError as error:
            tree, refused = None, str(error)
    return tree, refused, [str(warning.message) for warning in heard]


def assert_same(case: Case, expected, found) -> None:
    """Two fits say the same, to the last bit; of trees that are equally good, each may have found another one."""
    tree, refused, said = found
    assert refused == expected[1]
    assert said == expected[2]
    if tree is None:
        return
    memory = expected[0]
    assert tree.status_ is memory.status_  # first: a stopped search may have any objective
    if tree.export_text() == memory.export_text():
        assert_identical(tree, memory)
    else:
        rounding = memory.solution_.resolution + tree.solution_.resolution  # 0 where losses are whole numbers
        assert abs(tree.solution_.objective - memory.solution_.objective) <= rounding
    assert np.isclose(case.own_objective(tree), tree.objective_value_, rtol=1e-9, atol=1e-12)
    assert tree.encoder_ == memory.encoder_
    gaps = [[f.has_missing for f in each.encoder_.features] for each in (tree, memory)]
    assert gaps[0] == gaps[1]
    assert tree.node_values_[0].tolist() == memory.node_values_[0].tolist()


def assert_identical(tree, other) -> None:
    """Two fitted trees agree in everything that they say of themselves, to the last bit."""
    assert tree.to_dict() == other.to_dict()
    assert tree.node_values_.tolist() == other.node_values_.tolist()
    assert tree.objective_value_ == other.objective_value_
    if tree.status_.proved:
        assert tree.objective_bound_ == other.objective_bound_


def damage_row_group(path, k: int) -> None:
    """Overwrite the first column's data in a row group of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        column = file.metadata.row_group(k).column(0)
        start, size = column.dictionary_page_offset or column.data_page_offset, column.total_compressed_size
    content = bytearray(path.read_bytes())
    content[start + 8 : start + size] = b"\xff" * (size - 8)
    path.write_bytes(bytes(content))


def write_parts(frame: pd.DataFrame, folder: Path, ending: str) -> Path:
    """Write rows as files of 17 rows each; returns the folder."""
    folder.mkdir()
    for k, first in enumerate(range(0, len(frame), 17)):
        part = frame.iloc[first : first + 17]
        if ending == "csv":
            part.to_csv(folder / f"part-{k}.csv", index=False)
        else:
            part.to_parquet(folder / f"part-{k}.parquet")
    return folder
