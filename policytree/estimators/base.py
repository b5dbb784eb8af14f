"""What the estimators of one tree share: tables in, the search, the fitted tree's views."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from policytree.annotations import Table
from policytree.binning import FeatureEncoder, bin_matrix
from policytree.estimators.arguments import SearchArguments
from policytree.estimators.inputs import (
    check_number,
    check_seed,
    column_costs,
    column_numbers,
    expected_cost,
    n_threads,
    node_means,
)
from policytree.estimators.search import Job, check_search_arguments, chosen_solver, make_guesses, search
from policytree.exceptions import InputError, SearchWarning
from policytree.solvers import draws, time_estimate
from policytree.solvers.estimate import LONG, in_words
from policytree.types import BinnedData, Problem, SearchLimits, Solution, Status
from policytree.unseen import warn_of_unseen

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from policytree.plotting import PolicyTreeDisplay


class TreeEstimator(SearchArguments):
    """What all estimators of one tree share: tables in, the search, the fitted tree's views."""

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

    def _check_arguments(self) -> None:
        check_number("max_depth", self.max_depth, 0, integer=True, none=True)
        check_number("regularization", self.regularization, 0)
        check_number("min_samples_leaf", self.min_samples_leaf, 1, integer=True)
        check_number("max_leaf_nodes", self.max_leaf_nodes, 1, integer=True, none=True)
        check_number("time_limit", self.time_limit, 0, none=True)
        check_number("memory_limit", self.memory_limit, 0, none=True)
        check_number("max_bins", self.max_bins, 2, integer=True, none=True)
        check_search_arguments(self.solver, self.solver_options, self.guesses)
        n_threads(self.n_jobs)
        check_seed(self.random_state)

    def _column_arguments(self, features) -> tuple:
        """Test costs (p,), columns to split on and columns to begin with, by position; None where free or all."""
        costs = column_costs("feature_costs", self.feature_costs, features)
        splits = column_numbers("split_features", self.split_features, features)
        roots = column_numbers("root_feature", self.root_feature, features)
        for j in roots or ():
            if splits is not None and j not in splits:
                raise InputError(
                    f"root_feature names {features[j].name!r}, which split_features leaves out; name it there as well."
                )
        return costs, splits, roots

    def _binned(self, X: np.ndarray) -> BinnedData:
        """Codes of encoded rows, for the columns that may be split on."""
        features = self.encoder_.features
        _, splits, _ = self._column_arguments(features)
        return bin_matrix(X, features, max_bins=self.max_bins, split_on=splits)

    def _job(self, X: np.ndarray, losses: np.ndarray, values, weight, actions, arms=None) -> Job:
        """Bin the encoded rows and weight their losses."""
        total = float(weight.sum())
        costs, _, roots = self._column_arguments(self.encoder_.features)
        problem = Problem(
            self._binned(X),
            losses * weight[:, None],
            self.regularization * total,
            self.max_depth,
            min(self.min_samples_leaf, len(X) + 1),
            arms,
            min(getattr(self, "min_samples_per_treatment", 0), len(X) + 1),
            max_leaf_nodes=self.max_leaf_nodes,
            feature_costs=costs,
            weights=None if costs is None else weight,
            root_features=roots,
        )
        return Job(X, problem, total, tuple(actions), values, weight)

    def _fit_job(self, job: Job):
        """Guess, search, and keep the tree; warns if the search was stopped before the proof."""
        self.guesses_, report = make_guesses(job, self.guesses, self.random_state)
        solve = chosen_solver(self.solver, self.solver_options, self.random_state)
        if self.time_limit is None and self.guesses_ is None:
            _warn_of_long_search(job.problem, self.solver)
        limits = SearchLimits(self.time_limit, self.memory_limit, n_threads(self.n_jobs))
        if self.verbose:
            from policytree.progress import search_progress

            with search_progress(scale=self._sign() / job.total_weight) as progress:
                solution = self._search(job, solve, report, replace(limits, progress=progress))
        else:
            solution = self._search(job, solve, report, limits)
        return self._keep(job, solution)

    def _search(self, job: Job, solve, report: dict, limits: SearchLimits) -> Solution:
        return search(job.problem, solve, self.guesses_, report, limits)

    def _keep(self, job: Job, solution: Solution, *, warn: bool = True):
        """Store what a search found."""
        self._store(solution, job.total_weight, job.actions)
        # A heuristic was asked for by the choice of the solver: no reason to warn.
        if warn and not solution.status.proved and solution.status is not Status.HEURISTIC:
            warnings.warn(
                f"The search ended by {solution.status.value} after {solution.seconds:.1f} s; the tree is valid, its "
                f"optimality gap is {self.optimality_gap_:.6g}.",
                SearchWarning,
                stacklevel=4,
            )
        self.node_values_ = node_means(self.tree_, job.X, job.values, job.weight)
        self.expected_cost_ = expected_cost(self.tree_, job.X, job.problem.feature_costs, job.weight)
        return self

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        drawn = self.guesses is not None or draws(self.solver)
        tags.non_deterministic = self.time_limit is not None or (drawn and self.random_state is None)
        return tags


def _warn_of_long_search(problem: Problem, solver: str) -> None:
    """Say so before, not after, when a search without a time limit looks long."""
    estimate = time_estimate(solver)
    seconds = 0.0 if estimate is None else estimate(problem)
    if seconds > LONG:
        rows, cuts = problem.data.n_rows, int((problem.data.n_bins - 1).sum())
        warnings.warn(
            f"The search may take about {in_words(seconds)} ({rows:,} rows, {cuts:,} possible splits); set time_limit "
            "to get the best tree found by then and its gap, lower max_depth or max_bins, or pass guesses.",
            SearchWarning,
            stacklevel=5,
        )
