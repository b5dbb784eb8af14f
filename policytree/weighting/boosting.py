"""Boosted small trees by LightGBM, read after several numbers of rounds; and forests of large leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from policytree.exceptions import InputError
from policytree.weighting.tree_scores import RawScores

#: One thread: trees of eight leaves leave little to share, and threads that wait for each other on a busy machine cost
#: more than they gain. Row-wise histograms and a fixed seed make the result the same in every run.
SETTINGS = {
    "num_leaves": 8,
    "min_data_in_leaf": 20,
    "lambda_l2": 1.0,
    "max_bin": 63,
    "min_data_in_bin": 1,
    "num_threads": 1,
    "force_row_wise": True,
    "deterministic": True,
    "seed": 1,
    "verbosity": -1,
}
LEAST_EVENTS = 5.0  # expected in a leaf of rates
#: Every tree sees half of the rows, and every node a third of the columns.
FOREST_SETTINGS: dict[str, Any] = {
    **SETTINGS,
    "boosting": "rf",
    "objective": "regression",
    "num_leaves": 63,
    "lambda_l2": 0.0,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    "feature_fraction_bynode": 0.34,
}
N_TREES = 200  # of a forest


@dataclass(frozen=True, slots=True)
class Boosted:
    """A fitted booster, and how its raw scores become predictions.

    Attributes
    ----------
    booster : lightgbm.Booster
    objective : {"regression", "binary", "multiclass", "poisson"}
    centre, scale : float
        A regression's outcome was standardised by these: LightGBM keeps labels in single precision. Rates were divided
        by ``scale``.
    """

    booster: Any
    objective: str
    centre: float = 0.0
    scale: float = 1.0

    def stages(self, Z: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
        """Predictions after each of the ascending ``rounds``: (S, n), or (S, n, K) probabilities of several classes.

        Raw scores are sums over trees, so that every tree is evaluated once.
        """
        last = max(self.booster.current_iteration(), 1)
        out = self._sums(Z, [0, *(min(r, last) for r in rounds)])
        raw: Any = 0.0
        for stage in out:  # predictions take the place of the sums, so that one such array is all there is
            raw = raw + stage
            stage[...] = self._linked(raw)
        return out

    def with_columns(self, Z: np.ndarray, fixed: np.ndarray, rounds: Sequence[int]) -> np.ndarray:
        """Predictions (V, n) after ``rounds[v]`` rounds where the columns after those of ``Z`` are ``fixed[v]``.

        The model has one output.
        """
        last = max(self.booster.current_iteration(), 1)
        rounds = [min(r, last) for r in rounds]
        scores = RawScores.of(self.booster, Z, [0, max(rounds)])
        if scores is not None:
            return self._linked(scores.with_columns(fixed, rounds))
        tables = (np.hstack([Z, np.tile(columns, (len(Z), 1))]) for columns in fixed)
        return np.stack([self.stages(table, (r,))[0] for table, r in zip(tables, rounds, strict=True)])

    def _sums(self, Z: np.ndarray, bounds: list[int]) -> np.ndarray:
        """Raw scores of the trees between two of the ascending ``bounds``, (S, n) or (S, n, K)."""
        scores = RawScores.of(self.booster, Z, bounds)
        if scores is not None:
            return scores.sums(bounds)
        K = self.booster.num_model_per_iteration()
        out = np.zeros((len(bounds) - 1, len(Z), K) if K > 1 else (len(bounds) - 1, len(Z)))
        for part, (first, r) in zip(out, pairwise(bounds), strict=True):
            if r > first:
                part[...] = self.booster.predict(
                    Z, raw_score=True, start_iteration=first, num_iteration=r - first, num_threads=1
                )
        return out

    def _linked(self, raw) -> np.ndarray:
        if self.objective == "regression":
            return self.centre + self.scale * raw
        if self.objective == "poisson":
            return self.scale * np.exp(raw)
        if self.objective == "binary":
            return 1.0 / (1.0 + np.exp(-np.clip(raw, -700.0, 700.0)))
        odds = np.exp(raw - raw.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)


def boost(
    Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, objective: str, rounds: int, rate: float = 0.1
) -> Boosted:
    """Fit boosted trees of at most eight leaves.

    Parameters
    ----------
    Z : ndarray of shape (n, p), float64
        NaN is routed to the better side.
    y : ndarray of shape (n,)
        Numbers; 0 and 1 for "binary"; codes 0, 1, ... for "multiclass"; rates for "poisson".
    weight : ndarray of shape (n,), float64, or None
        Time at risk, for rates.
    objective : {"regression", "binary", "multiclass", "poisson"}
    rounds : int
    rate : float
        Learning rate.

    Raises
    ------
    InputError
        If LightGBM cannot be loaded.
    """
    settings: dict[str, Any] = {**SETTINGS, "objective": objective, "learning_rate": rate}
    centre, scale = 0.0, 1.0
    if objective == "regression":
        centre = float(np.average(y, weights=weight))
        scale = float(np.sqrt(np.average((y - centre) ** 2, weights=weight))) or 1.0
        y = (y - centre) / scale
    elif objective == "multiclass":
        settings["num_class"] = int(y.max()) + 1
    elif objective == "poisson":
        scale = float(np.average(y, weights=weight))  # leaves are limited by how many events are expected in them
        y, weight = y / scale, np.ones(len(y)) * scale if weight is None else weight * scale
        settings["min_sum_hessian_in_leaf"] = LEAST_EVENTS
    return Boosted(_trained(settings, Z, y, weight, rounds), objective, centre, scale)


@dataclass(frozen=True, slots=True)
class Forest:
    """A fitted forest of regression trees.

    Attributes
    ----------
    booster : lightgbm.Booster or None
        None where there are too few rows for a single split.
    centre, scale : float
        The outcome was standardised by these.
    """

    booster: Any
    centre: float
    scale: float

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Means of the trees' predictions, (n,)."""
        if self.booster is None:
            return np.full(len(Z), self.centre)
        return self.centre + self.scale * self.booster.predict(Z, num_threads=1)


