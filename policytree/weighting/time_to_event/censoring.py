"""Cross-fitted models of events and censoring, and the outcomes that take the place of censored ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.model_selection.crossfit import CrossFit, averaged, run_fits
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.learners import one_thread
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.grid import Grid, make_grid, person_time
from policytree.weighting.time_to_event.hazards import HazardStack, StackedHazards
from policytree.weighting.time_to_event.outcome import Target, TimeToEvent
from policytree.weighting.time_to_event.transformation import Hazards, expected_target, transformed


@dataclass(frozen=True, slots=True)
class HazardModels:
    """One fold's models of events (of the cause and, if there are any, of others) and of censoring.

    As a learner of outcomes it predicts the expected target from the models of events alone; it has one stage.
    """

    event: StackedHazards
    other: StackedHazards | None
    censoring: StackedHazards
    grid: Grid
    target: Target
    horizon: float

    @property
    def model(self) -> HazardModels:
        """Itself, which is what was fitted."""
        return self

    def of_own(self, Z: np.ndarray, arm: np.ndarray) -> Hazards:
        """Hazards under the arm that every row got."""
        other = None if self.other is None else self.other.of_own(Z, arm)
        return Hazards(self.event.of_own(Z, arm), other, self.censoring.of_own(Z, arm))

    def of_arm(self, Z: np.ndarray, k: int, stage: int) -> np.ndarray:
        """Expected target under an arm, (n,)."""
        other = None if self.other is None else self.other.of_arm(Z, k)
        return self._expected(self.event.of_arm(Z, k), other)

    def predict(self, ZA: np.ndarray) -> np.ndarray:
        """Expected target under the arm in the last column, (n, 1)."""
        Z, arm = ZA[:, :-1], ZA[:, -1].astype(np.int64)
        other = None if self.other is None else self.other.of_own(Z, arm)
        return self._expected(self.event.of_own(Z, arm), other)[:, None]

    def outcomes(self, times: TimeToEvent, Z: np.ndarray, arm: np.ndarray, floor: float):
        """Transform these rows' outcomes, and tell whose chance to be followed was raised to ``floor``."""
        return transformed(times, self.grid, person_time(times, self.grid), self.of_own(Z, arm), floor)

    def _expected(self, event: np.ndarray, other: np.ndarray | None) -> np.ndarray:
        return expected_target(event, other, self.grid, self.target, self.horizon)[:, 0]


@dataclass(frozen=True, slots=True)
class CompletedOutcomes:
    """Outcomes that are known on average, for every row, and what made them.

    Attributes
    ----------
    outcome : ndarray of shape (n,)
    raised : ndarray of shape (n,), bool
        Rows whose probability of being observed was raised to the floor.
    models : tuple of HazardModels, one per fold
    folds : FoldPlan
    floor : float
    predicts_from_start : bool
        Whether everybody was followed from time 0 on, so that expectations from there are those of the outcomes.
    """

    outcome: np.ndarray
    raised: np.ndarray
    models: tuple[HazardModels, ...]
    folds: FoldPlan
    floor: float
    predicts_from_start: bool

    def learner(self, Z: np.ndarray, arm: np.ndarray) -> CrossFit:
        """The models of events as a further learner of outcomes, with out-of-fold predictions (n, 1)."""
        ZA = np.column_stack([Z, arm.astype(np.float64)])
        predictions = np.empty((len(Z), 1))
        for f, (_, test) in enumerate(self.folds.splits()):
            predictions[test] = self.models[f].predict(ZA[test])
        return CrossFit(predictions, self.models, self.folds)

    def of_new(self, observed: StudyData, Z: np.ndarray, held_out_of: np.ndarray | None) -> np.ndarray:
        """The outcomes of rows that were not in the fit, averaged over fold models, (n,)."""
        assert observed.times is not None, "as at fit"
        each = [model.outcomes(observed.times, Z, observed.arm, self.floor)[0] for model in self.models]
        return averaged(np.stack(each), held_out_of)


def complete_times(
    Z: np.ndarray,
    observed: StudyData,
    plans: list[FoldPlan],
    event: HazardStack,
    censoring: HazardStack,
    floor: float,
    executor: Any = None,
) -> tuple[CompletedOutcomes, ...]:
    """Fit hazards out of fold, once for every draw of folds, and complete the outcomes by them.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Nuisance covariates.
    observed : StudyData
        With ``times``.
    plans : list of FoldPlan
    event, censoring : HazardStack
    floor : float
        Least probability of not being censored.
    executor : optional
        Where to fit; see :func:`policytree.common.executors.submitted`.
    """
    each = fit_hazards(Z, observed, plans, event, censoring, executor)
    with one_thread(None):
        return tuple(_completion(models, Z, observed, plan, floor) for models, plan in zip(each, plans, strict=True))


def fit_hazards(
    Z: np.ndarray,
    observed: StudyData,
    plans: list[FoldPlan],
    event: HazardStack,
    censoring: HazardStack,
    executor: Any = None,
) -> list[tuple[HazardModels, ...]]:
    """Hazards of every fold, learnt from the others, for every draw of folds; as :func:`complete_times` takes them."""
    times = observed.times
    assert times is not None, "outcomes are times"
    grid = make_grid(times)
    at_risk = person_time(times, grid)
    parts = [(event, at_risk.at_risk, at_risk.events)]
    if at_risk.other.any():
        parts.append((event, at_risk.at_risk, at_risk.other))
    parts.append((censoring, at_risk.at_risk_of_censoring, at_risk.censored))
    fits, counts = [], []
    for plan in plans:
        for stack, exposed, ended in parts:
            own = stack.fits(Z, observed, plan, exposed, ended, grid.edges, grid.tied)
            fits += own
            counts.append(len(own))
    with one_thread(None):  # products of matrices of few columns wait longer for each other than they gain
        done, sizes, out = iter(run_fits(fits, executor)), iter(counts), []
        for _ in plans:
            mixed = [
                stack.mixed([next(done) for _ in range(next(sizes))], observed, exposed, ended)
                for stack, exposed, ended in parts
            ]
            out.append(
                tuple(
                    HazardModels(of[0], of[1] if len(of) == 3 else None, of[-1], grid, times.target, times.horizon)
                    for of in zip(*mixed, strict=True)
                )
            )
    return out


def _completion(models: tuple[HazardModels, ...], Z, observed: StudyData, plan: FoldPlan, floor: float):
    """The outcomes of all rows, each by the hazards that did not see it."""
    times = observed.times
    assert times is not None, "outcomes are times"
    outcome, raised = np.empty(observed.n), np.zeros(observed.n, dtype=bool)
    for f, (_, test) in enumerate(plan.splits()):
        outcome[test], raised[test] = models[f].outcomes(times.rows(test), Z[test], observed.arm[test], floor)
    return CompletedOutcomes(outcome, raised, models, plan, floor, times.entry is None)
