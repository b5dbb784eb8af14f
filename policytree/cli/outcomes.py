"""How outcomes were observed: texts as zeros and ones, times to an event, outcomes some of which are missing."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from policytree.cli.study_options import KINDS, StudyOptions, option
from policytree.cli.tables import number_in
from policytree.common.option_words import typed
from policytree.exceptions import InputError, quoted
from policytree.study import Event, MayBeMissing
from policytree.study import TimeToEvent as Times
from policytree.study.outcomes import Number, Outcome, met
from policytree.study_check.columns import value_text
from policytree.weighting.study_data import REFUSE, WEIGHT, StudyData
from policytree.weighting.time_to_event.outcome import RMST, SURVIVAL, TARGETS, TimeToEvent

MOST_LABELS = 10  # labels of a column that may be a text outcome, or an event
OF_TIMES = KINDS["TimeToEvent"]  # options by their arguments


def event_meaning(column: pd.Series, event: str | None, direction: str | None) -> str:
    """Describe zeros and ones where an event is named; "" where the column has numbers.

    Raises
    ------
    InputError
        If the column holds texts and no event is named, or the event is none of its labels or the only one, or nobody
        said whether more or fewer of them are better, which cannot be guessed.
    """
    if event is None:
        _refuse_texts(column, [str(label) for label in column.dropna().unique()])
        return ""
    seen = met(column, event)
    if direction is None:
        raise InputError(
            f"Say whether fewer or more rows with {column.name} = {event} are better: --direction minimize or maximize."
        )
    others = sorted({value_text(value) for value in column[~seen].dropna().unique()})
    if not others:
        raise InputError(
            f"Column {column.name!r} holds nothing but the --event {event!r}; there is nothing to compare."
        )
    rest = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return f"1 if {event}, 0 if {rest}"


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


def kind_of_outcome(options: StudyOptions) -> Outcome:
    """The outcome that the options ask for."""
    assert options.outcome is not None, "asked for by all callers"
    if options.event_column is not None:
        return Times(options.outcome, **{name: getattr(options, asked) for name, asked in OF_TIMES.items()})
    known = Number(options.outcome) if options.event is None else Event(options.outcome, options.event)
    return MayBeMissing(known) if options.missing_outcome == WEIGHT else known


def check_outcome_options(options: StudyOptions) -> None:
    """Refuse options that do not go together.

    Raises
    ------
    InputError
    """
    target = options.target
    if target is not None and target not in TARGETS and (Path(target).suffix or Path(target).exists()):
        raise InputError(
            f"--target says what times to an event count for ({RMST} or {SURVIVAL}), not for whom; a file of the "
            f"people whom the rule is for goes with --target-people {shlex.quote(target)}."
        )
    if options.missing_outcome not in (None, REFUSE, WEIGHT):
        raise InputError(f"--missing-outcome must be {REFUSE} or {WEIGHT}; got {quoted(options.missing_outcome)}.")
    if options.event_column is None:
        for name in (asked for asked in OF_TIMES.values() if asked not in ("event", "event_column")):
            if getattr(options, name) is not None:
                raise InputError(
                    f"{option(name)} is about times to an event; name the column that says how the times in "
                    f"{options.outcome!r} ended by --event-column, or leave {option(name)} out."
                )
    elif options.missing_outcome == WEIGHT:
        raise InputError(
            "--missing-outcome weight is for outcomes that are numbers; with --event-column a row is censored at the "
            "last time at which it was seen: leave out one of the two."
        )
    elif options.cause is not None and options.event is None and options.direction is None:
        raise InputError(
            f"With --cause an outcome is what is lost to {options.cause!r}: say whether less of it is better, "
            "--direction minimize, or more, --direction maximize."
        )


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
    if len(numeric) == 2 and entry != outcome:  # of one column that has both roles the study speaks
        late = np.flatnonzero(frame[entry] >= frame[outcome])
        if len(late):
            raise InputError(
                f"{entry!r} (--entry-column) is not before {outcome!r} in {len(late):,} rows, the first of them row "
                f"{late[0] + 1:,} below the header; who enters at or after the end was never at risk: leave these rows "
                "out."
            )


def notes_of_times(times: TimeToEvent, options: StudyOptions) -> list[str]:
    """State the assumptions about times to an event, a sentence each."""
    column, outcome, n = options.event_column, options.outcome, times.n
    counts, value = np.bincount(times.code, minlength=3), options.cause or options.event
    what = f"{column} = {value}" if value else column
    others = f", an event of another cause in {counts[2]:,}" if counts[2] else ""
    notes = [
        f"The event ({what}) was seen in {counts[1]:,} of {n:,} rows{others}; {counts[0]:,} are censored, "
        f"{int(times.censored.sum()):,} of them before {outcome} = {times.until()}, the horizon."
    ]
    if times.default_horizon:
        notes.append(
            f"Nobody named the horizon: it is {outcome} = {times.until()}, {times.chosen}. --horizon names another one."
        )
    if options.direction is None and times.target.name in (RMST, SURVIVAL):
        more = "A longer time" if times.target.name == RMST else "A larger share"
        notes.append(f"{more} without the event is taken to be better; if the event is good, say --direction minimize.")
    return notes


def notes_of_missing(seen: np.ndarray, arm: np.ndarray, treatments: np.ndarray, outcome: str) -> list[str]:
    """How many outcomes are missing, by treatment, and what is done about them."""
    shares = ", ".join(f"{label!s} {np.mean(~seen[arm == k]):.1%}" for k, label in enumerate(treatments.tolist()))
    return [
        f"Column {outcome!r} has no value in {int((~seen).sum()):,} of {len(seen):,} rows ({shares}). They stay: "
        "outcome models learn from the others, whose residuals are divided by the estimated probability of being seen. "
        "This is right if whether an outcome is seen depends on covariates and treatment only."
    ]


def notes_of_offers(observed: StudyData, instrument: str, outcome: str, taker_cost: float) -> list[str]:
    """State the assumptions about offers, a sentence each."""
    assert observed.instrument is not None, "there are offers"
    first, second = observed.treatments.tolist()
    took = (observed.arm == 1).mean()
    notes = [
        f"Offers ({instrument}) are an instrument for {second}, which {took:.0%} of all rows took: they "
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