def grow_forest(Z: np.ndarray, y: np.ndarray, weight: np.ndarray, rows_per_leaf: int) -> Forest:
    """Fit a forest of regression trees, each to half of the rows, with leaves of at least ``rows_per_leaf`` of these.

    Parameters
    ----------
    Z : ndarray of shape (n, p), float64
        NaN is routed to the better side.
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,), float64
        Above zero.
    rows_per_leaf : int

    Raises
    ------
    InputError
        If LightGBM cannot be loaded.
    """
    centre = float(np.average(y, weights=weight))
    scale = float(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
    if scale == 0.0 or len(Z) * FOREST_SETTINGS["bagging_fraction"] < 2 * rows_per_leaf:
        return Forest(None, centre, scale)
    settings = {**FOREST_SETTINGS, "min_data_in_leaf": rows_per_leaf}
    booster = _trained(settings, Z, (y - centre) / scale, weight / weight.mean(), N_TREES)
    return Forest(booster, centre, scale)


def _trained(settings: dict[str, Any], Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, rounds: int) -> Any:
    """LightGBM's model after so many rounds."""
    try:
        import lightgbm
    except OSError as error:  # wheels leave OpenMP's runtime to the system
        raise InputError(
            f"LightGBM, which fits the default outcome and propensity models, cannot be loaded ({error}); install "
            "OpenMP's runtime (Debian and Ubuntu: apt-get install libgomp1), or pass learners of your own."
        ) from error
    # As ``lightgbm.train`` without what it does for callbacks and for continued training: it writes the model as text
    # and reads it again.
    booster = lightgbm.Booster(settings, lightgbm.Dataset(Z, y, weight=weight, params=settings))
    for _ in range(rounds):
        if booster.update():  # no leaf can be split any more
            break
    return booster.free_dataset()
