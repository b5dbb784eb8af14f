"""The data sets of the two papers, with weights, from a data directory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tables import read_table

from policytree import load_dataset
from policytree.guesses import ReferenceGuesses
from policytree.weighting import MatchingRewards, feature_propensity_weights, row_costs

GUESSES_REPOSITORY = "the repository ubc-systopia/gosdt-guesses on GitHub"
SOURCES = {
    "compas": f"{GUESSES_REPOSITORY} (ProPublica's COMPAS data)",
    "broward": f"{GUESSES_REPOSITORY} (Broward County)",
    "coupon_rest20_onehot": f"{GUESSES_REPOSITORY} (UCI in-vehicle coupons)",
    "coupon_carryout_onehot": f"{GUESSES_REPOSITORY} (UCI in-vehicle coupons)",
    "spiral": f"{GUESSES_REPOSITORY} (synthetic)",
    "fico_heloc": "the FICO Explainable Machine Learning Challenge (HELOC)",
}
RAREST = 0.05  # estimated propensities below count as this: no row weighs more than 20
# Behrouz et al. (2022): labels by estimated effect on 1978 earnings, and what a wrong label costs.
GAINS, LOSES = 2_000.0, -5_000.0
COSTS = {0: lambda d: 200 + 3 * d["age"], 1: lambda d: 100 + 3 * d["age"], 2: 300}
# "These costs are scaled linearly to 1..100" can be read in three ways.
LALONDE_SCALINGS = {
    "all costs": "1 is the least cost of a wrong label over all men and all labels, 100 the most; the study's default",
    "own costs": "1 is the least cost that occurs, that of a man's own label, 100 the most",
    "from zero": "the 0 of a right label becomes 1, the most that occurs 100",
}


@dataclass(frozen=True)
class Data:
    """A weighted classification problem.

    Attributes
    ----------
    X : ndarray of shape (n, p), float64
    y : ndarray of shape (n,), int
    weight : ndarray of shape (n,), float64
        Between 0 and 100.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def few(self, rows: int) -> Data:
        """Return a part of it, for a quick run."""
        return Data(self.name, self.X[:rows], self.y[:rows], self.weight[:rows])


def table(name: str, directory: Path | None) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and labels of a file; one sentence if it is not there."""
    frame = read_table(name, SOURCES[name], directory)
    return frame.iloc[:, :-1].astype(float), frame.iloc[:, -1].to_numpy(dtype=int)


def by_propensity(name: str, feature: str, label: str) -> Callable[[Path | None], Data]:
    """Inverse propensity weights of one feature, as the paper weights data without a treatment.

    A feature of many values is cut at its median.
    """

    def load(directory: Path | None) -> Data:
        X, y = table(name, directory)
        stand_in = X[feature] if X[feature].nunique() == 2 else X[feature] > X[feature].median()
        weight = feature_propensity_weights(
            stand_in.astype(int), X.drop(columns=feature), min_propensity=RAREST, random_state=0
        )
        return Data(label, X.to_numpy(), y, weight)

    return load


def lalonde_labels() -> tuple[pd.DataFrame, np.ndarray]:
    """LaLonde's men, and their labels by matching after learning to stretch."""
    men = load_dataset("lalonde").study()
    X = pd.concat([men.X, men.W], axis=1)
    outcomes = MatchingRewards(10, random_state=0).fit(men.Y, men.T, X=X).rewards_
    effect = (outcomes["training"] - outcomes["control"]).to_numpy()
    return X, np.select([effect > GAINS, effect < LOSES], [2, 0], 1)


def lalonde_costs(X: pd.DataFrame, y: np.ndarray, scaling: str) -> np.ndarray:
    """The weight of every man: the cost of a wrong label, scaled in one of the ways of ``LALONDE_SCALINGS``."""
    costs = row_costs(X, COSTS).to_numpy()
    own = costs[np.arange(len(y)), y]
    low = {"all costs": costs.min(), "own costs": own.min(), "from zero": 0.0}[scaling]
    high = costs.max() if scaling == "all costs" else own.max()
    return 1 + 99 * (own - low) / (high - low)


def lalonde(directory: Path | None) -> Data:
    """LaLonde's men with the paper's costs (1 to 100) as weights."""
    X, y = lalonde_labels()
    codes = X.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes)
    return Data("Lalonde", codes.to_numpy(dtype=float), y, lalonde_costs(X, y, "all costs"))


LOADERS: dict[str, Callable[[Path | None], Data]] = {
    "Lalonde": lalonde,
    "Broward": by_propensity("broward", "sex", "Broward"),
    "coupon": by_propensity("coupon_rest20_onehot", "gender0", "coupon"),
    "COMPAS": by_propensity("compas", "sex=female", "COMPAS"),
    "FICO": by_propensity("fico_heloc", "PercentInstallTrades", "FICO"),
}


def load(study) -> list[Data]:
    """All data sets, smallest first; two small parts in a quick run."""
    if study.quick:
        return [LOADERS[name](study.data_dir).few(400) for name in ("COMPAS", "Broward")]
    found = []
    for name, loader in LOADERS.items():
        study.step(f"reading and weighting {name}")
        found.append(loader(study.data_dir))
    return found


def binary(X: np.ndarray, thresholds) -> np.ndarray:
    """One 0/1 column per threshold and feature, ``x > t``, for solvers of binary features; shape (n, columns)."""
    columns = [X[:, j] > t for j, of_feature in enumerate(thresholds) for t in of_feature]
    return np.column_stack(columns) if columns else np.zeros((len(X), 1), dtype=bool)


def reference(n_estimators: int, max_depth: int, **options) -> ReferenceGuesses:
    """A boosted reference model of the papers' kind, for thresholds."""
    return ReferenceGuesses(n_estimators=n_estimators, max_depth=max_depth, **options)
