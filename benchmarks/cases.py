"""The problems of the benchmark: real data by file, synthetic data by formula, and the best objective known of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

DATA_VARIABLE = "POLICYTREE_DATA"
CHECKOUT = Path(__file__).resolve().parents[1]
BESIDE_CHECKOUT = CHECKOUT.parent / "shared" / "data"
sys.path.insert(0, str(CHECKOUT))  # what is measured is this checkout, whatever is installed

SOURCES = {
    "fico_heloc": "the FICO Explainable Machine Learning Challenge (HELOC)",
    "compas": "ubc-systopia/gosdt-guesses on GitHub (ProPublica COMPAS)",
    "broward": "ubc-systopia/gosdt-guesses on GitHub (Broward County)",
    "coupon_rest20_onehot": "ubc-systopia/gosdt-guesses on GitHub (UCI in-vehicle coupon)",
}


class MissingData(Exception):
    """A data file is not where it was looked for."""


@dataclass(frozen=True)
class Arrays:
    """Data that every solver is given.

    Attributes
    ----------
    X : ndarray of shape (n, p), float64
    losses : ndarray of shape (n, K), float64
        What action (or class) ``k`` costs for row ``i``.
    labels : ndarray of shape (n,), int, or None
        Classes 0 .. K - 1 where the losses come from labels.
    weights : ndarray of shape (n,), float64, or None
        Weights of those labels; None means one each.
    """

    X: np.ndarray
    losses: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None

    def head(self, rows: int) -> Arrays:
        """The first rows, for warming up."""
        parts = (self.X, self.losses, self.labels, self.weights)
        return Arrays(*(None if part is None else part[:rows].copy() for part in parts))


@dataclass(frozen=True)
class Case:
    """One problem.

    Attributes
    ----------
    name : str
    load : callable
        Data directory -> :class:`Arrays`.
    unit : {"errors", "loss", "penalized", "reward"}
        What the objective is printed as: summed losses (of weight one or more), errors / n + penalty x leaves, or the
        total reward.
    depth : int or None
        Depth limit, None for no limit.
    penalty : float
        Price of a leaf as a share of the rows.
    best : float or None
        The best objective known, from any solver.
    unit_weights : str or None
        The case that differs only in having unit weights.
    """

    name: str
    load: Callable[[Path], Arrays]
    unit: str
    depth: int | None
    penalty: float = 0.0
    best: float | None = None
    n_jobs: int = 1
    large: bool = False
    unit_weights: str | None = None

    def objective(self, arrays: Arrays, summed_loss: float, n_leaves: int) -> float:
        """The objective in the unit of the tables; every solver's tree is scored by this."""
        if self.unit == "reward":
            return -summed_loss
        if self.unit == "penalized":
            return summed_loss / len(arrays.X) + self.penalty * n_leaves
        return summed_loss

    @property
    def sign(self) -> int:
        """Minus one if larger objectives are better."""
        return -1 if self.unit == "reward" else 1


def data_directory(given: str | None) -> Path:
    """The directory that holds ``classification/``: as given, from the environment, or beside a checkout."""
    return Path(given or os.environ.get(DATA_VARIABLE) or BESIDE_CHECKOUT)


