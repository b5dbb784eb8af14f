"""How outcomes were observed: texts as zeros and ones, times to an event, outcomes some of which are missing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.tables import number_in, require_column
from policytree.common.option_words import typed
from policytree.exceptions import InputError, quoted
from policytree.study_check.columns import value_text
from policytree.study_check.events import SAID_CENSORED, likely_event
from policytree.weighting.observed import REFUSE, WEIGHT, Observed
from policytree.weighting.time_to_event.outcome import INCIDENCE, RMST, SURVIVAL, TARGETS, YEARS_LOST, TimeToEvent

MOST_LABELS = 10  # labels of a column that may be a text outcome, or an event
TRUE_OR_FALSE = {"true": 1, "false": 0}


def event_outcome(column: pd.Series, event: str | None, direction: str | None) -> tuple[pd.Series, str]:
    """The outcome as numbers, and their meaning ("" if the column has numbers).

    Parameters
    ----------
    column : Series of shape (n,)
    event : str or None
        The label that counts as 1; all others count as 0, missing ones stay missing.
    direction : str or None
        The direction that the user gave, since whether an event is good or bad cannot be guessed.

    Raises
    ------
    InputError
        If the column holds texts and no event is named, or the event is none of its labels, or nobody said whether more
        or fewer of them are better.
    """
    if event is None:
        _refuse_texts(column, [str(label) for label in column.dropna().unique()])
        return column, ""
    met = _rows_with(column, event, "--event")
    if direction is None:
        raise InputError(
            f"Say whether fewer or more rows with {column.name} = {event} are better: --direction minimize or maximize."
        )
    others = _labels(column[~met])
    if not others:
        raise InputError(
            f"Column {column.name!r} holds nothing but the --event {event!r}; there is nothing to compare."
        )
    rest = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return met.astype(float).where(column.notna()), f"1 if {event}, 0 if {rest}"


def _labels(column: pd.Series) -> list[str]:
    return sorted({value_text(value) for value in column.dropna().unique()})


def _rows_with(column: pd.Series, label: str, option: str) -> pd.Series:
    """Rows that hold a label, (n,) of bool; at least one."""
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    wanted = number_in(label) if numeric else label.strip()
    met = column.eq(wanted) if numeric else column.astype("string").str.strip().eq(wanted)
    met = met.fillna(False).astype(bool) & column.notna()
    if not met.any():
        labels = sorted(str(value) for value in column.dropna().unique())
        shown = ", ".join(labels[:MOST_LABELS]) + (", ..." if len(labels) > MOST_LABELS else "")
        raise InputError(f"Column {column.name!r} never holds the {option} {label!r}; its values are {shown}.")
    return met


def _refuse_texts(column: pd.Series, labels: list[str]) -> None:
    """One sentence where a column of a few texts is an outcome in words."""
    if pd.api.types.is_numeric_dtype(column) or not 2 <= len(labels) <= MOST_LABELS:
        return
    if all(number_in(label) is not None for label in labels):
        return
    named = " or ".join(f"--event {typed(label)}" for label in sorted(labels)[:2])
    raise InputError(
        f"Column {column.name!r} (--outcome) holds texts, not numbers ({', '.join(sorted(labels))}); say which one "
        f"counts, such as {named}."
    )


def check_outcome_options(
    *,
    outcome: str,
    event: str | None,
    event_column: str | None,
    horizon: float | None,
    target: str | None,
    cause: str | None,
    entry_column: str | None,
    missing_outcome: str | None,
    instrument: str | None = None,
    direction: str | None,
) -> None:
    """Refuse options that do not go together.

    Raises
    ------
    InputError
    """
    if target is not None and target not in TARGETS and (Path(target).suffix or Path(target).exists()):
        raise InputError(
            f"--target says what times to an event count for ({RMST} or {SURVIVAL}), not for whom; a file of the "
            f"people whom the rule is for goes with --target-people {shlex.quote(target)}."
        )
    if missing_outcome not in (None, REFUSE, WEIGHT):
        raise InputError(f"--missing-outcome must be {REFUSE} or {WEIGHT}; got {quoted(missing_outcome)}.")
    del instrument  # goes with all of them
    if event_column is None:
        about_times = {
            "--horizon": horizon, "--target": target, "--cause": cause, "--entry-column": entry_column,
        }  # fmt: skip
        for option, value in about_times.items():
            if value is not None:
                raise InputError(
                    f"{option} is about times to an event; name the column that says how the times in {outcome!r} "
                    f"ended by --event-column, or leave {option} out."
                )
        return
    if missing_outcome == WEIGHT:
        raise InputError(
            "--missing-outcome weight is for outcomes that are numbers; with --event-column a row is censored at the "
            "last time at which it was seen: leave out one of the two."
        )
    if target is not None and target not in TARGETS:
        *names, last = TARGETS
        raise InputError(f"--target must be {', '.join(names)} or {last}; got {quoted(target)}.")
    if cause is not None and event is not None:
        raise InputError("--event and --cause both name a value of --event-column; with --cause leave out --event.")
    if target is not None and TARGETS[target].by_cause and cause is None:
        raise InputError(f"--target {target} is about one of several causes of events; name it, as in --cause 1.")
    if target is not None and not TARGETS[target].by_cause and cause is not None:
        raise InputError(
            f"--target {target} counts events of every cause; leave out --cause, or ask for --target {YEARS_LOST} or "
            f"{INCIDENCE}."
        )
    if cause is not None and direction is None:
        raise InputError(
            f"With --cause an outcome is what is lost to {cause!r}: say whether less of it is better, --direction "
            "minimize, or more, --direction maximize."
        )


def event_codes(column: pd.Series, event: str | None, cause: str | None) -> pd.Series:
    """How times ended, (n,) of int: 0 censored, 1 the event (of the cause asked about), 2 an event of another cause.

    Parameters
    ----------
    column : Series of shape (n,)
        Without missing values.
    event : str or None
        The value that stands for the event, all others for censoring; None if the column is of 1 and 0, or of true and
        false.
    cause : str or None
        The value that stands for the cause; 0, or a text such as "censored", then stands for censoring.

    Raises
    ------
    InputError
        If the column never holds such values, or nobody said what its values mean.
    """
    labels = column.astype("string").str.strip().str.casefold()
    if cause is not None:
        met = _rows_with(column, cause, "--cause")
        numeric = pd.api.types.is_numeric_dtype(column)
        censored = column.eq(0) if numeric else labels.isin([*SAID_CENSORED, "0"]).astype(bool)
        if not censored.any() or (met & censored).any():
            raise InputError(
                f"With --cause, 0 in column {column.name!r} stands for censoring (or 'censored', among texts) and "
                f"other values for causes; it holds {', '.join(_labels(column)[:MOST_LABELS])}."
            )
        return pd.Series(np.select([met, censored], [1, 0], 2), index=column.index, name=column.name)
    if event is not None:
        return _rows_with(column, event, "--event").astype(int)
    codes = labels.map(TRUE_OR_FALSE)
    if pd.api.types.is_numeric_dtype(column) and column.isin([0, 1]).all():
        codes = column
    if codes.isna().any():
        raise _no_events(column)
    if not codes.eq(1).any():
        raise InputError(
            f"Column {column.name!r} (--event-column) holds nothing but {value_text(column.iloc[0])}, so that every "
            "time is censored; without a single event there is nothing to learn: name another column."
        )
    return codes.astype(int).rename(column.name)


def _no_events(column: pd.Series) -> InputError:
    values = _labels(column)
    named = f"Column {column.name!r} (--event-column)"
    if len(values) > MOST_LABELS:
        return InputError(
            f"{named} holds {len(values):,} different values; it must say whether the event was seen, by 1 or 0, and "
            "--outcome names the times."
        )
    if len(values) == 1:
        return InputError(
            f"{named} holds nothing but {values[0]}, which is neither 1 (the event was seen) nor 0 (censored); name "
            "another column."
        )
    likely = value_text(likely_event(column))
    causes = f", or which of several causes is asked about, such as --cause {typed(likely)}" if len(values) > 2 else ""
    return InputError(
        f"{named} holds {', '.join(values)} and not 1 and 0; say which value stands for the event, such as --event "
        f"{typed(likely)} (all others are then censored){causes}."
    )


def outcome_arguments(frame: pd.DataFrame, options: Mapping[str, Any], event: str | None) -> dict[str, Any]:
    """What ``RewardEstimator.fit`` takes beside Y to say how it was observed; nothing where all is known.

    Parameters
    ----------
    frame : DataFrame of shape (n, p)
    options : mapping
        ``event_column``, ``horizon``, ``target``, ``cause``, ``entry_column`` and ``missing_outcome``,
        checked; ``instrument``.
    event : str or None
        The value of the event column that stands for the event.
    """
    offered = {} if options["instrument"] is None else {"instrument": frame[options["instrument"]]}
    if options["event_column"] is None:
        return ({"missing_outcome": WEIGHT} if options["missing_outcome"] == WEIGHT else {}) | offered
    column, entry, cause = options["event_column"], options["entry_column"], options["cause"]
    return {
        "event": event_codes(frame[column], event, cause),
        "horizon": options["horizon"],
        "target": options["target"],
        "cause": None if cause is None else 1,
        "entry": None if entry is None else frame[entry],
        **offered,
    }


def refuse_impossible_times(frame: pd.DataFrame, outcome: str, entry: str | None) -> None:
    """Refuse negative times and entries after the end; rows are counted as the file has them.

    Raises
    ------
    InputError
    """
    numeric = [name for name in (outcome, entry) if name is not None and pd.api.types.is_numeric_dtype(frame[name])]
    for name in numeric:
        negative = np.flatnonzero(frame[name] < 0)
        if len(negative):
            option = "--outcome" if name == outcome else "--entry-column"
            raise InputError(
                f"Column {name!r} ({option}) has {len(negative):,} negative times, the first in row "
                f"{negative[0] + 1:,} below the header; leave these rows out, or count time from an earlier origin."
            )
    if len(numeric) == 2:
        late = np.flatnonzero(frame[entry] >= frame[outcome])
        if len(late):
            raise InputError(
                f"{entry!r} (--entry-column) is not before {outcome!r} in {len(late):,} rows, the first of them row "
                f"{late[0] + 1:,} below the header; who enters at or after the end was never at risk: leave these rows "
                "out."
            )


def notes_of_times(
    times: TimeToEvent, outcome: str, options: Mapping[str, Any], event: str | None, direction: str | None
) -> list[str]:
    """What was taken for granted about times to an event, a sentence each."""
    column, cause, n = options["event_column"], options["cause"], times.n
    counts = np.bincount(times.code, minlength=3)
    what = f"{column} = {cause or event}" if cause or event else column
    others = f", an event of another cause in {counts[2]:,}" if counts[2] else ""
    notes = [
        f"The event ({what}) was seen in {counts[1]:,} of {n:,} rows{others}; {counts[0]:,} are censored, "
        f"{int(times.censored.sum()):,} of them before {outcome} = {times.horizon:,.6g}, the horizon."
    ]
    if times.default_horizon:
        notes.append(
            f"Nobody named the horizon: it is {outcome} = {times.horizon:,.6g}, the last time at which a tenth of the "
            "rows of every treatment is still followed, or 95% of their outcomes are known. --horizon names another "
            "one."
        )
    if direction is None and times.target.name in (RMST, SURVIVAL):
        more = "A longer time" if times.target.name == RMST else "A larger share"
        notes.append(f"{more} without the event is taken to be better; if the event is good, say --direction minimize.")
    return notes


def notes_of_missing(seen: np.ndarray, arm: np.ndarray, treatments: np.ndarray, outcome: str) -> list[str]:
    """How many outcomes are missing, by treatment, and what is done about them."""
    shares = ", ".join(f"{label!s} {np.mean(~seen[arm == k]):.1%}" for k, label in enumerate(treatments.tolist()))
    return [
        f"Column {outcome!r} has no value in {int((~seen).sum()):,} of {len(seen):,} rows ({shares}). They stay: "
        "outcome models learn from the others, whose residuals are divided by the estimated probability of being seen. "
        "That is right if whether an outcome is seen depends on covariates and treatment only."
    ]


def notes_of_offers(observed: Observed, instrument: str, outcome: str, taker_cost: float) -> list[str]:
    """What was taken for granted about offers, a sentence each."""
    assert observed.instrument is not None, "there are offers"
    first, second = observed.treatments.tolist()
    took = (observed.arm == 1).mean()
    notes = [
        f"What people were offered ({instrument}) is an instrument for {second}, which {took:.0%} of all rows took: it "
        f"must have been given by chance among people with the same covariates, and bear on {outcome} only through "
        f"{second} (exclusion); nobody may take {second} because it was not offered, or refuse it because it was "
        "(monotonicity). No data can show the last two.",
        f"Values are gains over {first} per person of all; those who do not follow the offers count as zero.",
    ]
    if taker_cost:
        notes.append(
            f"{outcome} is net of {taker_cost:g} for everybody who took {second}, also in means as observed and in "
            "effects."
        )
    return notes


def require_outcome_columns(options: Mapping[str, Any], frame: pd.DataFrame) -> dict[str, str]:
    """The columns of event, entry and offers by their options; they must be there.

    Raises
    ------
    InputError
    """
    named = {f"--{name.replace('_', '-')}": options[name] for name in ("event_column", "entry_column", "instrument")}
    found = {option: column for option, column in named.items() if column is not None}
    for option, column in found.items():
        require_column(column, option, frame)
    return found
