"""BornAgainTree: the one tree that is the forest."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from policytree.born_again.ensembles import TreeEnsemble
from policytree.born_again.faithful import FaithfulnessCheck, check_faithfulness
from policytree.born_again.pruning import PruningReport, prune, with_counts
from policytree.born_again.readers import own_codes, read_ensemble
from policytree.born_again.solve import BornAgainSolution, solve_born_again
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Table
from policytree.common.validation import as_numbers, check_flag, check_verbose
from policytree.estimators.inputs import check_number
from policytree.estimators.views import TreeViews
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Guesses, ReferenceTree, SearchLimits, Status


@dataclass(eq=False, repr=False)
class BornAgainTree(ClassifierMixin, TreeViews, BaseEstimator):
    """The smallest single tree that predicts what a fitted ensemble predicts, at every point of the space.

    Vidal and Schiffer, "Born-again tree ensembles", ICML 2020. The tree is *faithful*: it agrees with the ensemble's
    own ``predict`` everywhere, where there is data and where there is none, ties and rounding included. Its size is
    proved to be the least. Faithful trees are often large, since ensembles decide in detail where no data is; ``prune``
    gives that up.

    Parameters
    ----------
    ensemble : fitted classifier, TreeEnsemble or mapping
        A random forest, extra trees, bagging of trees, gradient boosting or histogram gradient boosting of
        scikit-learn; or arrays, see :meth:`policytree.born_again.TreeEnsemble.from_arrays`.
    objective : {"depth", "leaves", "depth_then_leaves"}, default "depth"
        Quantity to minimise: the depth (D); the number of leaves (L); the leaves among trees of least depth (DL).
    prune : bool, default False
        Leave out what no row of ``fit(X)`` reaches (BA+P). The tree is then faithful only where there is data;
        ``pruning_`` says how often it is not.
    voting : {"soft", "hard"}, default "soft"
        "soft": as the ensemble's own ``predict`` decides. "hard": every tree has one vote, ties go to the first class,
        as in the paper.
    time_limit : float or None
        Seconds of wall time. An exact search that has not ended after 70 % of it makes way for a greedy one: the tree
        is then faithful, but not proved smallest, and there is a :class:`policytree.exceptions.SearchWarning`.
    memory_limit : float or None
        Bytes that the exact search may use; four fifths of the free memory by default.
    verbose : int, default 0
        1 shows the progress of the search.

    Attributes
    ----------
    tree_ : Tree
    classes_ : ndarray of shape (K,)
    status_ : Status
        OPTIMAL if the tree was proved smallest.
    solution_ : BornAgainSolution
        Sizes, lower bounds, seconds and counts of the search; of the tree before pruning.
    ensemble_ : TreeEnsemble
        The ensemble as arrays.
    pruning_ : PruningReport or None
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If the ensemble was fitted to named columns.

    Examples
    --------
    >>> from policytree import BornAgainTree
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)
    >>> tree = BornAgainTree(forest, objective="leaves").fit()
    >>> tree.get_n_leaves(), bool((tree.predict(X) == forest.predict(X)).all())
    (18, True)
    """

    ensemble: Any
    objective: str = "depth"
    prune: bool = field(default=False, kw_only=True)
    voting: str = field(default="soft", kw_only=True)
    time_limit: float | None = field(default=None, kw_only=True)
    memory_limit: float | None = field(default=None, kw_only=True)
    verbose: int = field(default=0, kw_only=True)

    @aligns_rows
    def fit(self, X: Table | None = None, y: Any = None) -> Self:
        """Find the tree.

        Parameters
        ----------
        X : array-like of shape (n, p), optional
            Rows to count in the nodes; needed for ``prune=True``. They do not change a faithful tree.
        y : ignored
            The ensemble's classes are all there is; for scikit-learn's pipelines.

        Returns
        -------
        BornAgainTree
            This estimator, fitted.

        Raises
        ------
        InputError
            If the ensemble cannot be read, an argument is wrong, or no faithful tree was complete in twice the time
            limit.

        Warns
        -----
        SearchWarning
            If the tree is not proved smallest.
        """
        check_number("time_limit", self.time_limit, 0, none=True)
        check_number("memory_limit", self.memory_limit, 0, none=True)
        check_flag(self.prune, "prune")
        check_verbose(self.verbose)
        if self.prune and X is None:
            raise InputError("prune=True needs rows: call fit(X) with the rows that the ensemble was fitted to.")
        self.ensemble_: TreeEnsemble = read_ensemble(self.ensemble, self.voting)
        self.classes_ = _labels(self.ensemble, self.ensemble_)
        self.n_features_in_ = self.ensemble_.n_features
        if self.ensemble_.named:
            self.feature_names_in_ = np.array(self.ensemble_.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        rows = None if X is None else self._rows(X)
        self.solution_: BornAgainSolution = self._search()
        self.status_, self.tree_ = self.solution_.status, self.solution_.tree
        self.pruning_: PruningReport | None = None
        if self.prune and rows is not None:
            self.tree_, self.pruning_ = prune(self.tree_, self.ensemble_, rows)
        elif rows is not None:
            self.tree_ = with_counts(self.tree_, rows)
        if self.status_ is not Status.OPTIMAL:
            reason = "the ensemble is too large for it" if self.status_ is Status.HEURISTIC else self.status_.value
            warnings.warn(
                f"The tree predicts what the ensemble predicts, but is not proved smallest ({reason}): "
                f"{self.solution_}.",
                SearchWarning,
                stacklevel=2,
            )
        return self

    def _search(self) -> BornAgainSolution:
        limits = SearchLimits(self.time_limit, self.memory_limit)
        if not self.verbose:
            return solve_born_again(self.ensemble_, self.objective, limits)
        from policytree.common.progress import search_progress

        with search_progress() as progress:
            limits = SearchLimits(self.time_limit, self.memory_limit, progress=progress)
            return solve_born_again(self.ensemble_, self.objective, limits)

    def _rows(self, X: Table) -> np.ndarray:
        """Complete rows as float64."""
        table = np.asarray(validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False))
        gaps = np.flatnonzero(np.isnan(table).any(axis=0))
        if len(gaps):
            name = self.ensemble_.feature_names[gaps[0]]
            raise InputError(
                f"Column {name!r} of X has missing values: a born-again tree stands for the ensemble on complete rows; "
                "fill the gaps before fitting the ensemble."
            )
        return table

    def apply(self, X: Table) -> np.ndarray:
        """Node id of the leaf that every row reaches; shape (n,), int64."""
        check_is_fitted(self)
        return self.tree_.apply(self._rows(X))

    def decision_path(self, X: Table) -> Any:
        """Sparse indicator matrix (n, node_count) of the nodes that every row passes."""
        check_is_fitted(self)
        return self.tree_.decision_path(self._rows(X))

    def predict(self, X: Table) -> np.ndarray:
        """Return the class of every row, in the ensemble's labels; shape (n,).

        Raises
        ------
        InputError
            If rows have missing values.
        """
        leaves = self.apply(X)
        return self.classes_[self.tree_.action[leaves]]

    def check_faithfulness(self) -> FaithfulnessCheck:
        """Compare the tree with the ensemble on every cell of the space, or by sending boxes through both.

        The reference is the ensemble's own ``predict``, if it is an estimator of scikit-learn, the voting is soft, and
        the cells are not too many. The search has no part in it.
        """
        check_is_fitted(self)
        own = None
        if hasattr(self.ensemble, "predict") and self.voting == "soft":
            own = own_codes(self.ensemble, self.ensemble_)
        return check_faithfulness(self.tree_, self.ensemble_, own)

    def as_guesses(self, X: Table, *, lower_bounds: Any = None) -> Guesses:
        """Guesses for a small optimal tree on the ensemble's thresholds, with the guarantee that this tree gives.

        Parameters
        ----------
        X : array-like of shape (n, p)
            The training rows of the optimal tree; none of weight 0.
        lower_bounds : array-like of shape (n,), optional
            Loss of the ensemble in every row, weighted: guessed as a lower bound
            (``reference_losses`` of :class:`policytree.guesses.Guesses`).

        Returns
        -------
        Guesses
            For ``guesses=`` of an estimator that is fitted to X and to labels with the ensemble's classes. Its
            ``solution_.guarantees["theorem_4_1"]`` is then ``L(T) + penalty * H`` of McTavish et al. (AAAI 2022,
            Theorem 4.1 and Corollary 4.3.1): the objective of the optimum is no larger. H counts the leaves of this
            tree without those that no row of X reaches.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        tree, _ = prune(self.solution_.tree, self.ensemble_, rows)
        smallest = int(tree.n_node_samples[tree.is_leaf].min())
        order = np.argsort(self.classes_)  # estimators count their labels in this order
        actions = np.argsort(order)[tree.action[tree.apply(rows)]].astype(np.int64)
        losses = None if lower_bounds is None else as_numbers(lower_bounds, "lower_bounds")
        return Guesses(
            thresholds=tuple(self.ensemble_.thresholds()),
            reference_losses=losses,
            reference_tree=ReferenceTree(actions, tree.n_leaves, tree.max_depth, smallest),
        )

    def __sklearn_clone__(self) -> BornAgainTree:
        """A copy that is not fitted, of an ensemble that is: there is nothing to do without it."""
        return type(self)(**self.get_params(deep=False))


def _labels(ensemble: Any, read: TreeEnsemble) -> np.ndarray:
    """The labels, of the type that the ensemble gives them; labels of several types stay as they are."""
    if hasattr(ensemble, "classes_"):
        return np.asarray(ensemble.classes_)
    labels = np.empty(len(read.classes), dtype=object)
    for k, label in enumerate(read.classes):
        labels[k] = label
    alike = np.array(labels.tolist()) if len({type(label) for label in read.classes}) == 1 else labels
    return alike if alike.ndim == 1 else labels
