"""The tables, and their tests by the paper's preparation: five bins by k-means, then one 0/1 test per bin or value."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tables import read_table

SOURCE = "the UCI Machine Learning Repository, or the repository that the data's README names"
# One file for each data set: the folders also hold other encodings of some of these, which would count twice.
TABLES = {
    "classification": (
        "iris", "ilpd", "breast_w", "tic_tac_toe", "balance_scale", "car", "monk1", "monk2", "monk3", "spiral",
        "fourclass", "broward", "compas", "coupon_carryout", "coupon_rest20", "fico_heloc", "contree_bank",
        "contree_wilt", "contree_occupancy", "contree_rice", "contree_fault",
    ),
    "sparse": ("mushroom_f", "kr_vs_kp", "zoo", "lymph", "nursery_f"),
    "born_again": ("HTRU2", "Pima-Diabetes", "Seeds"),
}  # fmt: skip
QUICK = ("iris", "Seeds")
NOT_FEATURES = ("split", "test_fold")
BINS = 5


@dataclass(frozen=True)
class Table:
    """A data set: columns as they are, and classes 0, 1, ..."""

    name: str
    X: pd.DataFrame
    y: np.ndarray


def read(folder: str, name: str, directory: Path | None, most_rows: int | None = None) -> Table:
    """A table, of at most so many rows, drawn with a fixed seed."""
    frame = read_table(name, SOURCE, directory, folder)
    frame = frame.drop(columns=[c for c in NOT_FEATURES if c in frame])
    if most_rows is not None and len(frame) > most_rows:
        frame = frame.sample(most_rows, random_state=0).reset_index(drop=True)
    return Table(
        name.removesuffix("_f").removeprefix("contree_"),
        frame.iloc[:, :-1],
        pd.factorize(frame.iloc[:, -1], sort=True)[0],
    )


def tables(study, most_rows: int | None) -> list[Table]:
    """All data sets; two small ones in a quick run."""
    names = [(folder, name) for folder, each in TABLES.items() for name in each]
    kept = [pair for pair in names if not study.quick or pair[1] in QUICK]
    return [read(folder, name, study.data_dir, most_rows) for folder, name in kept]


class Tests:
    """The 0/1 tests of a table, learnt from its training rows."""

    def __init__(self, X: pd.DataFrame):
        self.makers = [self._maker(name, column) for name, column in X.items()]
        self.names = [test for names, _ in self.makers for test in names]

    def __call__(self, X: pd.DataFrame) -> pd.DataFrame:
        """The tests of some rows; missing and unknown values fail all tests of their column."""
        parts = [make(column) for (_, make), (_, column) in zip(self.makers, X.items(), strict=True)]
        return pd.DataFrame(np.column_stack(parts), columns=self.names).astype(float)

    @staticmethod
    def _maker(name: str, column: pd.Series):
        values = np.sort(column.dropna().unique())
        if not pd.api.types.is_numeric_dtype(column) or len(values) <= BINS:
            asked = values[1:] if len(values) == 2 else values  # of two values, one test
            return [f"{name} = {v}" for v in asked], lambda c: c.to_numpy()[:, None] == asked[None]
        edges = kmeans_edges(column.dropna().to_numpy(dtype=float))
        names = [f"{name} in bin {k + 1}" for k in range(len(edges) + 1)]
        return names, lambda c: np.where(
            c.isna().to_numpy()[:, None],
            False,
            np.searchsorted(edges, c, side="right")[:, None] == np.arange(len(names)),
        )


def kmeans_edges(values: np.ndarray) -> np.ndarray:
    """Inner edges of five bins by k-means."""
    from sklearn.preprocessing import KBinsDiscretizer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bins that are too small and left out
        bins = KBinsDiscretizer(BINS, strategy="kmeans", encode="ordinal", random_state=0).fit(values[:, None])
    return bins.bin_edges_[0][1:-1]


def split(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to train on (70 %), to choose by (10 %) and to judge by (20 %), each class dealt out at random."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    place = np.empty(len(y), dtype=int)
    place[order] = np.random.default_rng(seed + 1).permutation(10)[np.arange(len(y)) % 10]
    return tuple(np.flatnonzero(np.isin(place, part)) for part in (range(7), (7,), (8, 9)))
