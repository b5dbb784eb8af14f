"""Times to an event: what was observed, up to which horizon, and which target is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from policytree.common.callers import stacklevel_outside
from policytree.common.validation import as_series, check_choice, is_real, numbers
from policytree.exceptions import InputError, quoted
from policytree.trees.text import with_unit
from policytree.weighting.time_to_event.product_limit import product_limit

AT_RISK_BY_DEFAULT = 0.1  # of every arm, at the default horizon
FEWEST_AT_RISK = 5  # rows of an arm that are still followed at the horizon, where some were censored before,
MOST_UNKNOWN = (
    0.05  # unless the outcomes of all but this share are known: those who had the event by then are not missed
)
NOT_MANY = 0.05  # or unless events leave no more than this share of the arm when so few are followed
LARGEST_TIME = 1e100


@dataclass(frozen=True, slots=True)
class Target:
    """Value of a time and its event, as a function of the time that is linear up to the horizon.

    Attributes
    ----------
    name : str
    by_cause : bool
        Whether one of several causes of events is asked about.
    event, other : tuple of two floats
        Intercept and slope, in the time, of what an event counts for: of the cause that is asked about, of any other.
        Intercepts and what follows are multiplied by the horizon where ``per_horizon``.
    free : float
        Value of being free of events at the horizon.
    per_horizon : bool
    """

    name: str
    by_cause: bool
    event: tuple[float, float]
    other: tuple[float, float]
    free: float
    per_horizon: bool

    def of_event(self, time: np.ndarray, horizon: float) -> np.ndarray:
        """Return the value of events of the cause at these times."""
        return self._of(self.event, time, horizon)

    def of_other(self, time: np.ndarray, horizon: float) -> np.ndarray:
        """Return the value of events of other causes at these times."""
        return self._of(self.other, time, horizon)

    def of_free(self, horizon: float) -> float:
        """Return the value without an event up to the horizon."""
        return self.free * (horizon if self.per_horizon else 1.0)

    def _of(self, line: tuple[float, float], time: np.ndarray, horizon: float) -> np.ndarray:
        intercept = line[0] * (horizon if self.per_horizon else 1.0)
        return intercept + line[1] * np.asarray(time, dtype=np.float64)


RMST, SURVIVAL, YEARS_LOST, INCIDENCE = "rmst", "survival", "years_lost", "cumulative_incidence"
TARGETS: Mapping[str, Target] = {
    RMST: Target(RMST, False, (0.0, 1.0), (0.0, 1.0), 1.0, True),
    SURVIVAL: Target(SURVIVAL, False, (0.0, 0.0), (0.0, 0.0), 1.0, False),
    YEARS_LOST: Target(YEARS_LOST, True, (1.0, -1.0), (0.0, 0.0), 0.0, True),
    INCIDENCE: Target(INCIDENCE, True, (1.0, 0.0), (0.0, 0.0), 0.0, False),
}


class CheckedHorizon(float):
    """A horizon to which enough rows of every arm were followed, among all of which a fit has some.

    Fits without a fold are not refused for the few rows that the fold has taken away.
    """


class CodedCause(int):
    """The code 1 of a cause, where a column was read for it, with the value that the user named."""

    said: Any

    def __new__(cls, said: Any) -> CodedCause:
        """The code of this value."""
        made = super().__new__(cls, 1)
        made.said = said
        return made


class Asked(NamedTuple):
    """Question about times: one of several causes (the user's value), up to when, and the name of the target."""

    cause: Any
    horizon: float
    target: str

    def arguments(self) -> dict[str, Any]:
        """The arguments that ask the same of events of every cause."""
        return {"horizon": self.horizon, "target": self.target}

    def of(self, times: TimeToEvent) -> TimeToEvent:
        """The same times, of which this is asked.

        Raises
        ------
        InputError
            If rows enter too late for it.
        """
        if times.entry is not None:
            refuse_late_entries(int((times.entry >= self.horizon).sum()), self.horizon)
        return replace(times, horizon=float(self.horizon), target=TARGETS[self.target], default_horizon=False)

    def refuse_other(self, times: TimeToEvent, who: str) -> None:
        """Refuse to say of one question what was fitted for another; a horizon that nobody named asks for none."""
        for name, here, there in zip(self._fields, times.asked, self, strict=True):
            if here != there and not (name == "horizon" and times.default_horizon):
                word = "measure" if name == "target" else name
                raise InputError(
                    f"The model was fitted with {word}={quoted(there)}, {who} for {quoted(here)}; use the same."
                )


@dataclass(frozen=True, slots=True)
class TimeToEvent:
    """Times of follow-up with how they ended, and the target.

    Attributes
    ----------
    time : ndarray of shape (n,), float64
        Until the event or until censoring, in the user's unit.
    code : ndarray of shape (n,), int64
        0: censored, 1: the event (of the cause that is asked about), 2: an event of another cause.
    entry : ndarray of shape (n,), float64, or None
        Time from which on a row was under observation (left truncation).
    horizon : float
        Events after it do not matter.
    target : Target
    default_horizon : bool
        Whether nobody named the horizon.
    cause : optional
        The user's value of the cause that is asked about.
    """

    time: np.ndarray
    code: np.ndarray
    entry: np.ndarray | None
    horizon: float
    target: Target
    default_horizon: bool = False
    cause: Any = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.time)

    @property
    def asked(self) -> Asked:
        """Question about the times."""
        return Asked(self.cause, self.horizon, self.target.name)

    @property
    def free(self) -> np.ndarray:
        """Rows that are known to be free of events at the horizon, (n,) bool."""
        return (self.time > self.horizon) | ((self.time == self.horizon) & (self.code == 0))

    @property
    def known(self) -> np.ndarray:
        """Rows whose outcome up to the horizon is known, (n,) bool."""
        return self.free | (self.code > 0)

    @property
    def censored(self) -> np.ndarray:
        """Rows that were censored before the horizon, (n,) bool."""
        return ~self.known

    @property
    def observed_value(self) -> np.ndarray:
        """Values of known outcomes, (n,); of censored rows the value of an event at that time."""
        h = self.horizon
        out = np.where(self.code == 2, self.target.of_other(self.time, h), self.target.of_event(self.time, h))
        return np.where(self.free, self.target.of_free(h), out)

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest that the target can be for anybody."""
        return 0.0, self.horizon if self.target.per_horizon else 1.0

    def rows(self, rows: np.ndarray) -> TimeToEvent:
        """Some of the rows, by their positions."""
        entry = None if self.entry is None else self.entry[rows]
        return replace(self, time=self.time[rows], code=self.code[rows], entry=entry)

    def columns(self, rows: np.ndarray) -> dict[str, Any]:
        """``event`` and ``entry`` of some rows, as ``predict_rewards`` takes them."""
        return {"event": self.code[rows], "entry": None if self.entry is None else self.entry[rows]}

    def arguments(self, rows: np.ndarray) -> dict[str, Any]:
        """All that ``fit`` takes beside the time: as :meth:`columns`, with the horizon and the target."""
        cause = CodedCause(self.cause) if self.target.by_cause else None
        horizon = CheckedHorizon(self.horizon)
        return {**self.columns(rows), "horizon": horizon, "target": self.target.name, "cause": cause}

    @property
    def said(self) -> str:
        """The horizon as messages say it, such as "horizon 1,000"."""
        return f"horizon {self.until()}"

    @property
    def chosen(self) -> str:
        """How the horizon was chosen, in words; "" if somebody named it."""
        if not self.default_horizon:
            return ""
        return (
            f"the last time at which {AT_RISK_BY_DEFAULT:.0%} of every treatment's rows are at risk, or "
            f"{1 - MOST_UNKNOWN:.0%} of their outcomes are known"
        )

    def facts(self, unit: str = "") -> dict[str, str]:
        """Return facts of the question that a report states beside the outcome, by their names."""
        return {"horizon": self.until(unit) + (f" (by default: {self.chosen})" if self.chosen else "")}

    def until(self, unit: str = "") -> str:
        """The horizon in words, such as "1,000 days"."""
        return with_unit(f"{self.horizon:,.6g}", unit)

    def value_unit(self, unit: str = "") -> str:
        """Return the unit of means of the target, such as "days of 1,000"; for shares "share of people"."""
        return f"{unit} of {self.horizon:,.6g}".lstrip() if self.target.per_horizon else "share of people"

    def described(self, outcome: str, unit: str = "") -> str:
        """The target in words, for the column of the time and its unit."""
        until = self.until(unit)
        return {
            RMST: f"mean {outcome} up to {until}",
            SURVIVAL: f"share without event at {outcome} = {until}",
            YEARS_LOST: f"mean {outcome} lost to the cause up to {until}",
            INCIDENCE: f"share with an event of the cause by {outcome} = {until}",
        }[self.target.name]


def is_structured(Y: Any) -> bool:
    """Whether an outcome is a structured array, as scikit-survival's ``Surv`` makes them."""
    return getattr(getattr(Y, "dtype", None), "names", None) is not None


