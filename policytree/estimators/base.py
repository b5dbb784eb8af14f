"""What the estimators of one tree share: tables in, the search, the fitted tree's views."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from policytree.binning import FeatureEncoder, bin_matrix
from policytree.estimators.inputs import check_number, n_threads
from policytree.exceptions import InputError, SearchWarning
from policytree.solvers import get_solver
from policytree.types import Problem, SearchLimits, Solution, Status


class TreeEstimator(BaseEstimator):
    """What all estimators of one tree share: tables in, the search, the fitted tree's views."""

    def _table(self, X, *, reset: bool) -> np.ndarray:
        """Numbers of ``X`` by scikit-learn's rules; frames may hold text columns and missing values."""
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True, reset=reset)
            if reset:
                self.encoder_ = FeatureEncoder.fit(X)
            if len(X) == 0:
                raise InputError("X has no rows; pass at least one.")
            return self.encoder_.encode(X)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        if reset:
            self.encoder_ = FeatureEncoder.fit(X)
        return self.encoder_.encode(X)

    def _check_arguments(self) -> None:
        check_number("max_depth", self.max_depth, 0, integer=True, none=True)
        check_number("regularization", self.regularization, 0)
        check_number("min_samples_leaf", self.min_samples_leaf, 1, integer=True)
        check_number("time_limit", self.time_limit, 0, none=True)
        get_solver(self.solver)
        n_threads(self.n_jobs)

    def _search(self, X: np.ndarray, losses: np.ndarray, total_weight: float, actions: tuple, arms=None) -> Solution:
        """Bin, solve, and label the actions; warns if the search was stopped before the proof."""
        data = bin_matrix(X, self.encoder_.features)
        per_arm = getattr(self, "min_samples_per_treatment", 0)
        problem = Problem(
            data, losses, self.regularization * total_weight, self.max_depth, self.min_samples_leaf, arms, per_arm
        )
        solve = get_solver(self.solver)
        limits = SearchLimits(self.time_limit, n_jobs=n_threads(self.n_jobs))
        if self.verbose:
            from policytree.progress import search_progress

            with search_progress(scale=self._sign() / total_weight) as progress:
                solution = solve(problem, SearchLimits(limits.time_limit, n_jobs=limits.n_jobs, progress=progress))
        else:
            solution = solve(problem, limits)
        self._store(solution, total_weight, actions)
        return solution

    def _sign(self) -> float:
        """Turn losses back into the user's direction."""
        return -1.0 if getattr(self, "direction", "minimize") == "maximize" else 1.0

    def _store(self, solution: Solution, total_weight: float, actions: tuple) -> None:
        if solution.status is Status.INFEASIBLE:
            raise InputError(
                "min_samples_leaf or min_samples_per_treatment asks for more rows than there are; lower it."
            )
        sign = self._sign()
        self.tree_ = replace(solution.tree, actions=actions)
        self.solution_ = solution
        self.status_ = solution.status
        self.objective_value_ = sign * solution.objective / total_weight
        self.objective_bound_ = sign * solution.lower_bound / total_weight
        self.optimality_gap_ = solution.gap / total_weight
        if solution.status is not Status.OPTIMAL:
            warnings.warn(
                f"The search ended by {solution.status.value} after {solution.seconds:.1f} s; the tree is valid, its "
                f"optimality gap is {self.optimality_gap_:.6g}.",
                SearchWarning,
                stacklevel=4,
            )

    def apply(self, X) -> np.ndarray:
        """Node id of the leaf that every row reaches.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Returns
        -------
        ndarray of shape (n,), int64
        """
        check_is_fitted(self)
        return self.tree_.apply(self._table(X, reset=False))

    def decision_path(self, X):
        """Sparse indicator matrix (n, node_count) of the nodes that every row passes."""
        check_is_fitted(self)
        return self.tree_.decision_path(self._table(X, reset=False))

    def get_depth(self) -> int:
        """Largest number of splits on a path of the fitted tree."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the fitted tree."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def export_text(self, **options) -> str:
        """Return the tree as indented text; options as in :func:`policytree.export.export_text`."""
        from policytree.export import export_text

        check_is_fitted(self)
        return export_text(self.tree_, **options)

    def export_graphviz(self, **options) -> str:
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

    def plot(self, ax=None, **options):
        """Draw the tree with matplotlib; options as in :func:`policytree.plot_tree`."""
        from policytree.plotting import plot_tree

        check_is_fitted(self)
        return plot_tree(self, ax=ax, **options)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.time_limit is not None
        return tags
