"""OptimalTreeClassifier: the best tree for labels and weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from policytree.estimators.base import TreeEstimator
from policytree.estimators.inputs import node_means, weigh
from policytree.exceptions import InputError


class OptimalTreeClassifier(ClassifierMixin, TreeEstimator):
    """The classification tree of least weighted error plus a price per leaf, with a proof.

    Parameters
    ----------
    regularization : float, default 0.01
        The price of a leaf as a share of the total weight: the tree minimises ``error rate + regularization * leaves``
        (Hu, Rudin and Seltzer, "Optimal sparse decision trees", NeurIPS 2019, eq. 1).
    max_depth : int or None, default 3
        Largest number of splits on a path. None leaves it to ``regularization`` alone; proofs then take much longer.
    min_samples_leaf : int, default 1
        Smallest number of rows in a leaf (weights are not counted).
    solver, time_limit, n_jobs, verbose
        As for :class:`PolicyTree`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    tree_, objective_value_, objective_bound_, optimality_gap_, status_, solution_
        As for :class:`PolicyTree`; the objective is the weighted error rate plus the price of the leaves.
    node_values_ : ndarray of shape (node_count, K)
        Weighted share of every class in every node.
    """

    def __init__(
        self,
        regularization=0.01,
        max_depth=3,
        min_samples_leaf=1,
        solver="direct",
        time_limit=None,
        n_jobs=None,
        verbose=0,
    ):
        self.regularization = regularization
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.solver = solver
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None):
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
            Features; text columns are categories, missing values are allowed.
        y : array-like of shape (n,)
            Class labels of any type.
        sample_weight : array-like of shape (n,), optional
            Weights >= 0.

        Returns
        -------
        OptimalTreeClassifier
            This estimator, fitted.
        """
        self._check_arguments()
        X = self._table(X, reset=True)
        y = column_or_1d(y, warn=True)
        if pd.isna(y).any() or (y.dtype.kind == "f" and np.isinf(y).any()):
            raise InputError("Input y contains NaN or infinity; drop the rows without a class.")
        check_consistent_length(X, y)
        check_classification_targets(y)
        X, y, _, weight = weigh(X, y, None, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        hit = np.eye(len(self.classes_))[codes]
        self._search(X, (1.0 - hit) * weight[:, None], float(weight.sum()), tuple(self.classes_))
        self.node_values_ = node_means(self.tree_, X, hit, weight)
        return self

    def predict(self, X) -> np.ndarray:
        """Return the class of every row, in the user's labels; shape (n,)."""
        leaves = self.apply(X)
        return self.classes_[self.tree_.action[leaves]]

    def predict_proba(self, X) -> np.ndarray:
        """Return the weighted share of every class in the leaf of every row; shape (n, K)."""
        leaves = self.apply(X)
        return self.node_values_[leaves]
