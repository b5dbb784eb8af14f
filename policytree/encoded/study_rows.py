"""Rows of a study, from tables to arrays: outcomes, treatments, weights, clusters, covariates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from policytree.data.sources import NUMBER
from policytree.encoded.draws import cluster_keys
from policytree.encoded.reading import covariate, numbers, positions, refuse_unread, row_weights
from policytree.exceptions import InputError, quoted
from policytree.study.assignments import Given
from policytree.study.outcomes import Outcome, TimeToEvent
from policytree.study.study import Study, columns_in
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.study_data import LARGEST_OUTCOME, WEIGHT, StudyData
from policytree.weighting.time_to_event.outcome import TimeToEvent as Times
from policytree.weighting.time_to_event.outcome import check_horizon, resolve_target, time_to_event

IN_MEMORY = "or score the rows in memory: RewardEstimator().fit(study.in_memory())"
REMEDIES = {  # of kinds that are not served
    "Offered": f"pass the offers as treatment, {IN_MEMORY}",
    "Combined": f"write combinations of the treatments into one column, {IN_MEMORY}",
    "Rewards": "they are scored already: pass the study to encode",
    "Label": "labels need no scores: pass the study to encode",
}
# Fields of a study that are not read where outcomes become rewards, and what to do instead.
UNREAD = {
    "population": f"leave it out, {IN_MEMORY}",
    "strata": f"folds are drawn by row or by cluster: leave them out, {IN_MEMORY}",
    "arm_costs": f"subtract costs from outcomes, {IN_MEMORY}",
    "budget_costs": f"leave them out, {IN_MEMORY}",
    "further_outcomes": f"score each in a study of its own, {IN_MEMORY}",
    "subgroups": f"leave them out, {IN_MEMORY}",
}


def check_scored(study: Any) -> None:
    """Refuse studies whose outcomes cannot become rewards a batch at a time: a sentence that names kind and remedy."""
    if not isinstance(study, Study):
        raise InputError(f"stream_rewards takes a Study(table, treatment=..., outcome=...); got {quoted(study)}.")
    for kind in (study.outcome, study.treatment):
        served = kind.in_parts if isinstance(kind, Outcome) else isinstance(kind, Given)
        if not served:
            name = type(kind).__name__
            raise InputError(f"Rewards in batches know no {name}; {REMEDIES.get(name, IN_MEMORY.removeprefix('or '))}.")
    refuse_unread(study, UNREAD, "Rewards in batches")
    if isinstance(study.outcome, TimeToEvent):
        resolve_target(study.outcome.measure, study.outcome.cause)
        if study.outcome.horizon is not None:
            check_horizon(study.outcome.horizon)


def columns_of_study(study: Study) -> list[str]:
    """Columns beside the covariates that all readings need."""
    some = [*study.outcome.columns().values(), study.treatment.column, study.weights, study.cluster]
    return list(dict.fromkeys(name for name in some if name is not None))


def columns_to_score(study: Study) -> list[str]:
    """Every column that is read, once."""
    known = columns_in(study.propensity)
    return list(dict.fromkeys([*study.covariates, *study.confounders, *columns_of_study(study), *known]))


def said(table: Any, study: Study, kinds: dict[str, str]) -> dict[str, Any]:
    """Outcomes of some rows, and how they were observed, as the study's kind reads them."""
    return study.outcome.arguments_of_part(outcome_frame(table, study, kinds))


def outcome_frame(table: Any, study: Study, kinds: dict[str, str]) -> pd.DataFrame:
    """The columns of the outcome, as a frame of numbers and text."""
    names = study.outcome.columns().values()
    return pd.DataFrame({name: _plain(table.column(name), kinds[name]) for name in names})


def _plain(column: Any, kind: str) -> np.ndarray:
    return numbers(column) if kind == NUMBER else column.to_pandas().to_numpy(dtype=object)


def outcomes(table: Any, study: Study, kinds: dict[str, str], first_row: int) -> tuple[np.ndarray, np.ndarray]:
    """The outcome of every row, finite, zero where it is missing; and whether it is seen."""
    return _finite(said(table, study, kinds), first_row)


def _finite(told: dict[str, Any], first_row: int) -> tuple[np.ndarray, np.ndarray]:
    y, weighted = told["Y"].to_numpy(dtype=np.float64), told.get("missing_outcome") == WEIGHT
    missing = np.isnan(y)
    usable = np.abs(y) <= LARGEST_OUTCOME
    bad = np.flatnonzero(~(usable | missing) if weighted else ~usable)
    if len(bad):
        what = "is missing or infinite" if not np.isfinite(y[bad[0]]) else f"is beyond {LARGEST_OUTCOME:g}"
        also = "" if weighted or "event" in told else ", or take outcome=MayBeMissing(...) if some are missing"
        raise InputError(
            f"Column {told['Y'].name!r} of outcome {what} in row {first_row + bad[0]}; drop or mend such rows{also}."
        )
    return np.where(missing, 0.0, y), ~missing


