"""Fitted scikit-learn ensembles as arrays.

A tree of scikit-learn compares ``float32(x) <= threshold``. Rounding never reverses an order, so that for every
threshold there is a largest float64 number that goes left: the threshold for numbers that are not rounded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from policytree.born_again.ensembles import (
    LARGEST,
    LEAF,
    NONNEGATIVE,
    POSITIVE,
    EnsembleTree,
    TreeEnsemble,
)
from policytree.common.validation import check_choice
from policytree.exceptions import InputError

KNOWN = "a random forest, extra trees, bagging of trees, (histogram) gradient boosting, or one tree, for classification"
KEYS = ("trees", "n_features", "classes", "feature_names")
PROBES = 512  # rows on which what was read is compared with the ensemble's own predictions


def read_ensemble(ensemble: Any, voting: str = "soft") -> TreeEnsemble:
    """Read an ensemble.

    Parameters
    ----------
    ensemble : estimator, TreeEnsemble or mapping
        A fitted classifier of scikit-learn, or a ``FrozenEstimator`` of one; or a :class:`TreeEnsemble`; or the keyword
        arguments of :meth:`TreeEnsemble.from_arrays` as a mapping.
    voting : {"soft", "hard"}
        "soft": as the ensemble's own ``predict`` decides. "hard": one vote a tree, ties to the first class.

    Returns
    -------
    TreeEnsemble

    Raises
    ------
    InputError
        If the ensemble is not fitted, of another kind, or splits on categories.

    Notes
    -----
    Forests with ``n_jobs`` add the trees' shares up in an order of chance, which may decide ties; they are read as with
    one job. Bagging adds up the shares of every job's trees first, and is read so. Trees that were grown on missing
    values are read as they decide on complete rows.
    """
    check_choice(voting, "voting", ("soft", "hard"))
    if isinstance(ensemble, TreeEnsemble):
        read = ensemble
    elif isinstance(ensemble, Mapping):
        if "trees" not in ensemble or "n_features" not in ensemble:
            raise InputError("An ensemble that is a mapping needs the keys 'trees' and 'n_features'.")
        unknown = [key for key in ensemble if key not in KEYS]
        if unknown:
            raise InputError(f"The key {unknown[0]!r} is not known; an ensemble may have {', '.join(KEYS)}.")
        read = TreeEnsemble.from_arrays(**ensemble)
    else:
        ensemble = thawed(ensemble)
        read = _from_sklearn(ensemble)
        _compare(read, ensemble)
    return read.with_hard_votes() if voting == "hard" else read


def thawed(ensemble: Any) -> Any:
    """Return the estimator within a FrozenEstimator, and any other as it is."""
    from sklearn.frozen import FrozenEstimator

    return ensemble.estimator if isinstance(ensemble, FrozenEstimator) else ensemble


def own_codes(model: Any, read: TreeEnsemble) -> Callable[[np.ndarray], np.ndarray]:
    """Return a fitted scikit-learn ensemble's own predictions, as positions in ``read.classes``; -1 for other labels.

    Forests predict as in one job: several add up shares in an order of chance.
    """
    model = copy.copy(thawed(model))
    if hasattr(model, "n_jobs") and not hasattr(model, "estimators_features_"):  # bagging is read with its jobs
        model.n_jobs = 1
    labels = np.asarray(model.classes_)

    def predict(X: np.ndarray) -> np.ndarray:
        table: Any = X
        if read.named:
            import pandas as pd

            table = pd.DataFrame(X, columns=list(model.feature_names_in_))
        predicted = model.predict(table)
        codes = np.minimum(np.searchsorted(labels, predicted), len(labels) - 1)
        return np.where(labels[codes] == predicted, codes, -1)

    return predict


def float64_threshold(threshold: np.ndarray) -> np.ndarray:
    """The largest float64 x with ``float32(x) <= threshold``, rounding to nearest and ties to even."""
    threshold = np.asarray(threshold, dtype=np.float64)
    below = threshold.astype(np.float32)
    below = np.where(below > threshold, np.nextafter(below, np.float32(-np.inf)), below)
    middle = (below.astype(np.float64) + np.nextafter(below, np.float32(np.inf)).astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) <= below, middle, np.nextafter(middle, -np.inf))


def _from_sklearn(model: Any) -> TreeEnsemble:
    from sklearn import ensemble as sk
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.utils.validation import check_is_fitted

    readers = (
        ((sk.RandomForestClassifier, sk.ExtraTreesClassifier), _forest),
        ((sk.BaggingClassifier,), _bagging),
        ((sk.GradientBoostingClassifier,), _boosting),
        ((sk.HistGradientBoostingClassifier,), _histogram_boosting),
        ((DecisionTreeClassifier,), _single),
    )
    for kinds, reader in readers:
        if isinstance(model, kinds):
            try:
                check_is_fitted(model)
            except NotFittedError as error:
                raise InputError(f"The ensemble, {type(model).__name__}, is not fitted; fit it first.") from error
            return reader(model)
    raise InputError(f"ensemble must be {KNOWN}, or arrays; got {type(model).__name__}.")


def _describe(model: Any) -> dict[str, Any]:
    """Labels and names."""
    if getattr(model, "n_outputs_", 1) != 1:
        raise InputError("The ensemble predicts several targets; fit one for a single target.")
    names = getattr(model, "feature_names_in_", None)
    shown = [f"x{j}" for j in range(model.n_features_in_)] if names is None else names
    return {
        "classes": tuple(model.classes_.tolist()),
        "feature_names": tuple(map(str, shown)),
        "named": names is not None,
    }


def _sklearn_tree(tree: Any, value: np.ndarray, columns: np.ndarray | None = None) -> EnsembleTree:
    """A tree of scikit-learn with given values of its nodes; ``columns``: which of the table's it was grown on."""
    leaf = tree.children_left < 0
    feature = tree.feature if columns is None else columns[np.where(leaf, 0, tree.feature)]
    return _on_complete_rows(
        np.where(leaf, LEAF, feature).astype(np.int64),
        np.where(leaf, np.nan, float64_threshold(np.where(leaf, 0.0, tree.threshold))),
        tree.children_left.astype(np.int64),
        tree.children_right.astype(np.int64),
        np.ascontiguousarray(value, dtype=np.float64),
    )


