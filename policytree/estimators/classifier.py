"""OptimalTreeClassifier: the best tree for labels and weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from policytree.annotations import Column, Table
from policytree.checks import sorted_labels, weights
from policytree.estimators.arguments import inherits_documentation
from policytree.estimators.base import TreeEstimator
from policytree.estimators.inputs import weigh
from policytree.estimators.search import Job
from policytree.estimators.views import TableViews
from policytree.exceptions import InputError
from policytree.weighting.label_weights import class_balanced_weights

OBJECTIVES = ("accuracy", "balanced_accuracy")


class ClassPredictions(ClassifierMixin, TableViews):
    """What a fitted tree says of the classes of new rows."""

    classes_: np.ndarray
    node_values_: np.ndarray

    def predict(self, X: Table) -> np.ndarray:
        """Return the class of every row, in the user's labels; shape (n,)."""
        leaves = self.apply(X)
        return self.classes_[self.tree_.action[leaves]]

    def predict_proba(self, X: Table) -> np.ndarray:
        """Return the weighted share of every class in the leaf of every row; shape (n, K)."""
        leaves = self.apply(X)
        return self.node_values_[leaves]

    def score(self, X: Table, y: Column, sample_weight: Column | None = None) -> float:
        """Return the (weighted) share of rows whose class is predicted; labels of any type."""
        predicted = label_codes(self.predict(X), self.classes_)
        hit = label_codes(label_column(y, predicted), self.classes_) == predicted
        return float(np.average(hit, weights=weights(sample_weight, len(hit), "X")))


@inherits_documentation
@dataclass(eq=False, repr=False)
class OptimalTreeClassifier(ClassPredictions, TreeEstimator):
    """The classification tree of least weighted error plus a price per leaf, with a proof.

    Parameters
    ----------
    regularization : float, default 0.01
        The price of a leaf as a share of the total weight: the tree minimises ``error rate + regularization * leaves``
        (Hu, Rudin and Seltzer, "Optimal sparse decision trees", NeurIPS 2019, eq. 1).
    max_depth : int or None, default None
        Largest number of splits on a path. None leaves it to ``regularization`` and ``max_leaf_nodes``.
    time_limit : float or None, default 60.0
        Seconds after which the search ends with its best tree, its gap and a ``SearchWarning``; without a depth
        limit, proofs on noisy data may take much longer than finding the tree. None: until it is proved.
    min_samples_leaf : int, default 1
        Smallest number of rows in a leaf (weights are not counted).
    objective : {"accuracy", "balanced_accuracy"}, default "accuracy"
        Whether every unit of weight counts alike, or every class (weights are then divided by their class's total).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    objective_value_ : float
        The weighted error rate of the training rows plus the price of the leaves and ``expected_cost_`` (tests cost
        errors per person, by the weights that the objective counts).
    node_values_ : ndarray of shape (node_count, K)
        Share of every class in every node, by the weights that the objective counts.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> X = [[1.0], [2.0], [3.0], [4.0]]
    >>> tree = OptimalTreeClassifier(regularization=0.1).fit(X, ["no", "no", "yes", "yes"])
    >>> tree.predict([[0.0], [9.0]]).tolist(), round(tree.objective_value_, 9)
    (['no', 'yes'], 0.2)
    """

    regularization: float = 0.01
    max_depth: int | None = None
    min_samples_leaf: int = 1
    time_limit: float | None = field(default=60.0, kw_only=True)
    objective: str = "accuracy"

    def fit(self, X: Table, y: Column, sample_weight: Column | None = None) -> Self:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
            Features; text columns are categories, missing values are allowed.
        y : array-like of shape (n,)
            Class labels of any type.
        sample_weight : array-like of shape (n,), optional
            Weights >= 0; a row of weight 0 counts as absent.

        Returns
        -------
        OptimalTreeClassifier
            This estimator, fitted.

        Raises
        ------
        InputError
            If an argument has the wrong shape, type or range; the message names it.
        """
        return self._fit_job(self._prepare(X, y, sample_weight))

    def _prepare(self, X, y, sample_weight=None) -> Job:
        """Check the data and learn names and classes."""
        self._check_arguments()
        if self.objective not in OBJECTIVES:
            raise InputError(f"objective must be 'accuracy' or 'balanced_accuracy'; got {self.objective!r}.")
        X = self._table(X, reset=True)
        y = label_column(y, X)
        X, y, _, weight = weigh(X, y, None, sample_weight)
        self.classes_ = sorted_labels(y)
        codes = label_codes(y, self.classes_)
        if self.objective == "balanced_accuracy" and len(self.classes_) > 1:
            weight = class_balanced_weights(codes, sample_weight=weight)
        hit = np.eye(len(self.classes_))[codes]
        return self._job(X, 1.0 - hit, hit, weight, self.classes_)


def label_column(y: Any, X: np.ndarray) -> np.ndarray:
    """Labels of any type as one column, none missing, as many as X has rows."""
    y = column_or_1d(_labels_as_given(y), warn=True)
    if pd.isna(y).any() or (y.dtype.kind == "f" and np.isinf(y).any()):
        raise InputError("Input y contains NaN or infinity; drop the rows without a class.")
    check_consistent_length(X, y)
    if y.dtype.kind == "f":  # of other types, every value is a label
        check_classification_targets(y)
    return y


def _labels_as_given(y):
    """Labels without a detour over numpy's common type, which turns ``[1, "a"]`` into text and integers into floats."""
    if isinstance(y, (list, tuple)):
        array = np.asarray(y, dtype=object) if len({type(value) for value in y}) > 1 else np.asarray(y)
        return array if array.ndim == 1 else np.asarray(y)
    if isinstance(getattr(y, "dtype", None), pd.api.extensions.ExtensionDtype) and not pd.isna(y).any():
        return np.array(pd.Series(y).tolist())
    return y


def label_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Position of every label in the classes; -1 for labels that are none of them."""
    plain = len(classes) > 0 and y.dtype.kind == classes.dtype.kind and y.dtype.kind in "biufUS"
    if plain and (classes[1:] > classes[:-1]).all():  # takes a tenth of the time
        at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        return np.where(classes[at] == y, at, -1)
    return pd.Index(classes).get_indexer(pd.Index(y)).astype(np.int64)
