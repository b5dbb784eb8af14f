"""The marginal sensitivity model's sharp bounds: what is known from covariates limits what a confounder can do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.evaluation.estimates import Estimate
from policytree.evaluation.inference.cluster_bootstrap import ClusterBootstrap
from policytree.evaluation.inputs import generator
from policytree.evaluation.sensitivity.contrasts import Contrast

FOLDS = 5
MOST_BINS, FEWEST_ROWS = 10, 50  # bins of similar predictions, and rows of an arm in one


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Quantiles of outcomes at a level tau, given covariates, with their losses.

    Attributes
    ----------
    quantile : ndarray of shape (n,)
        Of the outcome under the treatment that the row received.
    loss : ndarray of shape (n, K)
        Expected quantile loss of the outcome under every treatment, ``E[max(tau u, (tau - 1) u)]`` with ``u`` outcome
        minus quantile; >= 0.
    """

    quantile: np.ndarray
    loss: np.ndarray


def quantile_loss(u: np.ndarray, tau: float) -> np.ndarray:
    """``max(tau u, (tau - 1) u)`` (Koenker and Bassett 1978)."""
    return np.maximum(tau * u, (tau - 1.0) * u)


def sharp_scores(contrast: Contrast, tails: Tails, gamma: float, largest: bool) -> np.ndarray:
    """Scores (n, K) whose means are ends of ``E[Y(k)]``.

    Given covariates, the density of ``Y(k)`` among those who did not get ``k`` is at most Gamma, and at least 1 /
    Gamma, times that among those who did; so its mean is extreme where the likeliest outcomes are on one side of the
    quantile ``tau = Gamma / (1 + Gamma)`` (``1 / (1 + Gamma)`` for the lower end): ``E[Y | k] +- (Gamma - 1 / Gamma)
    E[loss | k]``, with the quantile loss. The score adds to the doubly robust one

        ``+- (Gamma - 1 / Gamma) (1[T != k] E[loss_k] + 1[T = k] (1 - e_k) / e_k (loss - E[loss_k]))``.

    Any quantile gives a valid bound, for the loss is smallest at the right one; with the right one it is sharp; errors
    of expected losses and propensities enter only as their product (Dorn, Guo and Kallus 2025, "doubly valid").
    """
    seen = contrast.observed
    rows = np.arange(seen.n)
    tau = gamma / (1 + gamma) if largest else 1 / (1 + gamma)
    got = np.zeros(contrast.change.shape)
    got[rows, seen.arm] = 1.0
    own = contrast.odds * (quantile_loss(seen.y - tails.quantile, tau) - tails.loss[rows, seen.arm])
    add = (1.0 - got) * tails.loss + got * own[:, None]
    return (gamma - 1 / gamma) * (add if largest else -add)