def times_of(table: Any, study: Study, kinds: dict[str, str], first_row: int = 0, *, horizon: float) -> Times:
    """Times of rows with how they ended, checked row by row, up to a horizon that is known."""
    y, of_times = _times(table, study, kinds, first_row)
    return time_to_event(
        y, **of_times | {"horizon": horizon}, arm=np.zeros(len(y), np.int64), treatments=np.array([]), new_rows=True,
        first_row=first_row,
    )  # fmt: skip


def times_of_sample(table: Any, study: Study, kinds: dict[str, str], arm: np.ndarray, treatments: np.ndarray) -> Times:
    """Times of a sample, from which the horizon follows unless it was named, and what can be said of every arm."""
    y, of_times = _times(table, study, kinds, 0)
    return time_to_event(y, **of_times, arm=arm, treatments=treatments, weight=weights_of(table, study, 0))


def _times(table: Any, study: Study, kinds: dict[str, str], first_row: int) -> tuple[pd.Series, dict[str, Any]]:
    """Times, finite, and what says how they ended and what they count for."""
    told = said(table, study, kinds) | {"horizon": horizon_of(study)}
    return pd.Series(_finite(told, first_row)[0], name=told.pop("Y").name), told


def horizon_of(study: Study) -> float | None:
    """The horizon that somebody named; a study in memory that nobody told has one of all rows, and not of a sample."""
    assert isinstance(study.outcome, TimeToEvent), "asked of times only"
    times = None if study.found is None else study.found.times
    return None if times is not None and times.default_horizon else study.outcome.horizon


def treatment_positions(table: Any, name: str, labels: list, first_row: int) -> np.ndarray:
    """The place of every row's treatment among these, int64."""
    place = positions(table.column(name), labels)
    bad = np.flatnonzero(np.isnan(place))
    if len(bad):
        raise InputError(
            f"Column {name!r} of treatment has no value in row {first_row + bad[0]}; drop the rows without a treatment."
        )
    return place.astype(np.int64)


def weights_of(table: Any, study: Study, first_row: int) -> np.ndarray | None:
    """Weights >= 0, or None."""
    return row_weights(table, study.weights, first_row)


def draw_keys(table: Any, study: Study, kinds: dict[str, str], first_row: int) -> np.ndarray:
    """Return the keys of draws of folds, by the cluster or the row's number; uint64."""
    if study.cluster is None:
        return np.arange(first_row, first_row + table.num_rows, dtype=np.uint64)
    column = table.column(study.cluster)
    missing = np.flatnonzero(column.is_null(nan_is_null=True).to_numpy())
    if len(missing):
        row = int(missing[0])
        raise InputError(
            f"Column {study.cluster!r} of cluster has no value in row {first_row + row}; give every row a cluster."
        )
    if kinds[study.cluster] == NUMBER:
        return cluster_keys(numbers(column))
    return cluster_keys(column.to_pandas().to_numpy(dtype=object))


def covariate_frame(table: Any, names: tuple[str, ...], kinds: dict[str, str]) -> pd.DataFrame | None:
    """Covariates as a frame of numbers and text; None if there are none."""
    if not names:
        return None
    columns = {name: table.column(name) for name in names}
    return pd.DataFrame(
        {
            name: covariate(table, name) if kinds[name] == NUMBER else _plain(c, kinds[name])
            for name, c in columns.items()
        }
    )


def known_propensities(table: Any, propensity: Any, treatments: np.ndarray, first_row: int) -> np.ndarray:
    """Known propensities (m, K) of the rows of a table, the first of which has this number."""

    def of(value: Any) -> Any:
        return numbers(table.column(value)) if isinstance(value, str) else np.full(table.num_rows, float(value))

    if isinstance(propensity, Mapping):
        propensity = {k: of(v) for k, v in propensity.items()}
    elif isinstance(propensity, str):  # one number other than 1/2 needs a label, as in memory
        propensity = _second(of(propensity), treatments)
    return propensity_matrix(propensity, table.num_rows, treatments, first_row=first_row)


def _second(p: np.ndarray, treatments: np.ndarray) -> np.ndarray:
    """Both columns, where the probability of the second of two treatments is given."""
    if len(treatments) != 2:
        raise InputError(
            f"propensity gives one probability per row, but there are {len(treatments)} treatments; give one per "
            "treatment, as a mapping from label to a probability or a column."
        )
    return np.column_stack([1.0 - p, p])


def observed_rows(y, arm, treatments, weight, seen=None) -> StudyData:
    """Rows as schemes take them."""
    return StudyData(y, arm, treatments, weight, None, pd.RangeIndex(len(y)), seen=seen)
