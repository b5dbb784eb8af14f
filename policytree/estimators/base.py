"""Base of the estimators of a best tree: the search, and its results."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from policytree.common.callers import stacklevel_outside
from policytree.common.validation import check_choice, check_verbose
from policytree.constraints.checks import asked, check_list, limits_tests, sums_of
from policytree.constraints.constraint import Rows
from policytree.constraints.people import Limited
from policytree.estimators.arguments import SearchArguments
from policytree.estimators.certificate import SearchGrid, certificate_text
from policytree.estimators.chosen_rows import remember
from policytree.estimators.inputs import (
    check_number,
    check_seed,
    column_costs,
    column_numbers,
    leaf_penalty,
    n_threads,
    node_means,
    payment_groups,
    question_costs,
)
from policytree.estimators.leaf_sizes import infeasible, rarest_treatment, warn_of_no_split
from policytree.estimators.search import (
    Job,
    check_search_arguments,
    chosen_solver,
    make_guesses,
    search,
)
from policytree.estimators.views import TableViews
from policytree.estimators.within_limits import FITTED, expected_cost_within, search_within, worth_of_limits
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.split_columns import GROUPS, LEVELS
from policytree.problem.types import BinnedData, Guesses, Problem, SearchLimits, Solution, Status
from policytree.solvers import draws, time_estimate
from policytree.solvers.constrained.solve import Budgeted
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import load_in_background
from policytree.solvers.core.exact_sums import rounded_sum
from policytree.solvers.core.feasibility import no_split_fits
from policytree.solvers.exact.engine_table import Case, kernels_of
from policytree.solvers.exact.estimate import LONG, in_words

# Kernels are judged by so many rows, and by this depth where data choose it.
ROWS_TO_JUDGE, DEPTH_TO_JUDGE = 10_000, 3


class TreeEstimator(TableViews, SearchArguments):
    """Base of all estimators of one tree that search for the best one."""

    guesses_: Guesses | None
    solution_: Solution
    status_: Status
    objective_value_: float
    objective_bound_: float
    optimality_gap_: float
    search_grid_: SearchGrid
    node_values_: np.ndarray
    expected_cost_: float
    multipliers_: dict[str, Any]
    #: Whether a job is searched with the losses it is made with. Who solves it with others sets it to False.
    _losses_are_final = True
    #: Whether actions are treatments, which constraints may be about.
    _gives_treatments = False

    def _check_arguments(self) -> None:
        self._check_tree_size()
        check_number("min_samples_leaf", self.min_samples_leaf, 1, integer=True)
        check_number("time_limit", self.time_limit, 0, none=True)
        check_number("memory_limit", self.memory_limit, 0, none=True)
        check_number("max_bins", self.max_bins, 2, integer=True, none=True)
        check_search_arguments(self.solver, self.solver_options, self.guesses)
        check_choice(self.repeated_features, "repeated_features", ("charged", "free"))
        check_choice(self.categories, "categories", (LEVELS, GROUPS))
        if self.categories == GROUPS and (self.solver != "direct" or self.guesses is not None):
            raise InputError("categories='groups' takes solver='direct' without guesses; set these, or 'levels'.")
        check_verbose(self.verbose)
        if self.repeated_features == "free" and (self.solver != "direct" or self.guesses is not None):
            raise InputError("repeated_features='free' takes solver='direct' without guesses; set these, or 'charged'.")
        check_list(self, of_treatments=self._gives_treatments)
        n_threads(self.n_jobs)
        check_seed(self.random_state)

    def _check_tree_size(self) -> None:
        check_number("max_depth", self.max_depth, 0, integer=True, none=True)
        check_number("regularization", self.regularization, 0)
        check_number("max_leaf_nodes", self.max_leaf_nodes, 1, integer=True, none=True)

    def _tree_size(self) -> tuple[int | None, float, int | None]:
        """The largest depth, the price of a leaf, and the most leaves, with which trees are searched."""
        return self.max_depth, self.regularization, self.max_leaf_nodes

    def _column_arguments(self, features) -> tuple:
        """Test costs and their groups (p,), columns to split on and to begin with, by position; None: free or all."""
        costs = column_costs("feature_costs", self.feature_costs, features)
        has_costs = self.feature_costs is not None
        groups = payment_groups(self.repeated_features, self.feature_groups, has_costs, features)
        splits = column_numbers("split_features", self.split_features, features)
        roots = column_numbers("root_feature", self.root_feature, features)
        for j in roots or ():
            if splits is not None and j not in splits:
                raise InputError(
                    f"root_feature names {features[j].name!r}, which split_features leaves out; name it there as well."
                )
        return costs, None if costs is None else groups, splits, roots

    def _is_plain(self) -> bool:
        """Whether the search is for the least sum of losses over rows, without guesses, test costs or limits."""
        nothing = self.guesses is self.feature_costs is self.root_feature is None and not self.constraints
        return self.solver == "direct" and nothing

    def _bin(self, X: np.ndarray, losses: np.ndarray, splits, depth: int | None, arms=None) -> BinnedData:
        """Codes of encoded rows; ``losses`` are weighted."""
        plain = self._losses_are_final and self._is_plain()
        last = plain and (depth in (0, 1) or self.max_leaf_nodes in (1, 2))
        return bin_matrix(
            X,
            self.encoder_.features,
            max_bins=self.max_bins,
            split_on=splits,
            wide=self._is_plain(),
            categories=self.categories,
            losses=losses,
            min_leaf=min(self.min_samples_leaf, len(X) + 1),
            last=last,
            arms=arms,
            min_leaf_per_arm=min(getattr(self, "min_samples_per_treatment", 0), len(X) + 1),
            as_levels=plain and not last and depth == 2 and losses.shape[1] == 2,
        )

    def _job(
        self, X: np.ndarray, losses: np.ndarray, values, weight, actions, arms=None, about: Limited | None = None
    ) -> Job:
        """Bin the encoded rows and weight their losses; ``about`` says what constraints are about."""
        total = rounded_sum(weight)
        features = self.encoder_.features
        costs, groups, splits, roots = self._column_arguments(features)
        depth, price, most_leaves = self._tree_size()
        most = len(X) - 1 if depth is None else min(depth, len(X) - 1)
        rows = Rows(actions, losses, weight, about or Limited(), costs, max(1, most))
        losses = losses * weight[:, None]
        problem = Problem(
            self._bin(X, losses, splits, depth, arms),
            losses,
            leaf_penalty(price, total),
            depth,
            min(self.min_samples_leaf, len(X) + 1),
            arms,
            min(getattr(self, "min_samples_per_treatment", 0), len(X) + 1),
            max_leaf_nodes=most_leaves,
            feature_costs=None if limits_tests(self) else costs,
            weights=None if costs is None else weight,
            root_features=roots,
            feature_groups=groups,
        )
        worst = tuple(part for each in asked(self) for part in each.parts(rows))
        return Job(
            X, problem, total, tuple(actions), values, weight, None, sums_of(self, rows), costs, worst, about
        )  # fmt: skip

    def _load_in_background(self, X: np.ndarray, n_actions: int) -> None:
        """Begin to compile the search, where it is not on the disk, in another process: for fits that estimate first.

        Which kernels it needs is judged by encoded rows, of which some suffice, and made-up losses. Kernels that were
        misjudged are compiled when they are needed.
        """
        if len(X) == 0 or n_actions < 2:
            return
        features, X = self.encoder_.features, X[:ROWS_TO_JUDGE]
        costs, groups, splits, roots = self._column_arguments(features)
        depth = DEPTH_TO_JUDGE if isinstance(self.max_depth, str) else self.max_depth
        price = 1.0 if isinstance(self.regularization, str) else self.regularization
        per_arm = getattr(self, "min_samples_per_treatment", 0)
        losses = np.sin(np.arange(len(X) * n_actions)).reshape(-1, n_actions)  # of as many digits as rewards have
        problem = Problem(
            self._bin(X, losses, splits, depth),
            losses,
            leaf_penalty(price, len(X)),
            depth,
            min(self.min_samples_leaf, len(X) + 1),
            np.zeros(len(X), np.int64) if per_arm else None,
            min(per_arm, len(X) + 1),
            max_leaf_nodes=None if isinstance(self.max_leaf_nodes, str) else self.max_leaf_nodes,
            feature_costs=costs,
            weights=None if costs is None else np.ones(len(X)),
            root_features=roots,
            feature_groups=groups,
        )
        load_in_background(kernels_of(Case.of(problem)))

    def _fit_job(self, job: Job):
        """Guess, search, and keep the tree; warns if the search was stopped before the proof."""
        self.guesses_, report = make_guesses(job, self.guesses, self.random_state)
        solve = chosen_solver(self.solver, self.solver_options, self.random_state, job.objective)
        if self.time_limit is None and self.guesses_ is None and job.objective is None:
            _warn_of_long_search(job.problem, self.solver)
        limits = SearchLimits(self.time_limit, self.memory_limit, n_threads(self.n_jobs))
        if self.verbose:
            from policytree.common.progress import search_progress

            with search_progress(scale=self._sign() / job.total_weight) as progress:
                solution = self._search(job, solve, report, replace(limits, progress=progress))
        else:
            solution = self._search(job, solve, report, limits)
        return self._keep(job, solution)

    def _forget(self) -> None:
        """Drop what limits left of an earlier fit."""
        for name in FITTED & {*vars(self)}:
            delattr(self, name)

    def _search(self, job: Job, solve, report: dict, limits: SearchLimits) -> Solution:
        self._forget()
        if not job.constraints:
            return search(job.problem, solve, self.guesses_, report, limits)
        found = search_within(self, job, limits, solve)
        if found.sums:
            self._keep_limits(job, found)
        return found.solution

    def _keep_limits(self, job: Job, found: Budgeted) -> None:
        """Store what the limits are worth."""
        self.multipliers_ = worth_of_limits(job, found)

    def _keep(self, job: Job, solution: Solution, *, warn: bool = True):
        """Store what a search found."""
        if solution.status is Status.INFEASIBLE:
            asked, per_arm = self.min_samples_leaf, getattr(self, "min_samples_per_treatment", 0)
            raise infeasible(job.problem, asked, per_arm, job.actions)
        self._store(solution, job.total_weight, job.actions)
        self.search_grid_ = SearchGrid.of_data(job.problem.data)
        if warn:
            self._warn_unproved(solution)
            if self.tree_.n_leaves == 1 and no_split_fits(p := job.problem):
                warn_of_no_split(p.data.n_rows, p.min_leaf, p.min_leaf_per_arm, rarest_treatment(p, job.actions))
        self.node_values_ = self._node_values(job)
        remember(self._judged(job), self.tree_.action[self.tree_.apply(job.X)])
        self.node_costs_ = question_costs(self.tree_, job.test_costs, job.problem.feature_groups)
        self.expected_cost_ = expected_cost_within(self.tree_, job, self.node_costs_)
        return self

    def _node_values(self, job: Job) -> np.ndarray:
        """Weighted means of what the nodes' rows hold, (node_count, K)."""
        return node_means(self.tree_, job.X, job.values, job.weight)

    def _judged(self, job: Job) -> np.ndarray:
        """Return the rewards of every action by which users judge rules, larger being better, (n, K)."""
        return -job.problem.losses

    def _warn_unproved(self, solution: Solution) -> None:
        """Say that a search was stopped. A heuristic was asked for by the choice of the solver: no reason to warn."""
        if not solution.status.proved and solution.status is not Status.HEURISTIC:
            warnings.warn(
                f"The search ended by {solution.status.value} after {solution.seconds:.1f} s; the tree is valid, its "
                f"optimality gap is {self.optimality_gap_:.6g}.",
                SearchWarning,
                stacklevel=stacklevel_outside(),
            )

    def certificate(self) -> str:
        """Return the proof about the tree in a few lines of text."""
        check_is_fitted(self)
        return certificate_text(self, self._objective_words())

    def _objective_words(self) -> str:
        """Name the objective without the price of the leaves."""
        return "mean loss"

    def _sign(self) -> float:
        """Turn losses back into the user's direction."""
        return -1.0 if getattr(self, "direction", "minimize") == "maximize" else 1.0

    def _store(self, solution: Solution, total_weight: float, actions: tuple) -> None:
        sign = self._sign()
        self.tree_ = replace(solution.tree, actions=actions)
        self.solution_ = solution.per(total_weight)
        self.status_ = solution.status
        self.objective_value_ = sign * self.solution_.objective
        self.objective_bound_ = sign * self.solution_.lower_bound
        self.optimality_gap_ = self.solution_.gap

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
            stacklevel=stacklevel_outside(),
        )