class OutcomeTails:
    """Quantiles of outcomes from the residuals of similar rows in other folds; exact for outcomes of 0 and 1.

    For every treatment, rows that got it are sorted into bins by predicted outcome; a quantile is the prediction plus
    that of the bin's residuals. So spread and skewness may change with the level, as they do for counts and money. For
    outcomes of 0 and 1 the predicted outcome says everything.

    Parameters
    ----------
    contrast : Contrast
        With a regression.
    random_state : int, RandomState or None
        Draws the folds; no cluster is divided.
    """

    def __init__(self, contrast: Contrast, random_state):
        seen = contrast.observed
        assert contrast.regression is not None
        self._contrast, self._mean = contrast, contrast.regression
        self._binary = bool(np.isin(seen.y, (0.0, 1.0)).all())
        rng = generator(random_state)
        _, unit = np.unique(contrast.clusters, return_inverse=True)
        self._fold = rng.permutation(unit.max() + 1)[unit] % FOLDS
        self._arms = np.flatnonzero((contrast.change != 0).any(axis=0))
        self._parts = [] if self._binary else [p for k in self._arms for p in self._bins(int(k))]

    def _bins(self, k: int):
        """(arm, rows, residuals ascending, their weights) of every fold and bin of an arm."""
        seen, weight = self._contrast.observed, self._contrast.weight
        got = (seen.arm == k) & (weight > 0)
        for fold in range(FOLDS):
            mine, source = np.flatnonzero(self._fold == fold), np.flatnonzero(got & (self._fold != fold))
            if not len(mine):
                continue
            source = source if len(source) else np.flatnonzero(got)
            n_bins = int(np.clip(len(source) // FEWEST_ROWS, 1, MOST_BINS))
            edges = np.unique(np.quantile(self._mean[source, k], np.arange(1, n_bins) / n_bins))
            bin_of, own = (np.searchsorted(edges, self._mean[r, k]) for r in (source, mine))
            for b in np.unique(own):
                rows = source[bin_of == b] if (bin_of == b).any() else source
                residual = seen.y[rows] - self._mean[rows, k]
                order = np.argsort(residual, kind="stable")
                yield k, mine[own == b], residual[order], weight[rows][order]

    def at(self, tau: float) -> Tails:
        """Quantiles and expected losses at a level."""
        seen = self._contrast.observed
        if self._binary:
            p = np.clip(self._mean, 0.0, 1.0)
            quantile = (p[np.arange(seen.n), seen.arm] > 1 - tau).astype(float)
            return Tails(quantile, np.minimum(tau * p, (1 - tau) * (1 - p)))
        quantile, loss = np.zeros(seen.n), np.zeros(self._mean.shape)
        for k, rows, residual, weight in self._parts:
            running = np.cumsum(weight)
            q = residual[min(int(np.searchsorted(running, tau * running[-1])), len(residual) - 1)]
            loss[rows, k] = weight @ quantile_loss(residual - q, tau) / running[-1]
            own = rows[seen.arm[rows] == k]
            quantile[own] = self._mean[own, k] + q
        return Tails(quantile, loss)


class SharpBounds:
    """Sharp bounds of a contrast; every end is a mean of scores.

    References
    ----------
    Dorn and Guo (2023), Journal of the American Statistical Association 118(544), 2645-2657 (sharpness). Dorn, Guo and
    Kallus (2025), Doubly-valid/doubly-sharp sensitivity analysis for causal inference with unmeasured confounding,
    Journal of the American Statistical Association 120(549), 331-342 (scores).
    """

    def __init__(self, contrast: Contrast, random_state):
        self._contrast = contrast
        self._tails = OutcomeTails(contrast, random_state)
        self._plain = contrast.scores()

    def scores(self, gamma: float, largest: bool) -> np.ndarray:
        """Scores of one end, (n,)."""
        if gamma == 1.0:
            return self._plain
        change, out = self._contrast.change, self._plain.copy()
        for part, up in ((np.clip(change, 0.0, None), largest), (np.clip(change, None, 0.0), not largest)):
            if part.any():
                tails = self._tails.at(gamma / (1 + gamma) if up else 1 / (1 + gamma))
                out += (part * sharp_scores(self._contrast, tails, gamma, up)).sum(axis=1)
        return out

    def value(self, gamma: float, largest: bool) -> float:
        """One end on these rows."""
        return float(np.average(self.scores(gamma, largest), weights=self._contrast.weight))

    def estimate(self, gamma: float, largest: bool, level: float) -> Estimate:
        """One end with its influences."""
        return self._contrast.estimate(self.scores(gamma, largest), level)

    def bootstrap(self, gammas: np.ndarray, bootstrap: ClusterBootstrap) -> np.ndarray:
        """Both ends for every Gamma in every draw: (n_draws, n_gammas, 2)."""
        scores = np.column_stack([self.scores(float(gamma), bool(end)) for gamma in gammas for end in (0, 1)])
        return bootstrap.means(scores).reshape(len(bootstrap.counts), len(gammas), 2)
