"""Product-limit curves (Kaplan and Meier) and numbers at risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ProductLimit:
    """The share without event, as a step function of time.

    Attributes
    ----------
    times : ndarray of shape (J,)
        Distinct times of events, ascending.
    survival : ndarray of shape (J,)
        Share without event after each of them.
    standard_errors : ndarray of shape (J,)
        Of Greenwood; without weights.
    """

    times: np.ndarray
    survival: np.ndarray
    standard_errors: np.ndarray

    def at(self, time: np.ndarray) -> np.ndarray:
        """Share without event after these times."""
        k = np.searchsorted(self.times, time, side="right")
        return np.append(1.0, self.survival)[k]

    def area(self, horizon: float) -> float:
        """Area under the curve up to the horizon: the restricted mean time without event."""
        edges = np.concatenate([[0.0], self.times[self.times < horizon], [horizon]])
        return float(np.append(1.0, self.survival)[: len(edges) - 1] @ np.diff(edges))


def product_limit(
    time: np.ndarray, event: np.ndarray, *, weight: np.ndarray | None = None, entry: np.ndarray | None = None
) -> ProductLimit:
    """The curve of Kaplan and Meier.

    Parameters
    ----------
    time : ndarray of shape (n,)
    event : ndarray of shape (n,), bool
    weight, entry : ndarray of shape (n,), or None
        Sampling weights; times from which on rows are under observation.

    Returns
    -------
    ProductLimit

    References
    ----------
    Kaplan and Meier (1958), Journal of the American Statistical Association 53(282), 457-481. Greenwood (1926).
    """
    weight = np.ones(len(time)) if weight is None else weight
    at = np.unique(time[event])
    at_risk = weight_from(time, weight, at) - (0.0 if entry is None else weight_from(entry, weight, at))
    died = sums(np.searchsorted(at, time[event]), weight[event], len(at))
    hazard = ratio(died, at_risk)
    survival = np.cumprod(1.0 - hazard)
    left = at_risk - died
    variance = np.cumsum(ratio(hazard, left))
    return ProductLimit(at, survival, survival * np.sqrt(variance))


def weight_from(time: np.ndarray, weight: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Weight of the rows with ``time >= at``, for every one of these times."""
    order = np.argsort(time, kind="stable")
    total = np.append(0.0, np.cumsum(weight[order]))
    return total[-1] - total[np.searchsorted(time[order], at, side="left")]


def numbers_at_risk(time: np.ndarray, at: np.ndarray, entry: np.ndarray | None = None) -> np.ndarray:
    """Rows that are still followed just before each of these times, (len(at),) int."""
    ones = np.ones(len(time))
    out = weight_from(time, ones, at)
    if entry is not None:
        out = out - weight_from(entry, ones, at)
    return np.rint(out).astype(np.int64)


def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Quotients, zero where there is nothing to divide by: rows of weight zero, or nobody left."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0.0)


def sums(place: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """Sums of weights by place, (n,) float64; numpy counts in integers where there is nothing to sum."""
    return np.bincount(place, weights=weight, minlength=n).astype(np.float64)
