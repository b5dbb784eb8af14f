"""Rows of a study, from tables to arrays: outcomes, treatments, weights, clusters, covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policytree.encoded.draws import cluster_keys
from policytree.encoded.reading import Roles, covariate, numbers, positions, row_weights
from policytree.encoded.sources import NUMBER, Source
from policytree.exceptions import InputError
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.study_data import LARGEST_OUTCOME, REFUSE, WEIGHT, StudyData
from policytree.weighting.time_to_event.outcome import TimeToEvent, time_to_event


@dataclass(frozen=True, slots=True)
class StudyColumns:
    """Which columns are what.

    Attributes
    ----------
    X, W : tuple of str
    outcome, treatment : str
    weights, groups : str or None
    event, entry : str or None
        Where outcomes are times: how each ended, and from when on the row was under observation.
    propensity : float, str, mapping, or None
        One number (two treatments), the name of a column, or by treatment a number or a column.
    """

    X: tuple[str, ...]
    W: tuple[str, ...]
    outcome: str
    treatment: str
    weights: str | None
    groups: str | None
    event: str | None
    entry: str | None
    propensity: Any

    def of_study(self) -> list[str]:
        """Columns beside the covariates that all readings need."""
        some = [self.outcome, self.treatment, self.weights, self.groups, self.event, self.entry]
        return list(dict.fromkeys(name for name in some if name is not None))

    def of_propensity(self) -> list[str]:
        """Columns that hold known propensities."""
        given = [*self.propensity.values()] if isinstance(self.propensity, Mapping) else [self.propensity]
        return list(dict.fromkeys(name for name in given if isinstance(name, str)))

    def all(self) -> list[str]:
        """Every column, once."""
        return list(dict.fromkeys([*self.X, *self.W, *self.of_study(), *self.of_propensity()]))

    def kinds(self, source: Source) -> dict[str, str]:
        """Kinds of all columns, or one sentence."""
        out: dict[str, str] = {}
        for argument, names in (
            ("X", list(self.X)),
            ("W", list(self.W)),
            ("outcome", [self.outcome]),
            ("treatment", [self.treatment]),
            ("weights", [] if self.weights is None else [self.weights]),
            ("groups", [] if self.groups is None else [self.groups]),
            ("propensity", self.of_propensity()),
            ("event", [] if self.event is None else [self.event]),
            ("entry", [] if self.entry is None else [self.entry]),
        ):
            found = source.kinds(names, argument)
            wrong = [
                name
                for name in names
                if argument in ("outcome", "weights", "propensity", "entry") and found[name] != NUMBER
            ]
            if wrong:
                raise InputError(f"Column {wrong[0]!r} of {argument} holds {found[wrong[0]]}; it must hold numbers.")
            out |= found
        return out


@dataclass(frozen=True, slots=True)
class AskedOutcome:
    """What is asked about outcomes, as by :meth:`policytree.RewardEstimator.fit`.

    Attributes
    ----------
    horizon : float or None
    target : str or None
    cause : object
    missing_outcome : {"refuse", "weight"}
    """

    horizon: float | None = None
    target: str | None = None
    cause: Any = None
    missing_outcome: str = REFUSE


def outcomes(
    table: Any, columns: StudyColumns, first_row: int, missing_outcome: str = REFUSE
) -> tuple[np.ndarray, np.ndarray]:
    """The outcome of every row, finite, zero where it is missing; and whether it is seen."""
    name = columns.outcome
    y = numbers(table.column(name))
    missing = np.isnan(y)
    usable = np.abs(y) <= LARGEST_OUTCOME
    bad = np.flatnonzero(~(usable | missing) if missing_outcome == WEIGHT else ~usable)
    if len(bad):
        what = "is missing or infinite" if not np.isfinite(y[bad[0]]) else f"is beyond {LARGEST_OUTCOME:g}"
        may_miss = missing_outcome == REFUSE and columns.event is None
        also = ", or pass missing_outcome='weight' if some are missing" if may_miss else ""
        raise InputError(
            f"Column {name!r} of outcome {what} in row {first_row + bad[0]}; drop or mend such rows{also}."
        )
    return np.where(missing, 0.0, y), ~missing


def times_of(
    table: Any,
    columns: StudyColumns,
    asked: AskedOutcome,
    first_row: int = 0,
    *,
    horizon: float,
) -> TimeToEvent:
    """Times of rows with how they ended, checked row by row, up to a horizon that is known."""
    y, event, entry = _time_columns(table, columns, first_row)
    return time_to_event(
        y, event, entry=entry, horizon=horizon, target=asked.target, cause=asked.cause, arm=np.zeros(len(y), np.int64),
        treatments=np.array([]), new_rows=True, first_row=first_row,
    )  # fmt: skip


def times_of_sample(
    table: Any, columns: StudyColumns, asked: AskedOutcome, arm: np.ndarray, treatments: np.ndarray
) -> TimeToEvent:
    """Times of a sample, from which the horizon follows unless it was named, and what can be said of every arm."""
    y, event, entry = _time_columns(table, columns, 0)
    return time_to_event(
        y, event, entry=entry, horizon=asked.horizon, target=asked.target, cause=asked.cause, arm=arm,
        treatments=treatments, weight=weights_of(table, columns, 0),
    )  # fmt: skip


def _time_columns(table: Any, columns: StudyColumns, first_row: int):
    """Time, event and entry (None without) as series that are called as the columns are."""
    y = pd.Series(outcomes(table, columns, first_row)[0], name=columns.outcome)
    event = table.column(columns.event).to_pandas().rename(columns.event)
    if isinstance(event.dtype, pd.CategoricalDtype):
        event = event.astype(object)
    if columns.entry is None:
        return y, event, None
    return y, event, pd.Series(numbers(table.column(columns.entry)), name=columns.entry)


def treatment_positions(table: Any, name: str, labels: list, first_row: int) -> np.ndarray:
    """The place of every row's treatment among these, int64."""
    place = positions(table.column(name), labels)
    bad = np.flatnonzero(np.isnan(place))
    if len(bad):
        raise InputError(
            f"Column {name!r} of treatment has no value in row {first_row + bad[0]}; drop the rows without a treatment."
        )
    return place.astype(np.int64)


