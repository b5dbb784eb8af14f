"""Times to an event in batches: hazards learnt from a sample, and the outcomes of rows completed by them.

The learners are those of tables in memory (:mod:`policytree.weighting.time_to_event.hazards`), and so is the
transformation. A row of the sample becomes a row of person-time in every bin in which it is at risk, so that hazards
are learnt from fewer rows than other models: their errors enter as products with each other's, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policytree.encoded.nuisance_models import Batch
from policytree.exceptions import InputError
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.censoring import HazardModels, fit_hazards
from policytree.weighting.time_to_event.grid import MOST_BINS
from policytree.weighting.time_to_event.hazards import HazardStack

FEWEST_ROWS = 200  # of an arm in a fold that hazards are learnt from, if there are so many
CHUNK = 1 << 14  # rows whose outcomes are completed at a time, each with its hazards in all bins


@dataclass(frozen=True, slots=True)
class Completion:
    """Models that complete outcomes.

    Attributes
    ----------
    models : tuple of HazardModels, one per fold
    floor : float
        Least probability of not being censored.
    """

    models: tuple[HazardModels, ...]
    floor: float

    @property
    def horizon(self) -> float:
        """Time up to which events count."""
        return self.models[0].horizon

    def outcomes(self, batch: Batch, out: np.ndarray, each: Callable[[Callable, Iterable], list]):
        """Completed outcomes of rows: by the hazards that did not see their fold, or by the average of all.

        Parameters
        ----------
        batch : Batch
            With ``times``.
        out : ndarray of shape (m,), bool
            Rows that are held out of all folds.
        each : callable
            A map in threads.

        Returns
        -------
        outcome : ndarray of shape (m,)
        raised : ndarray of shape (m,), bool
            Rows whose probability of not being censored was raised to the floor, by half of the models at least.
        """
        times = batch.times
        assert times is not None, "outcomes are times"
        n_folds = len(self.models)
        tasks = []
        for f in range(n_folds):
            rows = np.flatnonzero(out | (batch.fold == f))
            tasks += [(f, rows[first : first + CHUNK]) for first in range(0, len(rows), CHUNK)]

        def completed(task: tuple[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
            f, rows = task
            return self.models[f].outcomes(times.rows(rows), batch.Z[rows], batch.arm[rows], self.floor)

        outcome, raised, share = np.zeros(len(out)), np.zeros(len(out)), np.where(out, 1.0 / n_folds, 1.0)
        for (_, rows), (found, low) in zip(tasks, each(completed, tasks), strict=True):
            outcome[rows] += share[rows] * found
            raised[rows] += share[rows] * low
        return outcome, raised >= 0.5


def hazard_rows(bits: np.ndarray, arm: np.ndarray, fold: np.ndarray, n_arms: int, n_folds: int, fit_rows: int):
    """The rows of a sample that hazards are learnt from, (m,) bool: equally many of every arm and fold, at most.

    Parameters
    ----------
    bits : ndarray of shape (m,), uint64
        Rows of the smallest are taken.
    arm, fold : ndarray of shape (m,), int64
    n_arms, n_folds : int
    fit_rows : int
        Most rows of person-time that one model learns from.
    """
    most = max(FEWEST_ROWS, fit_rows // (MOST_BINS * n_arms * (n_folds - 1)))
    use = np.zeros(len(bits), dtype=bool)
    for k in range(n_arms):
        for f in range(n_folds):
            own = np.flatnonzero((arm == k) & (fold == f))
            use[own[np.argsort(bits[own], kind="stable")[:most]]] = True
    return use


def fit_completion(
    sample: Batch, n_folds: int, treatments: np.ndarray, stacks: tuple[HazardStack, HazardStack], floor: float,
    executor: Any,
) -> Completion:  # fmt: skip
    """Hazards of events and of censoring, fitted to the rows of a sample that are marked for them.

    Parameters
    ----------
    sample : Batch
        With ``times`` and ``in_hazards``.
    n_folds : int
    treatments : ndarray of shape (K,)
    stacks : tuple of two HazardStack
        Of events and of censoring.
    floor : float
    executor : object with ``submit``
    """
    assert sample.times is not None and sample.in_hazards is not None, "outcomes are times"
    rows = np.flatnonzero(sample.in_hazards)
    empty = np.flatnonzero(np.bincount(sample.fold[rows], minlength=n_folds) == 0)
    if len(empty):
        raise InputError(
            f"Fold {empty[0]} holds none of the {len(rows):,} rows that hazards are learnt from; use fewer folds (cv "
            "of the RewardEstimator)."
        )
    weight = None if sample.weight is None else sample.weight[rows]
    observed = StudyData(
        sample.y[rows], sample.arm[rows], treatments, weight, None, pd.RangeIndex(len(rows)),
        times=sample.times.rows(rows),
    )  # fmt: skip
    plan = FoldPlan(sample.fold[rows], n_folds)
    return Completion(fit_hazards(sample.Z[rows], observed, [plan], *stacks, executor)[0], floor)
