"""OptimalTreeClassifier: the best tree for labels and weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, column_or_1d

from policytree.common.calls import StudyLike, takes_study_as_table
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import refuse_odd_arrays, sorted_labels, weights
from policytree.encoded.store import EncodedData
from policytree.estimators.arguments import inherits_documentation, own_arguments_first
from policytree.estimators.base import TreeEstimator
from policytree.estimators.encoded_fit import fit_encoded
from policytree.estimators.inputs import weigh
from policytree.estimators.search import Job, guesses_losses
from policytree.estimators.views import TableViews
from policytree.exceptions import InputError
from policytree.objectives.objective import Objective
from policytree.objectives.registry import resolve_objective

if TYPE_CHECKING:
    from policytree.plotting.roc import ROCHullDisplay


class ClassPredictions(ClassifierMixin, TableViews):
    """Predictions of a fitted tree of classes for new rows."""

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

    @aligns_rows
    def score(self, X: Table, y: Column, sample_weight: Column | None = None) -> float:
        """Return the (weighted) share of rows whose class is predicted; labels of any type."""
        predicted = label_codes(self.predict(X), self.classes_)
        hit = label_codes(label_column(y, predicted), self.classes_) == predicted
        return float(np.average(hit, weights=weights(sample_weight, len(hit), "X")))


@inherits_documentation
@own_arguments_first
@dataclass(eq=False, repr=False)
class OptimalTreeClassifier(ClassPredictions, TreeEstimator):
    """The classification tree that is best at an objective, less a price per leaf, with a proof.

    Parameters
    ----------
    max_depth : int or None, default None
        Largest number of splits on a path. None leaves it to ``regularization`` and ``max_leaf_nodes``.
    regularization : float, default 0.01
        The price of a leaf in the unit of the objective: the tree minimises ``1 - score + regularization * leaves``,
        of accuracy the error rate (Hu, Rudin and Seltzer, "Optimal sparse decision trees", NeurIPS 2019, eq. 1).
    time_limit : float or None, default 60.0
        Seconds after which the search ends with its best tree, its gap and a ``SearchWarning``; without a depth
        limit, proofs on noisy data may take much longer than finding the tree. None: until it is proved.
    min_samples_leaf : int, default 1
        Smallest number of rows in a leaf (weights are not counted).
    objective : str or Objective, default "accuracy"
        Objective of the tree: "accuracy", "balanced_accuracy", "weighted_accuracy", "f_score", "omega_f_score",
        "auc", "partial_auc"; or an instance of :mod:`policytree.objectives` with its parameter, such as
        ``WeightedAccuracy(omega=3)``, ``FScore(beta=2)``, ``PartialAUC(max_fpr=0.2)``, ``MonotoneObjective(function)``.
        All but the first three need two classes; ``classes_[1]`` is the positive one.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    objective_value_ : float
        One minus the score of the training rows (accuracy: the weighted error rate) plus the price of the leaves and
        ``expected_cost_`` (tests cost errors per person, by the weights that the objective counts; not charged where
        ``ExpectedCost`` limits them).
    objective_ : Objective
        The objective as an instance.
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

    max_depth: int | None = None
    regularization: float = 0.01
    _: KW_ONLY
    min_samples_leaf: int = 1
    time_limit: float | None = 60.0
    objective: str | Objective = "accuracy"

    @takes_study_as_table
    @aligns_rows
    def fit(
        self, X: Table | EncodedData | StudyLike, y: Column | None = None, sample_weight: Column | None = None
    ) -> Self:
        """Find the tree.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p), Study, or EncodedData
            Features; text columns are categories, missing values are allowed. A study whose outcome is a
            :class:`policytree.study.Label`, and rows that :func:`policytree.encoded.encode` wrote, come with labels and
            weights, and nothing else is passed then.
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
        if isinstance(X, EncodedData):
            return fit_encoded(self, X, {"y": y, "sample_weight": sample_weight})
        return self._fit_job(self._prepare(X, y, sample_weight))

    def _prepare(self, X, y, sample_weight=None) -> Job:
        """Check the data and learn names and classes."""
        self._check_arguments()
        objective = resolve_objective(self.objective)
        X = self._table(X, reset=True)
        y = label_column(y, X)
        X, y, _, weight = weigh(X, y, None, sample_weight)
        self.classes_ = sorted_labels(y)
        objective.check_classes(self.classes_)
        self.objective_ = objective
        codes = label_codes(y, self.classes_)
        if len(self.classes_) > 1:
            weight = objective.row_weights(codes, self.classes_, weight)
        hit = np.take(np.eye(len(self.classes_)), codes, axis=0)
        job = self._job(X, 1.0 - hit, hit, weight, self.classes_)
        if objective.additive:
            return job
        self._check_searchable(objective)
        return replace(job, objective=objective)

    def _is_plain(self) -> bool:
        return super()._is_plain() and self.objective_.additive

    def _node_values(self, job: Job) -> np.ndarray:
        """Shares of the classes; without weights they are what is no error, counted when the tree was scored."""
        rows = self.tree_.n_node_samples[:, None]
        if not job.constraints and rows[0, 0] == len(job.X) and (job.weight == 1.0).all():
            return (rows - self.tree_.value) / rows
        return super()._node_values(job)

    def _check_searchable(self, objective: Objective) -> None:
        """Refuse arguments that only make sense where the objective is a sum over rows."""
        name = f"objective={objective.name!r}"
        if self.solver != "direct" or self.solver_options:
            raise InputError(f"{name} has a search of its own; leave solver at 'direct' and solver_options at None.")
        if self.feature_costs is not None:
            raise InputError(f"feature_costs are costs per row, which {name} has no unit for; leave them at None.")
        if guesses_losses(self.guesses):
            raise InputError(f"guesses of lower bounds are losses of rows, which {name} has none of; leave them out.")

    @aligns_rows
    def plot_roc(
        self, X: Table, y: Column, *, sample_weight: Column | None = None, name: str | None = None, ax: Any = None
    ) -> ROCHullDisplay:
        """Draw the ROC curve of the tree on some rows: a corner for every leaf, ranked by its share of positives.

        On the rows that chose the tree it is its own convex hull; on other rows leaves may change places.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, p)
        y : array-like of shape (n,)
            Rows that are not ``classes_[1]`` are negatives.
        sample_weight : array-like of shape (n,), optional
        name : str, optional
            In the legend; the objective and the number of leaves by default.
        ax : matplotlib Axes, optional

        Returns
        -------
        ROCHullDisplay
            With ``figure_``, ``ax_`` and ``line_``.

        Raises
        ------
        InputError
            If the tree has not two classes, or the rows have one only.
        """
        from policytree.plotting.roc import roc_display

        return roc_display(self, X, y, sample_weight, name).plot(ax=ax)

    def decision_function(self, X: Table) -> np.ndarray:
        """How much speaks for a class in the leaf of every row.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            Of two classes: the share of ``classes_[1]`` in the leaf less the share above which the objective calls it
            positive, so that it is positive exactly where ``classes_[1]`` is predicted. Else the shares.
        """
        leaves = self.apply(X)
        if len(self.classes_) != 2:
            return self.node_values_[leaves]
        return self._margins()[leaves]

    def _margins(self) -> np.ndarray:
        """The share of positives of every node less the threshold; in leaves never of another sign than the label."""
        share, positive = self.node_values_[:, 1], self.tree_.action == 1
        is_leaf = self.tree_.is_leaf
        above, below = share[is_leaf & positive], share[is_leaf & ~positive]
        threshold = self.objective_.threshold(1.0 - self.objective_value_ + self.regularization * self.tree_.n_leaves)
        if threshold is None:  # any share between the two kinds of leaves is one
            threshold = 0.5 * (above.min(initial=1.0) + below.max(initial=0.0))
        margin = share - threshold
        return np.where(positive, np.maximum(margin, np.finfo(float).tiny), np.minimum(margin, 0.0))

    @aligns_rows
    def score(self, X: Table, y: Column, sample_weight: Column | None = None) -> float:
        """Return the score of the objective on any rows, larger is better; of accuracy the share of hits.

        Rows of a class that was not seen at fit are mistakes, whatever is predicted.
        """
        leaves = self.apply(X)
        codes = label_codes(label_column(y, leaves), self.classes_)
        weight = weights(sample_weight, len(codes), "X")
        weight = np.ones(len(codes)) if weight is None else weight
        weight = self.objective_.score_weights(codes, self.classes_, weight)
        return self.objective_.score(codes, self.tree_.action[leaves], self.node_values_[leaves, -1], weight)

    def _objective_words(self) -> str:
        return f"1 - {self.objective_.score_name}"


def label_column(y: Any, X: np.ndarray) -> np.ndarray:
    """Labels of any type as one column, none missing, as many as X has rows."""
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biu":
        check_consistent_length(X, y)
        return y
    refuse_odd_arrays(y, "y")
    try:
        given = _labels_as_given(y)
        # Texts, integers and booleans in one column are what scikit-learn's check lets pass as it is.
        plain = type(given) is np.ndarray and given.ndim == 1 and given.dtype.kind in "biuU"
        y = given if plain else column_or_1d(given, warn=True)
    except (TypeError, ValueError) as error:  # tables; lists and tuples, of one length or of several
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"y must be one column of labels, each a number, a text or a date: {reason}.") from error
    if not plain and (pd.isna(y).any() or (y.dtype.kind == "f" and np.isinf(y).any())):
        raise InputError("Input y contains NaN or infinity; drop the rows without a class.")
    check_consistent_length(X, y)
    if y.dtype.kind == "f":  # of other types, every value is a label
        fractions = np.flatnonzero(y != np.floor(y))
        if len(fractions):
            raise InputError(
                f"Unknown label type: y holds fractions, such as {y[fractions[0]]:g} in row {fractions[0]}, which are "
                "no classes; give classes as whole numbers or as text, y.astype(str)."
            )
    return y


def _labels_as_given(y):
    """Labels without a detour over numpy's common type, which turns ``[1, "a"]`` into text and integers into floats."""
    if isinstance(y, (list, tuple)):
        array = np.asarray(y, dtype=object) if len({type(value) for value in y}) > 1 else np.asarray(y)
        return array if array.ndim == 1 else np.asarray(y)
    dtype = getattr(y, "dtype", None)
    if isinstance(dtype, pd.StringDtype):
        codes, texts = pd.factorize(y)  # 10,459 texts take a fifth of the time
        return y if (codes < 0).any() else np.array(texts.tolist())[codes]
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) and not pd.isna(y).any():
        return np.array(pd.Series(y).tolist())
    return y


def label_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Position of every label in the classes; -1 for labels that are none of them."""
    plain = len(classes) > 0 and y.dtype.kind == classes.dtype.kind and y.dtype.kind in "biufUS"
    if plain and len(classes) == 2:
        second = y == classes[1]
        return np.where(second | (y == classes[0]), second, -1)
    if plain and (classes[1:] > classes[:-1]).all():  # takes a tenth of the time
        at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        return np.where(classes[at] == y, at, -1)
    return pd.Index(classes).get_indexer(pd.Index(y)).astype(np.int64)
