"""Column elimination: as few cuts as a reference model can do with."""

from __future__ import annotations

import numpy as np

from policytree.guesses.boosting import importances

BATCH = 0.25  # share of the columns tried to be dropped at once; halved whenever that is too many


def eliminate_columns(
    model, codes: np.ndarray, cuts: list[np.ndarray], label: np.ndarray, weight: np.ndarray, tolerance: float
) -> tuple[list[np.ndarray], object]:
    """Drop cuts, the least important first, as long as the model refitted to the others scores as well.

    Parameters
    ----------
    model : classifier with ``fit`` and ``score``
        Refitted in place to binary columns, one a cut.
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
    pairs = np.array([(j, b) for j, kept in enumerate(cuts) for b in kept], dtype=np.int64).reshape(-1, 2)

    def binary(pairs: np.ndarray, codes: np.ndarray) -> np.ndarray:
        return (codes[pairs[:, 0]] <= pairs[:, 1:]).T.astype(np.float32)

    def fit(pairs: np.ndarray) -> float:
        table = binary(pairs, codes)
        model.fit(table, label, sample_weight=weight)
        return float(model.score(table, label, sample_weight=weight))

    least = fit(pairs) - tolerance - 1e-12  # sums of weights in another order differ by rounding
    gain = importances(model, len(pairs))
    batch = max(int((gain == 0).sum()), int(BATCH * len(pairs)), 1)
    while batch and len(pairs) > 1:
        batch = min(batch, len(pairs) - 1)
        kept = np.sort(np.argsort(gain, kind="stable")[batch:])
        if fit(pairs[kept]) >= least:
            pairs, gain = pairs[kept], importances(model, len(kept))
            batch = min(max(batch, int((gain == 0).sum())), len(pairs) - 1)
        else:
            batch //= 2
    fit(pairs)
    left = [pairs[pairs[:, 0] == j, 1] for j in range(len(cuts))]
    return left, lambda codes: model.predict(binary(pairs, codes))