def labelled(X: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> Arrays:
    """Misclassification as losses."""
    losses = (labels[:, None] != np.arange(labels.max() + 1)).astype(float)
    return Arrays(X, losses if weights is None else losses * weights[:, None], labels, weights)


def quantile_codes(X: np.ndarray, cuts: int) -> np.ndarray:
    """Every feature coded by the values at ``cuts`` evenly spaced ranks."""
    ranks = [int(len(X) * k / (cuts + 1)) - 1 for k in range(1, cuts + 1)]
    return np.column_stack([np.searchsorted(np.sort(x)[ranks], x, side="left") for x in X.T]).astype(float)


def table(directory: Path, name: str, *, cuts: int | None = None, log_normal: bool = False) -> Arrays:
    """A file ``classification/name.csv.gz`` whose last column is the 0/1 label."""
    path = directory / "classification" / f"{name}.csv.gz"
    if not path.exists():
        raise MissingData(
            f"{path} does not exist; get it from {SOURCES[name]} and pass its data directory with --data or in "
            f"the environment variable {DATA_VARIABLE}."
        )
    frame = pd.read_csv(path)
    X = frame.iloc[:, :-1].to_numpy(float)
    labels = frame.iloc[:, -1].to_numpy(int)
    weights = np.random.default_rng(7).lognormal(0.0, 1.0, len(X)) if log_normal else None
    return labelled(X if cuts is None else quantile_codes(X, cuts), labels, weights)


def policy(directory: Path, n: int, p: int, n_actions: int, distinct: str) -> Arrays:
    """Normal covariates and noisy rewards; ``distinct`` says how many values a feature has.

    "continuous": all different; "r100": rounded to multiples of 1/15, about 100 values; "q10": ten quantile cuts, and
    so on. The directory is not used.
    """
    rng = np.random.default_rng(1000 * n_actions + n + p)
    X = rng.standard_normal((n, p))
    mean = np.zeros((n, n_actions))
    high = np.where(X[:, 1] > -0.2, 0.5, -0.4)
    low = np.where(X[:, 2] > 0.1, 0.3, -0.5)
    mean[:, 1] = np.where(X[:, 0] > 0.3, high, low) + 0.2 * X[:, 3]
    if n_actions > 2:
        mean[:, 2] = 0.5 * np.sin(2 * X[:, 0]) + np.where(X[:, 4] > 0, 0.25, -0.25)
    for k in range(3, n_actions):
        mean[:, k] = 0.4 * np.sin(X[:, k % p] + k) * np.where(X[:, (k + 1) % p] > 0, 1.0, -1.0)
    rewards = mean + 2.0 * rng.standard_normal((n, n_actions))
    if distinct == "r100":
        X = np.round(X * 15) / 15
    elif distinct.startswith("q"):
        X = quantile_codes(X, int(distinct[1:]))
    elif distinct != "continuous":
        raise ValueError(f"distinct={distinct!r}: use 'continuous', 'r100', or 'q' and a number of cuts")
    return Arrays(X, -rewards)


def overlapping_classes(directory: Path, n: int, p: int, separation: float) -> Arrays:
    """Two overlapping clouds with a common size factor, every value distinct: the shape of measured grains or showers.

    The classes lie ``separation`` standard deviations of the size factor apart. The directory is not used.
    """
    rng = np.random.default_rng(n + p)
    labels = (rng.random(n) < 0.45).astype(int)
    size = rng.standard_normal((n, 1)) + separation * labels[:, None]
    loading = rng.uniform(0.5, 1.5, p)
    return labelled(np.exp(0.2 * (size * loading + 0.5 * rng.standard_normal((n, p)))), labels)


def real_cases() -> list[Case]:
    """Labels from files."""

    def case(name, file, depth, best, *, penalty=0.0, cuts=None, log_normal=False, unit_weights=None):
        unit = "penalized" if penalty else "loss" if log_normal else "errors"
        load = partial(table, name=file, cuts=cuts, log_normal=log_normal)
        return Case(name, load, unit, depth, penalty, best, unit_weights=unit_weights)

    fico, compas, broward, coupon = "fico_heloc", "compas", "broward", "coupon_rest20_onehot"
    return [
        case("FICO d2", fico, 2, 3020),
        case("FICO d2 log-normal weights", fico, 2, None, log_normal=True, unit_weights="FICO d2"),
        case("FICO d3", fico, 3, 2946),
        case("FICO d3 log-normal weights", fico, 3, None, log_normal=True, unit_weights="FICO d3"),
        case("FICO 10 cuts d3", fico, 3, 2966, cuts=10),
        case("FICO 10 cuts d3 log-normal weights", fico, 3, 4770.955931, cuts=10, log_normal=True,
             unit_weights="FICO 10 cuts d3"),
        case("FICO 10 cuts d4", fico, 4, 2866, cuts=10),
        case("FICO 5 cuts d4", fico, 4, 2908, cuts=5),
        case("COMPAS d4", compas, 4, 2137),
        case("COMPAS 10 cuts d5", compas, 5, 2125, cuts=10),
        case("COMPAS 10 cuts d4 log-normal weights", compas, 4, 3303.187928, cuts=10, log_normal=True),
        case("COMPAS d4 penalty .001", compas, 4, 0.321437, penalty=0.001),
        case("COMPAS d5 penalty .001", compas, 5, 0.321437, penalty=0.001),
        case("COMPAS penalty .005 no depth limit", compas, None, 0.345110, penalty=0.005),
        case("Broward d3", broward, 3, 690),
        case("Broward 5 cuts d4", broward, 4, 641, cuts=5),
        case("Broward 10 cuts d4", broward, 4, 635, cuts=10),
        case("Broward 10 cuts d4 log-normal weights", broward, 4, 902.683160, cuts=10, log_normal=True),
        case("coupon d3", coupon, 3, 603),
        case("coupon d4 penalty .001", coupon, 4, 0.230867, penalty=0.001),
        case("coupon d5 penalty .001", coupon, 5, 537 / 2653 + 22 * 0.001, penalty=0.001),
        case("coupon penalty .005 no depth limit", coupon, None, None, penalty=0.005),
    ]  # fmt: skip


def synthetic_cases() -> list[Case]:
    """Rewards and labels by formula."""

    def case(n, p, n_actions, distinct, depth, best, **more):
        name = f"policy {n:,} x {p} K={n_actions} {distinct} d{depth}"
        load = partial(policy, n=n, p=p, n_actions=n_actions, distinct=distinct)
        return Case(name, load, "reward", depth, best=best, **more)

    def classes(n, p, separation):
        load = partial(overlapping_classes, n=n, p=p, separation=separation)
        return Case(f"classes {n:,} x {p} continuous d3", load, "errors", 3)

    return [
        case(10_000, 10, 2, "continuous", 2, 2413.762910),
        case(10_000, 30, 2, "r100", 2, 1911.280648),
        case(100_000, 10, 2, "r100", 2, 18282.165497),
        case(100_000, 10, 3, "continuous", 2, None),
        case(100_000, 30, 5, "continuous", 2, None, large=True),
        case(10_000, 5, 2, "r100", 3, 2032.634870),
        case(1_000, 10, 2, "r100", 3, 419.959947),
        case(1_000, 5, 2, "continuous", 3, 326.052181),
        case(1_000, 5, 3, "continuous", 3, 535.645303),
        case(1_000, 10, 2, "continuous", 3, 447.191639),
        case(10_000, 10, 3, "q10", 3, 3092.341069),
        case(10_000, 30, 2, "q10", 3, 1958.266456),
        classes(3_810, 7, 3.0),
        classes(19_020, 10, 1.8),
        case(100_000, 200, 20, "r100", 2, None, n_jobs=2, large=True),
        case(1_000_000, 20, 2, "q63", 3, None, n_jobs=2, large=True),
    ]


CASES = {case.name: case for case in real_cases() + synthetic_cases()}
