"""Column elimination: as few cuts as a reference model can do with."""

from __future__ import annotations

import numpy as np

from policytree.guesses.boosting import cut_gains

BATCH = 0.25  # share of the columns tried to be dropped at once; halved whenever that is too many


def eliminate_columns(
    model, codes: np.ndarray, cuts: list[np.ndarray], label: np.ndarray, weight: np.ndarray, tolerance: float
) -> tuple[list[np.ndarray], object]:
    """Drop cuts, the least important first, as long as the model refitted to the others scores as well.

    Parameters
    ----------
    model : classifier with ``fit`` and ``score``
        Refitted in place.
    codes : ndarray of shape (n_columns, m)
    cuts : list of ndarray
        Cuts of every column to start from.
    label, weight : ndarray of shape (m,)
    tolerance : float
        How much the weighted training accuracy may fall in all.

    Returns
    -------
    cuts : list of ndarray
        What is left of the cuts.
    predict : callable
        Labels that the model fitted to the remaining cuts predicts for codes (n_columns, n).

    Notes
    -----
    McTavish et al. (AAAI 2022), section 4.1: fit, order by importance, drop the least, refit, until the score drops.
    Columns the model does not use are dropped at once; beyond, several are tried in one refit, then fewer: the result
    may differ from dropping one by one, the criterion is the same.
    """
    pairs = as_pairs(cuts)

    def fit(pairs: np.ndarray) -> float:
        table = coded(pairs, codes)
        model.fit(table, label, sample_weight=weight)
        return float(model.score(table, label, sample_weight=weight))

    def gains(pairs: np.ndarray) -> np.ndarray:
        return cut_gains(model, np.unique(pairs[:, 0], return_counts=True)[1])

    least = fit(pairs) - tolerance - 1e-12  # sums of weights in another order differ by rounding
    gain = gains(pairs)
    batch = max(int((gain == 0).sum()), int(BATCH * len(pairs)), 1)
    while batch and len(pairs) > 1:
        batch = min(batch, len(pairs) - 1)
        kept = np.sort(np.argsort(gain, kind="stable")[batch:])
        if fit(pairs[kept]) >= least:
            pairs, gain = pairs[kept], gains(pairs[kept])
            batch = min(max(batch, int((gain == 0).sum())), len(pairs) - 1)
        else:
            batch //= 2
    fit(pairs)
    left = [pairs[pairs[:, 0] == j, 1] for j in range(len(cuts))]
    return left, lambda codes: model.predict(coded(pairs, codes))


def as_pairs(cuts: list[np.ndarray]) -> np.ndarray:
    """Cuts of every column as sorted rows ``(column, cut)``; shape (n_cuts, 2)."""
    return np.array([(j, b) for j, kept in enumerate(cuts) for b in kept], dtype=np.int64).reshape(-1, 2)


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
    """Codes that tell apart only what cuts ``(column, cut)``, sorted, tell apart; shape (m, columns with a cut).

    Trees on these split as trees on one binary column per cut do.
    """
    columns = np.unique(pairs[:, 0])
    out = np.empty((codes.shape[1], len(columns)), dtype=np.float32)
    for k, j in enumerate(columns):
        cuts = pairs[pairs[:, 0] == j, 1]
        out[:, k] = np.searchsorted(cuts, np.arange(int(codes[j].max()) + 1), side="left")[codes[j]]
    return out
