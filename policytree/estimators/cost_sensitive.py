"""CostSensitiveTreeClassifier: the best tree where mistakes differ in what they cost."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import sorted_labels, weights
from policytree.estimators.arguments import inherits_documentation, own_arguments_first
from policytree.estimators.base import TreeEstimator
from policytree.estimators.classifier import label_codes, label_column
from policytree.estimators.inputs import reward_matrix, weigh
from policytree.estimators.search import Job
from policytree.exceptions import InputError
from policytree.weighting.label_weights import cost_table, losses_by_table


@inherits_documentation
@own_arguments_first
@dataclass(eq=False, repr=False)
class CostSensitiveTreeClassifier(ClassifierMixin, TreeEstimator):
    """The tree of least mean cost plus a price per leaf, with a proof.

    Parameters
    ----------
    costs : DataFrame, array-like of shape (K, K), or mapping, optional
        Cost of predicting the column's class when the row's class is true, for fits on labels; labels sorted for
        arrays; a mapping ``{(true, predicted): cost}`` leaves the others at zero. None: 1 for every mistake. Not used,
        and refused, if costs of every row are given to ``fit``.
    max_depth : int or None, default 3
        Largest number of splits on a path; None means no limit (then set ``regularization``, or
        ``max_leaf_nodes``).
    regularization : float, default 0
        The price of a leaf, in the unit of the mean cost: the tree minimises ``mean cost + regularization * leaves``.
    min_samples_leaf : int, default 1
        Smallest number of rows in a leaf (weights are not counted).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Classes of predictions: the sorted labels, the columns of ``costs``, or the columns of the costs given to
        ``fit``.
    cost_table_ : DataFrame or None
        ``costs`` with labels, true classes as index.
    objective_value_ : float
        The weighted mean cost of the training rows plus the price of the leaves and ``expected_cost_`` (this not where
        ``ExpectedCost`` limits it).
    node_values_ : ndarray of shape (node_count, K)
        Weighted mean cost of predicting every class in every node.

    Examples
    --------
    >>> from policytree import CostSensitiveTreeClassifier
    >>> X = [[1.0], [2.0], [3.0], [4.0]]
    >>> missed = {("ill", "well"): 10.0, ("well", "ill"): 1.0}
    >>> tree = CostSensitiveTreeClassifier(missed, max_depth=1).fit(X, ["well", "ill", "well", "ill"])
    >>> tree.predict(X).tolist(), tree.objective_value_
    (['well', 'ill', 'ill', 'ill'], 0.25)
    """

    costs: Any = None
    _: KW_ONLY
    max_depth: int | None = 3
    regularization: float = 0.0
    min_samples_leaf: int = 1

    @aligns_rows
    def fit(self, X: Table, y: Column, sample_weight: Column | None = None) -> Self:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
            Features; text columns are categories, missing values are allowed.
        y : array-like of shape (n,), or DataFrame or array-like of shape (n, K), K > 1
            Labels of any type; or what predicting each class costs for every row (column names are the classes).
        sample_weight : array-like of shape (n,), optional
            Weights >= 0; a row of weight 0 counts as absent.

        Returns
        -------
        CostSensitiveTreeClassifier
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
        X = self._table(X, reset=True)
        if _is_table(y):
            if self.costs is not None:
                raise InputError("y holds the costs of every row already; leave the argument costs at None.")
            losses, self.classes_ = reward_matrix(y, len(X), "costs")
            self.cost_table_ = None
        else:
            labels = label_column(y, X)
            self.classes_, losses = self._losses(labels)
        X, losses, _, weight = weigh(X, losses, None, sample_weight)
        return self._job(X, losses, losses, weight, self.classes_)

    def _objective_words(self) -> str:
        return "mean cost"

    def _losses(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Classes that can be predicted, and what each costs in every row; learns ``cost_table_``."""
        classes = sorted_labels(labels)
        if self.costs is None:
            self.cost_table_ = None
            return classes, 1.0 - np.take(np.eye(len(classes)), label_codes(labels, classes), axis=0)
        self.cost_table_ = table = cost_table(self.costs, classes)
        return table.columns.to_numpy(), losses_by_table(labels, table)

    def predict(self, X: Table) -> np.ndarray:
        """Return the class of every row, in the user's labels; shape (n,)."""
        leaves = self.apply(X)
        return self.classes_[self.tree_.action[leaves]]

    def predict_cost(self, X: Table) -> np.ndarray:
        """Return the mean training cost of every class in the leaf of every row; shape (n, K)."""
        leaves = self.apply(X)
        return self.node_values_[leaves]

    @aligns_rows
    def score(self, X: Table, y: Column, sample_weight: Column | None = None) -> float:
        """Minus the (weighted) mean cost of the predictions, so that larger is better.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
        y : array-like of shape (n,), or of shape (n, K)
            Labels, or what each prediction costs.
        sample_weight : array-like of shape (n,), optional
        """
        check_is_fitted(self)
        predicted = label_codes(self.predict(X), self.classes_)
        if _is_table(y):
            losses, columns = reward_matrix(y, len(predicted), "costs")
            order = label_codes(self.classes_, columns)
            if (order < 0).any():
                raise InputError(f"costs lack the column of the class {self.classes_[order < 0][0]!s}; add it.")
            losses = losses[:, order]
        else:
            labels = label_column(y, predicted)
            if self.cost_table_ is None:  # a class not seen at fit is a mistake whatever is predicted
                losses = (np.arange(len(self.classes_)) != label_codes(labels, self.classes_)[:, None]).astype(float)
            else:
                losses = losses_by_table(labels, self.cost_table_)
        chosen = losses[np.arange(len(predicted)), predicted]
        return -float(np.average(chosen, weights=weights(sample_weight, len(chosen), "X")))


def _is_table(y) -> bool:
    """Whether y holds a column per class (one column alone is labels)."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1