def split_structured(Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Time and event of a structured array with one field of booleans and one of numbers.

    Raises
    ------
    InputError
        If it has other fields.
    """
    names = Y.dtype.names
    events = [name for name in names if Y.dtype[name].kind == "b"]
    times = [name for name in names if Y.dtype[name].kind in "fiu"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        raise InputError(
            f"Y is a structured array with the fields {', '.join(names)}; times to an event have two, one of booleans "
            "(whether the event was seen) and one of numbers (the time)."
        )
    return np.asarray(Y[times[0]]), np.asarray(Y[events[0]])


def time_to_event(
    Y: pd.Series,
    event: Any,
    *,
    entry: Any = None,
    horizon: float | None = None,
    target: str | None = None,
    cause: Any = None,
    arm: np.ndarray,
    treatments: np.ndarray,
    weight: np.ndarray | None = None,
    new_rows: bool = False,
    first_row: int = 0,
) -> TimeToEvent:
    """Check and encode times to an event.

    Parameters
    ----------
    Y : Series of n numbers
        Times.
    event : column of n values
        1 or True: the event was seen; 0 or False: censored. With ``cause``: 0 and the codes of the causes.
    entry : column of n numbers, optional
    horizon : float, optional
        By default the last time at which a tenth of every arm is at risk, or 95 % of its outcomes are known.
    target : str, optional
        A name in ``TARGETS``.
    cause : optional
        The value of ``event`` that is asked about.
    arm : ndarray of shape (n,), int64
    treatments : ndarray of shape (K,)
    weight : ndarray of shape (n,), or None
        Rows of weight zero do not count as being at risk.
    new_rows : bool
        Whether rows are to be judged by models of others: nothing is then asked of the arms.
    first_row : int
        Number of the first row, for messages, where these are some of many.

    Raises
    ------
    InputError
        One sentence that names the argument and the remedy.
    """
    kind = resolve_target(target, cause)
    said = cause.said if isinstance(cause, CodedCause) else cause
    n = len(Y)
    time = Y.to_numpy()
    negative = np.flatnonzero(time < 0.0)
    if len(negative):
        raise InputError(
            f"{Y.name} has {len(negative)} negative times, the first in row {first_row + negative[0]}; leave these "
            "rows out, or count time from an earlier origin."
        )
    if time.max() > LARGEST_TIME:
        raise InputError(f"{Y.name} holds times beyond {LARGEST_TIME:g}, too large to compute with; rescale it.")
    part_of_checked = new_rows or isinstance(horizon, CheckedHorizon)
    code = _event_codes(event, n, cause, new_rows, part_of_checked)
    start = None if entry is None else _entries(entry, time, Y.name, first_row)
    seen = np.ones(n, dtype=bool) if weight is None else weight > 0.0
    if new_rows:
        assert horizon is not None, "known from the fit"
        if start is not None:
            refuse_late_entries(int((start >= horizon).sum()), horizon)
        return TimeToEvent(time, code, start, float(horizon), kind, cause=said)
    if not (code[seen] > 0).any():
        raise InputError(
            "event says that every time is censored; without a single event there is nothing to learn: check which "
            "value stands for an event."
        )
    until = _horizon(horizon, time, code, start, arm, seen, treatments)
    out = TimeToEvent(time, code, start, until, kind, horizon is None, said)
    if not isinstance(horizon, CheckedHorizon):
        _refuse_thin_arms(out, arm, seen, treatments)
    return out


def warn_of_direction(times: TimeToEvent | None, direction: str) -> None:
    """Warn where a rule would seek events of a cause; refits (``CheckedHorizon``) were warned of beforehand."""
    if times is None or isinstance(times.horizon, CheckedHorizon):
        return
    if times.target.by_cause and direction == "maximize":
        warnings.warn(
            "With cause=, rewards are the time lost to the cause or the probability of its events, and direction "
            "'maximize' seeks more of them; pass direction='minimize' to the estimator if the event is bad.",
            UserWarning,
            stacklevel=stacklevel_outside(),
        )


def resolve_target(target: str | None, cause: Any) -> Target:
    """The target that is asked for, by its name or by whether a cause is named."""
    if cause is not None and np.ndim(cause) > 0:
        raise InputError(
            f"cause must be one value of event; got {quoted(cause)}: give several causes one value in a column of your "
            "own."
        )
    if target is None:
        target = RMST if cause is None else YEARS_LOST
    check_choice(target, "target", TARGETS)
    kind = TARGETS[target]
    if kind.by_cause and cause is None:
        raise InputError(f"target={target!r} is about one of several causes of events; name it: cause=1.")
    if not kind.by_cause and cause is not None:
        raise InputError(
            f"target={target!r} counts events of every cause; leave cause out, or ask for target={YEARS_LOST!r} or "
            f"{INCIDENCE!r}."
        )
    return kind


def _event_codes(event: Any, n: int, cause: Any, new_rows: bool, all_may_be_events: bool) -> np.ndarray:
    series = as_series(event, "event")
    name = series.name
    if len(series) != n:
        raise InputError(f"{name} has {len(series)} rows, but Y has {n}; give one value per row.")
    gaps = int(series.isna().sum())
    if gaps:
        raise InputError(f"{name} is missing in {gaps} rows; leave these rows out.")
    kinds = ", ".join(sorted({str(value) for value in series.unique()})[:6])
    if cause is None:
        try:
            values = series.to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            values = np.full(n, np.nan)
        if not np.isin(values, (0.0, 1.0)).all():
            raise InputError(
                f"{name} must be 1 (the event was seen) or 0 (censored); it holds {kinds}: compare it with the value "
                "that stands for the event (event == value), or name one of several causes by cause=."
            )
        return values.astype(np.int64)
    values = series.to_numpy()
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"With cause=, {name} must hold numbers, 0 for censored; it holds {kinds} of another type: map them to "
            "numbers."
        )
    is_cause = values == cause
    none = values == 0
    if new_rows:  # which may well have no event
        return np.where(is_cause, 1, np.where(none, 0, 2)).astype(np.int64)
    if not np.any(is_cause):
        raise InputError(f"{name} never holds cause={quoted(cause)}; it holds {kinds}.")
    if cause == 0:
        raise InputError(f"With cause= a value 0 of {name} stands for censoring; name one of the others as the cause.")
    if not (all_may_be_events or np.any(none)):
        raise InputError(
            f"With cause= a value 0 of {name} stands for censoring; it holds {kinds}: give the value that stands for "
            "censoring as 0, or, if nobody was censored, pass the time lost to the cause as Y, without event."
        )
    return np.where(is_cause, 1, np.where(none, 0, 2)).astype(np.int64)


def _entries(entry: Any, time: np.ndarray, name: Any, first_row: int) -> np.ndarray:
    given = numbers(entry, "entry", len(time))
    start = given.to_numpy()
    late = np.flatnonzero(start >= time)
    if len(late):
        raise InputError(
            f"{given.name} is not before {name} in {len(late)} rows, the first of them row {first_row + late[0]}; who "
            "enters at or after the end was never at risk: leave these rows out."
        )
    if (start < 0.0).any():
        raise InputError(f"{given.name} has {(start < 0.0).sum()} negative values; count time from an earlier origin.")
    return start


def _at_risk(at: float, time: np.ndarray, entry: np.ndarray | None) -> np.ndarray:
    return time >= at if entry is None else (time >= at) & (entry < at)


def _horizon(horizon, time, code, entry, arm, seen, treatments) -> float:
    if horizon is None:
        found = min(
            _default_horizon(time[own], code[own] == 0, None if entry is None else entry[own])
            for own in _arms(arm, seen, treatments)
        )
        if found <= 0.0:
            raise InputError(
                "Nine in ten rows of a treatment have time 0, so that there is no default horizon; name one: horizon=."
            )
        return found
    check_horizon(horizon)
    if entry is not None:
        refuse_late_entries(int((entry[seen] >= horizon).sum()), horizon)
    return horizon if isinstance(horizon, CheckedHorizon) else float(horizon)


def refuse_late_entries(n_late: int, horizon: float) -> None:
    """Rows that enter at or after the horizon that somebody named."""
    if n_late:
        raise InputError(f"{n_late} rows enter at or after horizon={horizon:g}; leave them out, or choose a later one.")


def check_horizon(horizon: Any) -> None:
    """Refuse what is no time."""
    if not is_real(horizon) or isinstance(horizon, bool) or not 0.0 < horizon < np.inf:
        raise InputError(f"horizon must be a time greater than 0, in the unit of Y; got {quoted(horizon)}.")


def _arms(arm: np.ndarray, seen: np.ndarray, treatments: np.ndarray) -> list[np.ndarray]:
    return [(arm == k) & seen for k in range(len(treatments))]


def _default_horizon(time: np.ndarray, censored: np.ndarray, entry: np.ndarray | None) -> float:
    """The last time at which a tenth of these rows, and some of them, are at risk, or nearly all outcomes are known."""
    needed = max(AT_RISK_BY_DEFAULT * len(time), FEWEST_AT_RISK)
    at = np.unique(time)
    at_risk = len(time) - np.searchsorted(np.sort(time), at, side="left")
    if entry is not None:
        at_risk = at_risk - (len(entry) - np.searchsorted(np.sort(entry), at, side="left"))
    unknown = np.searchsorted(np.sort(time[censored]), at, side="left")  # censored before
    enough = (at_risk >= needed) | ((unknown <= MOST_UNKNOWN * len(time)) & (len(time) - unknown >= FEWEST_AT_RISK))
    return float(at[np.flatnonzero(enough)[-1]]) if enough.any() else float(at[0])


def _refuse_thin_arms(times: TimeToEvent, arm: np.ndarray, seen: np.ndarray, treatments: np.ndarray) -> None:
    """Arms of which nothing can be said up to the horizon."""
    h, last = times.horizon, float(times.time[seen].max())
    for label, own in zip(treatments.tolist(), _arms(arm, seen, treatments), strict=True):
        part = times.rows(np.flatnonzero(own))
        followed = int(_at_risk(h, part.time, part.entry).sum())
        latest = _latest(part)
        unknown = int(part.censored.sum())
        too_few = followed < FEWEST_AT_RISK and unknown > MOST_UNKNOWN * part.n and _left(part, latest) > NOT_MANY
        if h > last and too_few:
            raise InputError(f"horizon={h:g} lies beyond all follow-up, which ends at {last:g}; choose an earlier one.")
        if too_few:
            raise InputError(
                f"At horizon={h:g} only {followed} rows of treatment {label!s} are still followed, and the outcomes of "
                f"{unknown} of its {part.n} rows are unknown; choose an earlier one, at most {latest:g}."
            )
        counted = part.code == 1 if times.target.by_cause else part.code > 0
        if not (counted & (part.time <= h)).any():
            what = "no event of the cause" if times.target.by_cause else "no event"
            raise InputError(
                f"Treatment {label!s} has {what} up to horizon={h:g} in {part.n} rows, so that what it brings "
                "cannot be estimated; choose a later horizon, or merge it with another treatment."
            )


def _left(part: TimeToEvent, at: float) -> float:
    """Share without event after a time."""
    return float(product_limit(part.time, part.code > 0, entry=part.entry).at(np.array([at]))[0])


def _latest(part: TimeToEvent) -> float:
    """The last time at which enough rows are followed."""
    ordered = np.sort(part.time)
    return float(ordered[max(len(ordered) - FEWEST_AT_RISK, 0)])
