"""Boosted reference models of scikit-learn: fitted to codes, read out as cuts, with importances.

scikit-learn's ensembles are imported inside functions: estimators import this room, and few fits guess.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, clone

from policytree.exceptions import InputError


def make_model(kind, n_estimators: int, max_depth: int, learning_rate: float, random_state):
    """A classifier of scikit-learn's: a copy of the given one, or "hist_gradient_boosting"."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    if isinstance(kind, ClassifierMixin):
        return clone(kind)
    return HistGradientBoostingClassifier(
        max_iter=n_estimators,
        max_depth=max_depth,
        learning_rate=learning_rate,
        early_stopping=False,
        random_state=random_state,
    )


def is_histogram(kind) -> bool:
    """Whether a model bins its columns, so that these may have no more than 255 codes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return isinstance(kind, HistGradientBoostingClassifier) or kind == "hist_gradient_boosting"


def cut_gains(model, n_cuts: np.ndarray) -> np.ndarray:
    """Total gain of every cut in a model fitted to codes with ``n_cuts[j]`` cuts in column j; shape (n_cuts.sum(),).

    -1 where no split uses a cut.
    """
    start = np.concatenate([[0], np.cumsum(n_cuts)])
    out = np.full(start[-1], -1.0)
    for j, t, gain in _splits(model):
        k = start[j] + int(np.floor(t))
        out[k] = max(out[k], 0.0) + gain
    return out


def _splits(model):
    """Every split of every tree: (column, threshold, gain)."""
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier

    if isinstance(model, GradientBoostingClassifier):
        for estimator in model.estimators_.ravel():
            tree = estimator.tree_
            for node in np.flatnonzero(tree.children_left >= 0):
                sides = tree.children_left[node], tree.children_right[node]
                gain = tree.weighted_n_node_samples[node] * tree.impurity[node]
                gain -= sum(tree.weighted_n_node_samples[s] * tree.impurity[s] for s in sides)
                yield int(tree.feature[node]), float(tree.threshold[node]), float(gain)
    elif isinstance(model, HistGradientBoostingClassifier):
        # scikit-learn has no public access to these trees; the attribute is what its own inspection module reads.
        for trees in model._predictors:
            for tree in trees:
                for node in tree.nodes[tree.nodes["is_leaf"] == 0]:
                    yield int(node["feature_idx"]), float(node["num_threshold"]), float(node["gain"])
    else:
        raise InputError(
            f"Thresholds cannot be read from a {type(model).__name__}; use a GradientBoostingClassifier or a "
            "HistGradientBoostingClassifier, or guess lower bounds only."
        )
