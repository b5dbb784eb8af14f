"""Cuts from an additive model: where its shape functions jump."""

from __future__ import annotations

import numpy as np

from policytree.exceptions import InputError


def additive_cuts(
    codes: np.ndarray, label: np.ndarray, weight: np.ndarray, *, tolerance: float = 0.1, random_state=0
) -> list[np.ndarray]:
    """Cuts where the shape functions of an explainable boosting machine jump.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, m)
        Integer codes of the split columns.
    label : ndarray of shape (m,)
    weight : ndarray of shape (m,), > 0
    tolerance : float
        A cut between two neighbouring bins of column j is kept if the score (the largest change over the classes) jumps
        there by more than ``tolerance * max_k importance_k / importance_j``, a column's importance being the mean of
        the absolute value of its contribution to the score.
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
    McTavish et al. (AAAI 2022), appendix E, where tolerances of 0.1 and 0.08 are tried, and boosted trees gave better
    training accuracy. Explainable boosting machines: Lou, Caruana and Gehrke, KDD 2012.
    """
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError as error:
        raise InputError(
            "model='additive' needs the package interpret (pip install interpret-core); or use model='auto'."
        ) from error
    model = ExplainableBoostingClassifier(
        interactions=0, feature_types=["continuous"] * len(codes), n_jobs=1, random_state=random_state
    )
    model.fit(codes.T.astype(np.float64), label, sample_weight=weight)
    importance = np.zeros(len(codes))
    found = [(np.empty(0, dtype=np.int64), np.empty(0))] * len(codes)
    terms = zip(model.term_features_, model.term_importances("avg_weight"), model.term_scores_, strict=True)
    for (j,), mean_size, scores in terms:
        importance[j] = mean_size
        found[j] = jumps(np.asarray(model.bins_[j][0], dtype=np.float64), np.asarray(scores))
    return cuts_at_jumps(found, importance, tolerance)


def cuts_at_jumps(found, importance: np.ndarray, tolerance: float) -> list[np.ndarray]:
    """The cuts of every column at which the score jumps by enough.

    Parameters
    ----------
    found : list of (ndarray, ndarray)
        Cuts of every column, and the size of the jump at each.
    importance : ndarray of shape (n_columns,), >= 0
    tolerance : float
    """
    least = tolerance * importance.max(initial=0.0)
    kept = (cut[jump * own > least] for (cut, jump), own in zip(found, importance, strict=True))
    return [np.unique(cut) for cut in kept]


def jumps(edges: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cuts between the bins of one column of codes, and the sizes of the jumps there.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,)
        A bin holds what is below its upper edge.
    scores : ndarray of shape (n_bins + 2,) or (n_bins + 2, n_classes)
        The first bin is that of missing values, the last that of unknown ones.
    """
    change = np.abs(np.diff(scores[1:-1], axis=0))
    change = change if change.ndim == 1 else change.max(axis=1)
    return np.ceil(edges).astype(np.int64) - 1, change[: len(edges)]
