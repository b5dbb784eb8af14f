"""A timed fit, and what the parts of the study have in common."""

from __future__ import annotations

import time
import warnings

import numpy as np

from policytree import SearchWarning

COLORS = {
    "direct": "#0072B2",
    "duplication": "#E69F00",
    "sampling": "#009E73",
    "CART": "#999999",
    "GBDT": "#555555",
    "DL8.5": "#D55E00",
}


def timed(model, *args, **kwargs) -> float:
    """Fit, and return the seconds it took; a search that meets its limit says so in the table, not as a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        start = time.perf_counter()
        model.fit(*args, **kwargs)
        return time.perf_counter() - start


def weighted_accuracy(predicted, y, weight) -> float:
    """Share of the weight whose label is predicted."""
    return float(np.average(predicted == y, weights=weight))


def proved(model) -> bool:
    """Whether no tree (of the allowed thresholds) is better."""
    return model.status_.name in ("OPTIMAL", "OPTIMAL_GIVEN_GUESSES")
