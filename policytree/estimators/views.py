"""Views of all fitted trees: their leaves for new rows, their size, pictures and exports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from policytree.common.typing import Table
from policytree.common.validation import refuse_odd_arrays
from policytree.data.feature_encoder import FeatureEncoder, collected, refuse_large_integers
from policytree.data.sources import READ_ROWS
from policytree.encoded.store import EncodedData
from policytree.exceptions import InputError
from policytree.trees.tree import Tree
from policytree.trees.unseen_values import warn_of_unseen

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix
    from sklearn.tree import DecisionTreeClassifier

    from policytree.plotting.partition import PartitionDisplay
    from policytree.plotting.trees import PolicyTreeDisplay


class NotebookView(BaseEstimator):
    """View of an estimator in a notebook: scikit-learn's diagram before ``fit``, then its tree and certificate."""

    def _repr_html_(self) -> str:
        if not hasattr(self, "tree_"):
            return super()._repr_html_()
        from policytree.plotting.trees import tree_html

        return tree_html(self, self.certificate() if hasattr(self, "certificate") else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


class TreeViews(NotebookView):
    """Size, pictures and exports of a fitted estimator with one tree."""

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
        """Return the tree as indented text; options as in :func:`policytree.trees.text.export_text`."""
        from policytree.trees.text import export_text

        check_is_fitted(self)
        return export_text(self.tree_, **options)

    def export_graphviz(self, **options: Any) -> str:
        """Return the tree in the DOT language; options as in :func:`policytree.trees.text.export_graphviz`."""
        from policytree.trees.text import export_graphviz

        check_is_fitted(self)
        return export_graphviz(self.tree_, **options)

    def export_sql(self, **options: Any) -> str:
        """Return the tree as an SQL expression; options as in :func:`policytree.trees.source_code.export_sql`."""
        from policytree.trees.source_code import export_sql

        check_is_fitted(self)
        return export_sql(self.tree_, **options)

    def export_python(self, **options: Any) -> str:
        """Return the tree as a Python function; options as in :func:`policytree.trees.source_code.export_python`."""
        from policytree.trees.source_code import export_python

        check_is_fitted(self)
        return export_python(self.tree_, **options)

    def to_rules(self) -> pd.DataFrame:
        """Return one row a leaf: the rule, its action, number and share of training rows.

        ``model.to_rules().to_csv("rules.csv")`` makes a table that spreadsheets open.
        """
        from policytree.trees.text import to_rules

        check_is_fitted(self)
        return to_rules(self.tree_)

    def to_dict(self) -> dict:
        """Return the tree as plain Python values that JSON can hold."""
        from policytree.serialization import to_dict

        check_is_fitted(self)
        return to_dict(self.tree_)

    def to_json(self) -> str:
        """Return the tree as JSON with a checksum; :func:`policytree.serialization.from_json` reads it."""
        from policytree.serialization import to_json

        check_is_fitted(self)
        return to_json(self.tree_)

    def plot(self, ax: Any = None, **options: Any) -> PolicyTreeDisplay:
        """Draw the tree with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of the right size.
        **options
            ``title``, ``treatment_colors``, ``fontsize``, ``unit``, ``value_name`` and ``limits``, which
            :meth:`policytree.plotting.trees.PolicyTreeDisplay.plot` describes; ``leaf_summary``, a frame of
            :func:`policytree.leaf_summary` or :func:`policytree.honest_leaf_summary` with the values that the leaves
            show; and ``X``, the table of ``fit``, for thresholds that are as short as its rows allow.

        Returns
        -------
        PolicyTreeDisplay
            With ``figure_`` and ``ax_``.
        """
        from policytree.plotting.trees import PolicyTreeDisplay

        check_is_fitted(self)
        return PolicyTreeDisplay.from_estimator(self, ax=ax, **options)


class TableViews(TreeViews):
    """The same for trees of tables: tables in, by scikit-learn's rules, and the leaves of new rows."""

    node_costs_: np.ndarray
    feature_names_in_: np.ndarray
    n_features_in_: int

    def _table(self, X, *, reset: bool) -> np.ndarray:
        """Numbers of ``X`` by scikit-learn's rules; frames may hold text columns and missing values."""
        X = collected(X)
        if isinstance(X, EncodedData):
            raise InputError(
                "Encoded rows are what PolicyTree.fit and OptimalTreeClassifier.fit take, nothing else; to predict, "
                "pass a table, or the source to model.predict_to_file."
            )
        if not reset:
            asked = self.encoder_.encode_part(X, self.tree_.used_features)
            if asked is not None:
                return asked
        if hasattr(X, "columns"):
            learnt = FeatureEncoder.fit_encode(X) if reset else None  # refuses tables in its own words
            self._validated(X, "pass X[list(model.feature_names_in_)].", skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise InputError("X has no rows; pass at least one.")
        else:
            refuse_odd_arrays(X, "X")
            if reset:
                _refuse_large(X)
            remedy = "pass an array of numbers, or a DataFrame, whose text columns are treated as categories."
            # The encoder refuses infinite numbers and lets missing ones pass; once is enough.
            X = self._validated(X, remedy, dtype=np.float64, ensure_all_finite=False, reset=reset)
            learnt = FeatureEncoder.fit_encode(X) if reset else None
        if learnt is not None:
            self.encoder_: FeatureEncoder = learnt[0]
        return self.encoder_.encode(X) if learnt is None else learnt[1]

    def _validated(self, X, remedy: str, **options):
        """Return ``X`` validated by scikit-learn; its refusals become ours."""
        try:
            return validate_data(self, X, **options)
        except InputError:
            raise
        except (OverflowError, ValueError) as error:
            if str(error).startswith("Complex data"):  # scikit-learn adds the whole array
                raise InputError("Complex data not supported: X holds complex numbers; give real ones.") from error
            words, array, rest = str(error).partition(":\narray=")
            if array:  # the whole array again, and behind it how to reshape it
                words += ". Reshape" + rest.rpartition(".\nReshape")[2]
            raise InputError(f"{words.rstrip(chr(10) + '. ')}; {remedy}") from error

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
        X = collected(X)
        encoded = self._table(X, reset=False)
        warn_of_unseen(self.tree_, self.encoder_, X, encoded)
        return self.tree_.apply(encoded)

    def plot_partition(self, X: Table, *, ax: Any = None, **options: Any) -> PartitionDisplay:
        """Draw the plane of the two covariates that the tree asks about, coloured by what it gives.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows that say how far the plane reaches.
        ax : matplotlib Axes, optional
        **options
            ``title`` and ``treatment_colors``, which :meth:`policytree.plotting.partition.PartitionDisplay.plot`
            describes.

        Returns
        -------
        PartitionDisplay
            With ``figure_`` and ``ax_``.

        Raises
        ------
        InputError
            If the tree does not ask about exactly two numeric covariates.
        """
        from policytree.plotting.partition import PartitionDisplay, partition

        check_is_fitted(self)
        data = partition(self.tree_, self._table(X, reset=False))
        if data is None:
            raise InputError(
                "A map needs a tree that asks about exactly two numeric covariates; this one asks about "
                f"{', '.join(self.get_used_features()) or 'none'}."
            )
        return PartitionDisplay(data).plot(ax=ax, **options)

    def predict_to_file(
        self,
        source: Any,
        path: str | os.PathLike,
        *,
        keep: Sequence[str] = (),
        column: str = "prediction",
        batch_rows: int = READ_ROWS,
    ) -> Path:
        """Predict rows of any number, read a batch at a time, and write what is predicted to a Parquet or CSV file.

        Parameters
        ----------
        source : path, list of paths, Arrow dataset or table, DuckDB relation, or DataFrame
            Rows, in one of the forms that :class:`policytree.Study` reads; only the columns that the tree knows, and
            those to keep, are read.
        path : path
            Ends in .parquet or .csv. The file appears when it is complete.
        keep : list of str, optional
            Columns to copy, such as an identifier.
        column : str, default "prediction"
            Name of the column of predictions.
        batch_rows : int, default 262,144

        Returns
        -------
        pathlib.Path
            The file written; rows stand in the order of the source.

        Raises
        ------
        InputError
            If the tree knows no names of columns, a column is missing, or the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> from policytree import PolicyTree
        >>> rows = pd.DataFrame({"age": [30, 40, 50, 60]})
        >>> rewards = pd.DataFrame({"none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
        >>> tree = PolicyTree(max_depth=1).fit(rows, rewards)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pd.read_csv(tree.predict_to_file(rows, f"{folder}/rules.csv", keep=["age"]))
        ...
           age prediction
        0   30       none
        1   40       none
        2   50       drug
        3   60       drug
        """
        from policytree.encoded.predict import predict_to_file

        return predict_to_file(self, source, path, keep=keep, column=column, batch_rows=batch_rows)

    def decision_path(self, X: Table) -> csr_matrix:
        """Sparse indicator matrix (n, node_count) of the nodes that every row passes."""
        check_is_fitted(self)
        return self.tree_.decision_path(self._table(X, reset=False))

    def to_sklearn(self, X: Table) -> DecisionTreeClassifier:
        """Return scikit-learn's tree that sends every row of ``X`` to the leaf of this one.

        Tools that draw, explain or convert scikit-learn's trees take it, such as dtreeviz, skops or ONNX converters.
        It takes what :meth:`sklearn_table` makes of a table: numbers as they are, and a 0/1 column for every question
        about a category. Its thresholds are chosen for 32-bit floats, so that rows between two values of ``X`` may go
        another way.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The training rows, or whichever must be sent the same way.

        Returns
        -------
        sklearn.tree.DecisionTreeClassifier
            Fitted. ``predict_proba`` is that of this estimator where it has one; for policies it is 1 for the
            treatment that is given.

        Raises
        ------
        InputError
            If 32-bit floats cannot separate these rows as this tree does.
        """
        from policytree.trees.to_sklearn import to_sklearn

        check_is_fitted(self)
        tree, classes = self.tree_, np.asarray(self.classes_ if hasattr(self, "classes_") else self.treatments_)
        shares = self.node_values_ if hasattr(self, "predict_proba") else None
        if shares is not None and (shares.argmax(axis=1) != tree.action)[tree.is_leaf].any():
            shares = None  # an objective, or costs, that call for another label than the most frequent one
        return to_sklearn(tree, self._table(X, reset=False), classes, shares)

    def sklearn_table(self, X: Table) -> pd.DataFrame:
        """Return the numeric columns of new rows that the tree of :meth:`to_sklearn` takes."""
        from policytree.trees.to_sklearn import SklearnColumns

        check_is_fitted(self)
        return SklearnColumns.of(self.tree_).table(self._table(X, reset=False), getattr(X, "index", None))

    def measurement_cost(self, X: Table) -> np.ndarray:
        """Return the cost of the tests on the path of every row, by ``feature_costs``; shape (n,).

        Its mean over new rows is their expected cost.
        """
        path = self.decision_path(X)
        return np.asarray(path @ self.node_costs_, dtype=np.float64)


def _refuse_large(X) -> None:
    """Refuse the columns of an array of integers that float64 would round."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "iu" and len(X):
        for j, (low, high) in enumerate(zip(X.min(axis=0), X.max(axis=0), strict=True)):
            refuse_large_integers(low, high, f"x{j}", "X")
