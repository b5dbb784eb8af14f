"""Boosted reference models: fitted to codes, read out as cuts, with importances.

scikit-learn's ensembles are imported inside functions: estimators import this room, and few fits guess.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, clone

from policytree.exceptions import InputError

MANY = 300_000  # entries of the table beyond which histograms are faster


def make_model(kind, n_estimators: int, max_depth: int, learning_rate: float, random_state, size: int):
    """The reference model: a name ("auto", "gradient_boosting", "hist_gradient_boosting") or a classifier of these."""
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier

    if isinstance(kind, ClassifierMixin):
        return clone(kind)
    if kind == "auto":
        kind = "hist_gradient_boosting" if size > MANY else "gradient_boosting"
    if kind == "gradient_boosting":
        return GradientBoostingClassifier(
            n_estimators=n_estimators, max_depth=max_depth, learning_rate=learning_rate, random_state=random_state
        )
    return HistGradientBoostingClassifier(
        max_iter=n_estimators,
        max_depth=max_depth,
        learning_rate=learning_rate,
        early_stopping=False,
        random_state=random_state,
    )


def used_cuts(model, n_columns: int) -> list[np.ndarray]:
    """Sorted cuts of every column that a model fitted to codes (m, n_columns) uses; ``code <= cut`` goes left."""
    pairs = np.array(sorted({(j, int(np.floor(t))) for j, t, _ in _splits(model)}), dtype=np.int64).reshape(-1, 2)
    return [pairs[pairs[:, 0] == j, 1] for j in range(n_columns)]


def cut_gains(model, n_cuts: np.ndarray) -> np.ndarray:
    """Total gain of every cut in a model fitted to codes with ``n_cuts[j]`` cuts in column j; shape (n_cuts.sum(),)."""
    start = np.concatenate([[0], np.cumsum(n_cuts)])
    out = np.zeros(start[-1])
    for j, t, gain in _splits(model):
        out[start[j] + int(np.floor(t))] += gain
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