def _on_complete_rows(feature, threshold, left, right, value) -> EnsembleTree:
    """A tree without splits at an infinite threshold, which tell only missing or infinite values from others."""
    kept: list[int] = []
    children: list[list[int]] = []
    todo = [(0, -1, 0)]
    while todo:
        node, parent, side = todo.pop()
        while np.isinf(threshold[node]):
            node = int(left[node] if threshold[node] > 0 else right[node])
        if parent >= 0:
            children[parent][side] = len(kept)
        if feature[node] != LEAF:
            todo += [(int(right[node]), len(kept), 1), (int(left[node]), len(kept), 0)]
        kept.append(node)
        children.append([LEAF, LEAF])
    one, other = np.array(children, dtype=np.int64).T.copy()
    return EnsembleTree(feature[kept], threshold[kept], one, other, value[kept])


def _forest(model: Any) -> TreeEnsemble:
    trees = tuple(_sklearn_tree(e.tree_, e.tree_.value[:, 0, :]) for e in model.estimators_)
    return TreeEnsemble(
        trees, **_describe(model), base=np.zeros(len(model.classes_)), ends=(len(trees),), divisor=float(len(trees))
    )


def _single(model: Any) -> TreeEnsemble:
    tree = _sklearn_tree(model.tree_, model.tree_.value[:, 0, :])
    return TreeEnsemble((tree,), **_describe(model), base=np.zeros(len(model.classes_)), ends=(1,))


def _bagging(model: Any) -> TreeEnsemble:
    from joblib import effective_n_jobs
    from sklearn.tree import DecisionTreeClassifier

    K, trees = len(model.classes_), []
    for one, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        if not isinstance(one, DecisionTreeClassifier):
            raise InputError(f"The bagging ensemble holds {type(one).__name__}; only bagging of trees can be read.")
        value = np.zeros((one.tree_.node_count, K))  # a bootstrap sample may lack classes
        value[:, np.arange(K) if one.n_classes_ == K else one.classes_] = one.tree_.value[:, 0, :]
        trees.append(_sklearn_tree(one.tree_, value, np.asarray(columns)))
    jobs = min(effective_n_jobs(model.n_jobs), len(trees))
    sizes = [len(trees) // jobs + (k < len(trees) % jobs) for k in range(jobs)]
    ends = tuple(np.cumsum(sizes).tolist())
    return TreeEnsemble(tuple(trees), **_describe(model), base=np.zeros(K), ends=ends, divisor=float(len(trees)))


def _boosting(model: Any) -> TreeEnsemble:
    K = model.estimators_.shape[1]
    trees = []
    for stage in model.estimators_:
        for k, one in enumerate(stage):
            value = np.zeros((one.tree_.node_count, K))
            value[:, k] = model.learning_rate * one.tree_.value[:, 0, 0]
            trees.append(_sklearn_tree(one.tree_, value))
    if model.init is not None and not (isinstance(model.init, str) and model.init == "zero"):
        raise InputError("The boosted ensemble begins with a model of its own (init); a tree cannot follow that.")
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0]
    decision = NONNEGATIVE if K == 1 else LARGEST
    return TreeEnsemble(
        tuple(trees), **_describe(model), base=np.array(base, np.float64), ends=(len(trees),), decision=decision,
        additive=True,
    )  # fmt: skip


def _histogram_boosting(model: Any) -> TreeEnsemble:
    K = model.n_trees_per_iteration_
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise InputError("The boosted ensemble splits on categories; fit one on numbers, such as one-hot columns.")
    trees = []
    for stage in model._predictors:
        for k, predictor in enumerate(stage):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            value = np.zeros((len(nodes), K))
            value[:, k] = nodes["value"]
            trees.append(
                _on_complete_rows(
                    np.where(leaf, LEAF, nodes["feature_idx"]).astype(np.int64),
                    np.where(leaf, np.nan, nodes["num_threshold"]),
                    np.where(leaf, LEAF, nodes["left"]).astype(np.int64),
                    np.where(leaf, LEAF, nodes["right"]).astype(np.int64),
                    value,
                )
            )
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    decision = POSITIVE if K == 1 else LARGEST
    ends = (len(trees),)
    return TreeEnsemble(tuple(trees), **_describe(model), base=base, ends=ends, decision=decision, additive=True)


def _compare(read: TreeEnsemble, model: Any) -> None:
    """Make sure that what was read predicts as the ensemble does: other versions may keep their trees otherwise."""
    rng = np.random.default_rng(0)
    X = np.zeros((PROBES, read.n_features))
    for j, thresholds in enumerate(read.thresholds()):
        if len(thresholds):
            near = np.concatenate(
                [thresholds, np.nextafter(thresholds, np.inf), thresholds + 1.0, thresholds[:1] - 1.0]
            )
            X[:, j] = rng.choice(near, PROBES)
    if not np.array_equal(read.predict_codes(X), own_codes(model, read)(X)):
        raise InputError(
            f"{type(model).__name__} of this version of scikit-learn keeps its trees in a way that is not known here: "
            "its own predictions differ; describe it by arrays (TreeEnsemble.from_arrays)."
        )
