"""Cuts from an additive model: where its shape functions jump."""

from __future__ import annotations

import numpy as np

from policytree.exceptions import InputError


def additive_cuts(
    codes: np.ndarray, label: np.ndarray, weight: np.ndarray, *, share: float = 0.95, random_state=0
) -> list[np.ndarray]:
    """Cuts at the largest jumps of an explainable boosting machine's shape functions.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, m)
        Integer codes of the split columns.
    label : ndarray of shape (m,)
    weight : ndarray of shape (m,), > 0
    share : float
        Jumps are taken from the largest down until they make up this share of all jumps; a jump's size is the change in
        score (largest over the classes) times the root of the shares of weight on both sides of it.
    random_state : int

    Returns
    -------
    list of ndarray
        Sorted cuts of every column: ``code <= cut`` goes left.

    Raises
    ------
    InputError
        If the package interpret is not installed.

    Notes
    -----
    Explainable boosting machines: Lou, Caruana and Gehrke, KDD 2012. Stumps of an additive model as guesses of
    thresholds: McTavish et al. (AAAI 2022), section 4.1.
    """
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError as error:
        raise InputError(
            "model='additive' needs the package interpret (pip install interpret-core); or use model='auto'."
        ) from error
    model = ExplainableBoostingClassifier(
        interactions=0, feature_types=["continuous"] * len(codes), n_jobs=1, random_state=random_state, outer_bags=4
    )
    model.fit(codes.T.astype(np.float64), label, sample_weight=weight)
    found = [_jumps(model, j, codes[j], weight) for j in range(len(codes))]
    size = np.concatenate([jump for _, jump in found])
    if not size.sum():
        return [np.empty(0, dtype=np.int64)] * len(codes)
    order = np.sort(size)[::-1]
    least = order[np.searchsorted(order.cumsum(), share * order.sum())]
    return [np.unique(cut[jump >= max(least, np.finfo(float).tiny)]) for cut, jump in found]


def _jumps(model, j: int, codes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cuts between the bins of one column, and the sizes of the jumps there."""
    term = next((t for t, features in enumerate(model.term_features_) if features == (j,)), None)
    if term is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    edges = np.asarray(model.bins_[j][0], dtype=np.float64)
    scores = np.asarray(model.term_scores_[term])[1:-1]  # the first bin is "missing", the last "unknown"
    change = np.abs(np.diff(scores, axis=0))
    change = change if change.ndim == 1 else change.max(axis=1)
    # A bin holds what is below its upper edge; codes are integers.
    cuts = np.ceil(edges).astype(np.int64) - 1
    left = np.array([weight[codes <= cut].sum() for cut in cuts]) / weight.sum()
    return cuts, change[: len(cuts)] * np.sqrt(left * (1 - left))
