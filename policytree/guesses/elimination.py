"""Column elimination: as few cuts as a reference model can do with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from policytree.guesses.boosted_trees import BoostedTrees
from policytree.guesses.boosting import cut_gains

BATCH = 0.25  # share of the columns tried to be dropped at once; halved whenever that is too many
ROUNDING = 1e-12  # sums of weights in another order differ by so much

Predict = Callable[[np.ndarray], np.ndarray]


class Refit(Protocol):
    """A reference model that can be fitted again to some of its cuts; the first fit is to all of them."""

    pairs: np.ndarray

    def fit(self, kept: np.ndarray) -> float:
        """Fit to the cuts that a mask over ``pairs`` keeps; returns the weighted training accuracy."""
        ...

    def gains(self) -> np.ndarray:
        """Return the importance of every pair in the last fit; -1 for those that no split uses."""
        ...

    def predict(self, codes: np.ndarray) -> np.ndarray:
        """Return what the last fit predicts for codes (n_columns, n)."""
        ...


class OwnRefit:
    """Boosted trees of this library: a fit without a cut begins at the first tree that used it."""

    def __init__(self, cuts: list[np.ndarray], codes: np.ndarray, label, weight, size: tuple[int, int, float]):
        self.pairs = as_pairs(cuts)
        self.model = BoostedTrees(coded(self.pairs, codes), label, weight, *size)
        columns, first = np.unique(self.pairs[:, 0], return_index=True)
        place = np.searchsorted(columns, self.pairs[:, 0])
        self.at = place, np.arange(len(place)) - first[place]

    def fit(self, kept: np.ndarray) -> float:
        """Fit to the cuts that a mask keeps."""
        dropped = np.zeros(self.model.shape, dtype=bool)
        dropped[self.at] = ~kept
        return self.model.fit(dropped)

    def gains(self) -> np.ndarray:
        """Total gain of every pair."""
        return self.model.gains()[self.at]

    def predict(self, codes: np.ndarray) -> np.ndarray:
        """Labels for codes (n_columns, n)."""
        return self.model.predict(coded(self.pairs, codes))


class ScikitRefit:
    """A boosted classifier of scikit-learn, fitted anew every time."""

    def __init__(self, cuts: list[np.ndarray], codes: np.ndarray, label, weight, model):
        self.pairs, self.codes, self.label, self.weight, self.model = as_pairs(cuts), codes, label, weight, model
        self.kept = np.ones(len(self.pairs), dtype=bool)

    def fit(self, kept: np.ndarray) -> float:
        """Fit to the cuts that a mask keeps."""
        self.kept = kept
        table = coded(self.pairs[kept], self.codes).T.astype(np.float32)
        self.model.fit(table, self.label, sample_weight=self.weight)
        return float(self.model.score(table, self.label, sample_weight=self.weight))

    def gains(self) -> np.ndarray:
        """Total gain of every pair."""
        out = np.full(len(self.pairs), -1.0)
        out[self.kept] = cut_gains(self.model, np.unique(self.pairs[self.kept, 0], return_counts=True)[1])
        return out

    def predict(self, codes: np.ndarray) -> np.ndarray:
        """Labels for codes (n_columns, n)."""
        return self.model.predict(coded(self.pairs[self.kept], codes).T.astype(np.float32))


def eliminate_one_by_one(refit: Refit, tolerance: float) -> np.ndarray:
    """Drop the least important cut and refit, until that costs accuracy: column elimination as published.

    Parameters
    ----------
    refit : Refit
    tolerance : float
        How far the weighted training accuracy may fall below that with all cuts.

    Returns
    -------
    ndarray of shape (n_pairs,), bool
        Which cuts are kept. The model's last fit is to these.

    Notes
    -----
    McTavish et al. (AAAI 2022), section 4.1. A cut that no split uses is dropped without a refit, which would change
    nothing.
    """
    kept = np.ones(len(refit.pairs), dtype=bool)
    least = refit.fit(kept) - tolerance - ROUNDING
    while kept.sum() > 1:
        gain = np.where(kept, refit.gains(), np.inf)
        unused = np.flatnonzero(gain < 0)
        fewer = kept.copy()
        fewer[unused[: kept.sum() - 1] if len(unused) else int(np.argmin(gain))] = False
        if not len(unused) and refit.fit(fewer) < least:
            break
        kept = fewer
    refit.fit(kept)
    return kept


def eliminate_in_batches(refit: Refit, tolerance: float) -> np.ndarray:
    """The same with up to a quarter of the cuts dropped at once, half as many whenever that is too many.

    It takes a logarithm of the refits and keeps fewer cuts: it steps over drops of accuracy at which dropping one by
    one ends.
    """
    kept = np.ones(len(refit.pairs), dtype=bool)
    least = refit.fit(kept) - tolerance - ROUNDING
    gain = refit.gains()
    batch = max(int((gain < 0).sum()), int(BATCH * len(gain)), 1)
    while batch and kept.sum() > 1:
        batch = min(batch, int(kept.sum()) - 1)
        fewer = kept.copy()
        fewer[np.argsort(np.where(kept, gain, np.inf), kind="stable")[:batch]] = False
        if refit.fit(fewer) >= least:
            kept, gain = fewer, refit.gains()
            batch = min(max(batch, int((gain[kept] < 0).sum())), int(kept.sum()) - 1)
        else:
            batch //= 2
    refit.fit(kept)
    return kept


ELIMINATIONS = {"one_by_one": eliminate_one_by_one, "batches": eliminate_in_batches}


def as_pairs(cuts: list[np.ndarray]) -> np.ndarray:
    """Cuts of every column as sorted rows ``(column, cut)``; shape (n_cuts, 2)."""
    return np.array([(j, b) for j, kept in enumerate(cuts) for b in kept], dtype=np.int64).reshape(-1, 2)


def as_cuts(pairs: np.ndarray, n_columns: int) -> list[np.ndarray]:
    """Rows ``(column, cut)`` as the cuts of every column."""
    return [pairs[pairs[:, 0] == j, 1] for j in range(n_columns)]


def quantile_cuts(codes: np.ndarray, most: int) -> list[np.ndarray]:
    """At most ``most`` cuts of every column of ``codes`` (n_columns, m), near quantiles where there are more."""
    out = []
    for column in codes:
        top = int(column.max())
        cuts = np.arange(top)
        if top > most:
            wanted = np.quantile(column, np.arange(1, most + 1) / (most + 1), method="inverted_cdf")
            cuts = np.unique(np.minimum(wanted, top - 1)).astype(np.int64)
        out.append(cuts)
    return out


def coded(pairs: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Codes that tell apart only what cuts ``(column, cut)``, sorted, tell apart; shape (columns with a cut, m).

    Trees on these split as trees on one binary column per cut do.
    """
    columns = np.unique(pairs[:, 0])
    out = np.empty((len(columns), codes.shape[1]), dtype=np.int64)
    for k, j in enumerate(columns):
        cuts = pairs[pairs[:, 0] == j, 1]
        out[k] = np.searchsorted(cuts, np.arange(int(codes[j].max()) + 1), side="left")[codes[j]]
    return out
