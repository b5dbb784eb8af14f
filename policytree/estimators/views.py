"""What all fitted trees show: their leaves for new rows, their size, pictures and exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from policytree.annotations import Table
from policytree.binning import FeatureEncoder
from policytree.exceptions import InputError
from policytree.tree import Tree
from policytree.unseen import warn_of_unseen

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from policytree.plotting import PolicyTreeDisplay


class NotebookView(BaseEstimator):
    """What a notebook shows of an estimator: scikit-learn's diagram before ``fit``, then its tree and certificate."""

    def _repr_html_(self) -> str:
        if not hasattr(self, "tree_"):
            return super()._repr_html_()
        from policytree.plotting import tree_html

        return tree_html(self, self.certificate() if hasattr(self, "certificate") else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class TreeViews(NotebookView):
    """What a fitted estimator with one tree tells and shows of it."""

    tree_: Tree

    def get_depth(self) -> int:
        """Largest number of splits on a path of the fitted tree."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the fitted tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def get_used_features(self) -> list[str]:
        """Return the names of the features that the fitted tree splits on, in the order of the columns."""
        check_is_fitted(self)
        return [self.tree_.features[j].name for j in self.tree_.used_features]

    def export_text(self, **options: Any) -> str:
        """Return the tree as indented text; options as in :func:`policytree.export.export_text`."""
        from policytree.export import export_text

        check_is_fitted(self)
        return export_text(self.tree_, **options)

    def export_graphviz(self, **options: Any) -> str:
        """Return the tree in the DOT language; options as in :func:`policytree.export.export_graphviz`."""
        from policytree.export import export_graphviz

        check_is_fitted(self)
        return export_graphviz(self.tree_, **options)

    def to_dict(self) -> dict:
        """Return the tree as plain Python values that JSON can hold."""
        from policytree.serialization import to_dict

        check_is_fitted(self)
        return to_dict(self.tree_)

    def to_json(self) -> str:
        """Return the tree as JSON; :func:`policytree.serialization.from_json` reads it."""
        from policytree.serialization import to_json

        check_is_fitted(self)
        return to_json(self.tree_)

    def plot(self, ax: Any = None, **options: Any) -> PolicyTreeDisplay:
        """Draw the tree with matplotlib; options as in :func:`policytree.plot_tree`."""
        from policytree.plotting import plot_tree

        check_is_fitted(self)
        return plot_tree(self, ax=ax, **options)


class TableViews(TreeViews):
    """The same for trees of tables: tables in, by scikit-learn's rules, and the leaves of new rows."""

    node_costs_: np.ndarray

    def _table(self, X, *, reset: bool) -> np.ndarray:
        """Numbers of ``X`` by scikit-learn's rules; frames may hold text columns and missing values."""
        if hasattr(X, "columns"):
            learnt = FeatureEncoder.fit_encode(X) if reset else None  # refuses tables in its own words
            validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise InputError("X has no rows; pass at least one.")
        else:
            X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
            learnt = FeatureEncoder.fit_encode(X) if reset else None
        if learnt is not None:
            self.encoder_: FeatureEncoder = learnt[0]
        return self.encoder_.encode(X) if learnt is None else learnt[1]

    def apply(self, X: Table) -> np.ndarray:
        """Node id of the leaf that every row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,), int64

        Warns
        -----
        UnseenValueWarning
            If rows have a category, or a missing value, that no training row had where the tree asks about it.
        """
        check_is_fitted(self)
        encoded = self._table(X, reset=False)
        warn_of_unseen(self.tree_, self.encoder_, X, encoded)
        return self.tree_.apply(encoded)

    def decision_path(self, X: Table) -> csr_matrix:
        """Sparse indicator matrix (n, node_count) of the nodes that every row passes."""
        check_is_fitted(self)
        return self.tree_.decision_path(self._table(X, reset=False))

    def measurement_cost(self, X: Table) -> np.ndarray:
        """What the tests on the way of every row cost, by ``feature_costs``; shape (n,).

        Its mean over new rows is their expected cost.
        """
        path = self.decision_path(X)
        return np.asarray(path @ self.node_costs_, dtype=np.float64)
