"""Findings about times and events: censored outcomes and covariates that reveal the event."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import pandas as pd

from policytree.study_check.columns import after_treatment, is_text, value_text
from policytree.study_check.findings import CENSORED, KNOWS_EVENT, Finding
from policytree.study_check.names import is_event, is_time

MOST_STATES = 4  # alive, transplanted, dead, lost
MANY_TIMES = 10  # distinct values from which on a number may be a time
NEARLY_ALL = 0.98  # of the events, and of the censored rows, that a column tells
SAID_EVENTS = {"dead", "died", "deceased", "death", "uncensored", "relapse", "relapsed"}
SAID_CENSORED = {"censored", "censor", "cens"}
_OTHERWISE = (
    "Or take an outcome that is known for everybody: whether the event came by a day until which all were followed."
)


def likely_event(column: pd.Series) -> Any | None:
    """The value of an event column that stands for the event; None if it says so itself: 1 or 0, true or false.

    Of texts the one that names an event; of numbers the largest, such as 2 in a status of 1 and 2 (survival::lung).

    Parameters
    ----------
    column : Series of shape (n,)
        With two values or more.
    """
    values = column.dropna().unique().tolist()
    if set(values) <= {0, 1}:
        return None
    if not is_text(column):
        return max(values)
    texts = sorted(values, key=str)
    named = [text for text in texts if str(text).strip().casefold() in SAID_EVENTS | {"yes"}]
    others = [text for text in texts if str(text).strip().casefold() not in SAID_CENSORED]
    return (named or others or texts)[0]


def event_options(column: pd.Series) -> str:
    """How the command line is told of an event: its column and, where that is not of 1 and 0, the value."""
    event = likely_event(column)
    options = f"--event-column {shlex.quote(str(column.name))}"
    return options if event is None else f"{options} --event {shlex.quote(value_text(event))}"


def event_findings(
    table: pd.DataFrame,
    y: np.ndarray,
    name: str | None,
    *,
    covariates: bool = True,
    event: np.ndarray | None = None,
) -> list[Finding]:
    """A time beside the record of its event: a censored outcome and covariates that reveal it, or two later covariates.

    Parameters
    ----------
    table : DataFrame of shape (n, p)
    y : ndarray of shape (n,)
        Outcome.
    name : str or None
        Its name.
    covariates : bool
        Whether models use these columns; otherwise only findings about the outcome are returned.
    event : ndarray of shape (n,), optional
        How the times ``y`` ended, where that is known: they are then no censored outcome that is taken as a number.
    """
    events = [column for _, column in table.items() if _records_an_event(column)]
    times = [str(column.name) for _, column in table.items() if _is_a_time(column)]
    if event is not None:
        if not covariates:
            return []
        own = [column for _, column in table.items() if _records_these_events(column, event)]
        return _knowing(name or "the time", own) + _times_of_events(times, events)
    states = np.unique(y)
    if name is not None and 2 <= len(states) <= MOST_STATES and is_event(name):
        return _of_an_event(pd.Series(y, name=name), times, covariates)
    later = _times_of_events(times, events) if covariates else []
    if name is not None and len(states) > MANY_TIMES and states[0] >= 0 and is_time(name, follow_up=True):
        return _of_a_time(name, events, covariates) + later
    return later


def _times_of_events(times: list[str], events: list[pd.Series]) -> list[Finding]:
    """Times beside the record of an event, both covariates of another outcome."""
    recorded = " or ".join(str(column.name) for column in events)
    return [after_treatment(time, f"looks like the time until the event in {recorded}") for time in times if events]


def _of_a_time(name: str, events: list[pd.Series], covariates: bool) -> list[Finding]:
    if not events:
        return []
    recorded = " or ".join(str(column.name) for column in events)
    if len(events) == 1:
        counts = events[0].value_counts()
        recorded += f" ({', '.join(f'{value_text(value)} in {count:,} rows' for value, count in counts.items())})"
    found = (
        f"looks like the time until the event in {recorded}: where the event was not seen, the time says only that it "
        "came later, and taken as a number it understates the time"
    )
    how = f"Say how the times ended: {_said_to_python(events[0])}; on the command line {event_options(events[0])}."
    out = [Finding("serious", CENSORED, name, found, f"{how} {_OTHERWISE}")]
    return out + _knowing(name, events) if covariates else out


def _said_to_python(column: pd.Series) -> str:
    """The argument that says how times ended."""
    event = likely_event(column)
    said = f'event=df["{column.name}"]'
    if event is None:
        return f"{said} (1 where the event was seen)"
    return f"{said} == {event!r}" if is_text(column) else f"{said} == {value_text(event)}"


def _knowing(name: str, events: list[pd.Series]) -> list[Finding]:
    """Covariates that record the event whose time is the outcome."""
    knows = f"looks like the record of the event whose time is the outcome, {name}"
    how = "Leave it out: it is known only when the time is, and with it every effect may disappear."
    return [Finding("serious", KNOWS_EVENT, str(column.name), knows, how) for column in events]


def _records_these_events(column: pd.Series, event: np.ndarray) -> bool:
    """Whether the values of a column tell how times ended: nearly all events by one, nearly all others by another."""
    known = column.notna().to_numpy()
    values = column[known]
    if not 2 <= values.nunique() <= MOST_STATES or len(np.unique(event[known])) < 2:
        return False
    table = pd.crosstab(pd.factorize(values)[0], event[known]).to_numpy()
    told = np.where(table == table.max(axis=1, keepdims=True), table, 0).sum(axis=0) / table.sum(axis=0)
    return bool(told.min() >= NEARLY_ALL)


def _of_an_event(event: pd.Series, times: list[str], covariates: bool) -> list[Finding]:
    if not times:
        return []
    name = str(event.name)
    found = (
        f"looks like an event whose time, or the time without it, is in {', '.join(times)}: people who were followed "
        "for a shorter time had less time for it, so that no event may mean not yet"
    )
    how = (
        f'Take the time as the outcome: Y=df["{times[0]}"], {_said_to_python(event)}; on the command line --outcome '
        f"{shlex.quote(times[0])} {event_options(event)}."
    )
    out = [Finding("serious" if covariates else "warning", CENSORED, name, found, f"{how} {_OTHERWISE}")]
    if covariates:
        knows = f"looks like the time until the event that is the outcome, {name}, or until people were lost"
        how = "Leave it out: nobody knows it when treatment is chosen, and with it every effect may disappear."
        out += [Finding("serious", KNOWS_EVENT, time, knows, how) for time in times]
    return out


def _records_an_event(column: pd.Series) -> bool:
    values = column.dropna().unique()
    if not 2 <= len(values) <= MOST_STATES:
        return False
    said = {str(value).strip().casefold() for value in values} if is_text(column) else set()
    return is_event(column.name) or bool(said & (SAID_EVENTS | SAID_CENSORED))


def _is_a_time(column: pd.Series) -> bool:
    if not is_time(column.name):
        return False
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return True
    if not pd.api.types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    values = column.dropna()
    return values.nunique() > MANY_TIMES and float(values.min()) >= 0.0