def weights_of(table: Any, columns: StudyColumns, first_row: int) -> np.ndarray | None:
    """Weights >= 0, or None."""
    return row_weights(table, Roles((), weights=columns.weights), first_row)


def draw_keys(table: Any, columns: StudyColumns, kinds: dict[str, str], first_row: int) -> np.ndarray:
    """What draws of folds depend on: the cluster, or the row's number; uint64."""
    if columns.groups is None:
        return np.arange(first_row, first_row + table.num_rows, dtype=np.uint64)
    column = table.column(columns.groups)
    missing = np.flatnonzero(column.is_null(nan_is_null=True).to_numpy())
    if len(missing):
        row = int(missing[0])
        raise InputError(
            f"Column {columns.groups!r} of groups has no value in row {first_row + row}; give every row a cluster."
        )
    if kinds[columns.groups] == NUMBER:
        return cluster_keys(numbers(column))
    return cluster_keys(column.to_pandas().to_numpy(dtype=object))


def covariate_frame(table: Any, names: tuple[str, ...], kinds: dict[str, str]) -> pd.DataFrame | None:
    """Covariates as a frame of numbers and text; None if there are none."""
    if not names:
        return None
    return pd.DataFrame(
        {
            name: covariate(table, name)
            if kinds[name] == NUMBER
            else table.column(name).to_pandas().to_numpy(dtype=object)
            for name in names
        }
    )


def known_propensities(table: Any, propensity: Any, treatments: np.ndarray) -> np.ndarray:
    """Known propensities (m, K) of the rows of a table."""

    def of(value: Any) -> Any:
        return numbers(table.column(value)) if isinstance(value, str) else np.full(table.num_rows, float(value))

    if isinstance(propensity, Mapping):
        return propensity_matrix({k: of(v) for k, v in propensity.items()}, table.num_rows, treatments)
    if not isinstance(propensity, str):  # one number other than 1/2 needs a label, as in memory
        return propensity_matrix(propensity, table.num_rows, treatments)
    return propensity_matrix(_second(of(propensity), treatments), table.num_rows, treatments)


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
