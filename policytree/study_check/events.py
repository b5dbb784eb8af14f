"""Findings about times and events: censored outcomes, covariates that reveal the event, outcomes that are harms."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.study_check.columns import after_treatment, is_text, value_text
from policytree.study_check.findings import CENSORED, DIRECTION, KNOWS_EVENT, Finding
from policytree.study_check.names import is_event, is_time, sounds_bad

MOST_STATES = 4  # alive, transplanted, dead, lost
MANY_TIMES = 10  # distinct values from which on a number may be a time
SAID_EVENTS = {"dead", "died", "deceased", "death", "censored", "uncensored", "relapse", "relapsed"}
_HOW = (
    "Take an outcome that is known for everybody: whether the event came by a day until which all were followed, or "
    "the time up to that day."
)


def event_findings(table: pd.DataFrame, y: np.ndarray, name: str | None, *, covariates: bool = True) -> list[Finding]:
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
    """
    events = [column for _, column in table.items() if _records_an_event(column)]
    times = [str(column.name) for _, column in table.items() if _is_a_time(column)]
    states = np.unique(y)
    if name is not None and 2 <= len(states) <= MOST_STATES and is_event(name):
        return _of_an_event(name, times, covariates)
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
    out = [Finding("serious", CENSORED, name, found, _HOW)]
    if covariates:
        knows = f"looks like the record of the event whose time is the outcome, {name}"
        how = "Leave it out: it is known only when the time is, and with it every effect may disappear."
        out += [Finding("serious", KNOWS_EVENT, str(column.name), knows, how) for column in events]
    return out


def _of_an_event(name: str, times: list[str], covariates: bool) -> list[Finding]:
    if not times:
        return []
    found = (
        f"looks like an event whose time, or the time without it, is in {', '.join(times)}: people who were followed "
        "for a shorter time had less time for it, so that no event may mean not yet"
    )
    out = [Finding("serious" if covariates else "warning", CENSORED, name, found, _HOW)]
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
    return is_event(column.name) or bool(said & SAID_EVENTS)


def _is_a_time(column: pd.Series) -> bool:
    if not is_time(column.name):
        return False
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return True
    if not pd.api.types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    values = column.dropna()
    return values.nunique() > MANY_TIMES and float(values.min()) >= 0.0


def direction_findings(y: np.ndarray, name: str) -> list[Finding]:
    """A two-valued outcome without a stated direction; no finding if its name suggests that more is better.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Outcome, of which more is taken to be better.
    name : str
    """
    states = np.unique(y)
    bad = sounds_bad(name)
    if len(states) != 2 or bad is False:
        return []
    low, high = (f"{state:g}" for state in states)
    how = f"Say which is better: --direction minimize if {high} is bad, --direction maximize if it is good."
    if bad:
        named, more, severity = " and has a name that sounds like harm", ", and so would seek harm", "serious"
    elif is_event(name):
        named, more, severity = " and has a name of events, which may be harm", "", "warning"
    else:
        named, more, severity = "", "", "note"
    found = (
        f"is {low} or {high}{named}; nobody said which is better, and rules make its mean as large as possible{more}"
    )
    return [Finding(severity, DIRECTION, name, found, how)]
