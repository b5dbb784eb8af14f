"""Boosted small trees by LightGBM, read after several numbers of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.exceptions import InputError

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
LEAST_EVENTS = 5.0  # that are expected in a leaf of rates


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
        out, raw, done = [], 0.0, 0
        for r in rounds:
            if r > done and (done == 0 or done < self.booster.current_iteration()):
                raw = raw + self.booster.predict(
                    Z, raw_score=True, start_iteration=done, num_iteration=r - done, num_threads=1
                )
            done = r
            out.append(self._linked(raw))
        return np.stack(out)

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
    try:
        import lightgbm
    except OSError as error:  # wheels leave OpenMP's runtime to the system
        raise InputError(
            f"LightGBM, which fits the default outcome and propensity models, cannot be loaded ({error}); install "
            "OpenMP's runtime (Debian and Ubuntu: apt-get install libgomp1), or pass learners of your own."
        ) from error
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
    # As ``lightgbm.train`` without what it does for callbacks and for continued training: it writes the model as text
    # and reads it again.
    booster = lightgbm.Booster(settings, lightgbm.Dataset(Z, y, weight=weight, params=settings))
    for _ in range(rounds):
        if booster.update():  # no leaf can be split any more
            break
    return Boosted(booster.free_dataset(), objective, centre, scale)
