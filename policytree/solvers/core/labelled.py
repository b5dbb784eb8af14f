"""A problem as weighted labelled rows, and integer counts instead of the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.problem.types import Problem, Progress, SearchLimits
from policytree.solvers.core.columns import keep_rows
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.weighting.classification import weighted_labels


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Weighted labelled rows with ``sum of losses = weighted error + constant`` for every tree.

    Attributes
    ----------
    row : ndarray of shape (m,), int64
        Row of the problem that each labelled row copies. With K = 2, and for weighted labels, at most one per row.
    label : ndarray of shape (m,), int64
        Action, 0 .. K - 1.
    weight : ndarray of shape (m,), float64, > 0
    constant : float
    """

    row: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    constant: float

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    @classmethod
    def of(cls, problem: Problem) -> LabelledRows:
        """Labelled rows of a problem's losses; none if K = 1 or no row prefers an action.

        Raises
        ------
        InputError
            If losses or penalty are not finite, or too large to be added up.
        """
        to_fixed_point(problem.losses, problem.leaf_penalty, 1)  # refuses them in the words of the direct solver
        losses = problem.losses.astype(np.float64)
        least = float(losses.min(axis=1).sum())
        if losses.shape[1] == 1:
            none = np.empty(0, dtype=np.int64)
            return cls(none, none, np.empty(0), least)
        made = weighted_labels(-losses)
        return cls(made.row, made.label.astype(np.int64), made.weight, least - made.constant)

    def count_problem(
        self, problem: Problem, counts: np.ndarray, reference: np.ndarray | None = None
    ) -> tuple[Problem, np.ndarray | None]:
        """The problem in which labelled row j counts ``counts[j]`` times, one error a copy; and a reference's errors.

        A reference that loses ``reference[i]`` in row i gets so many of its copies wrong as it loses of the row's
        weight: with two actions none or all.

        Leaf penalty and test costs keep their ratio to the total: ``penalty * sum of counts / sum of weights``. Rows
        without a copy are left out, unless leaf sizes are constrained, tests cost something for everybody, or the first
        split is (among the other rows alone, a tree may begin with its second): then they stay, without a loss.
        """
        K = problem.losses.shape[1]
        copies = np.zeros((problem.data.n_rows, K))
        copies[self.row, self.label] = counts
        per_row = copies.sum(axis=1)
        unit = counts.sum() / self.total
        costs = problem.feature_costs
        changes = {
            "losses": per_row[:, None] - copies,
            "leaf_penalty": problem.leaf_penalty * unit,
            "feature_costs": None if costs is None else costs * unit,
        }
        if reference is not None:
            weight = np.bincount(self.row, weights=self.weight, minlength=len(per_row))
            lost = reference - problem.losses.max(axis=1) + weight
            reference = np.divide(lost, weight, out=np.zeros(len(lost)), where=weight > 0) * per_row
        free = costs is None and problem.root_features is None
        if problem.min_leaf == 1 and problem.min_leaf_per_arm == 0 and free:
            rows = np.flatnonzero(per_row)
            changes |= {"losses": changes["losses"][rows], "data": keep_rows(problem.data, rows)}
            changes |= {"arms": None, "weights": None}
            reference = None if reference is None else reference[rows]
        return replace(problem, **changes), reference

    def limits(self, limits: SearchLimits, counts: np.ndarray, slack: float, seconds: float | None) -> SearchLimits:
        """Limits of a search on counts; its reports come in the problem's unit, bounds lowered by ``slack``."""
        limits = replace(limits, time_limit=seconds)
        if limits.progress is None:
            return limits
        unit, report = self.total / counts.sum(), limits.progress

        def progress(p: Progress) -> None:
            objective, bound = (self.constant + unit * v for v in (p.objective, p.lower_bound))
            report(replace(p, objective=objective, lower_bound=bound - slack))

        return replace(limits, progress=progress)
