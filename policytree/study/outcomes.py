"""Kinds of outcome: numbers, events in words, gaps, times to an event; rewards of every treatment, and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from policytree.common.number_texts import number_of
from policytree.exceptions import InputError
from policytree.study.columns import names_of, values_shown
from policytree.study_check.columns import value_text
from policytree.study_check.events import SAID_CENSORED, likely_event
from policytree.weighting.study_data import WEIGHT, StudyData
from policytree.weighting.time_to_event.outcome import CodedCause

FEW_VALUES = 10  # of a column whose values a message can list
TRUE_OR_FALSE = {"true": 1, "false": 0}


class Outcome(ABC):
    """How one column, and the columns beside it, say what came of every person.

    A new kind is a frozen dataclass with these methods; the study asks nothing else of it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import pandas as pd
    >>> from policytree import Study
    >>> from policytree.study.outcomes import Outcome
    >>> @dataclass(frozen=True)
    ... class Change(Outcome):
    ...     column: str
    ...     since: str
    ...     def columns(self):
    ...         return {"outcome": self.column, "baseline": self.since}
    ...     def arguments(self, table):
    ...         return {"Y": (table[self.column] - table[self.since]).rename(f"change of {self.column}")}
    >>> table = pd.DataFrame({"arm": list("aabb"), "age": [30, 40, 50, 60]})
    >>> table = table.assign(before=[1, 2, 3, 4], after=[2, 2, 5, 5])
    >>> Study(table, treatment="arm", outcome=Change("after", "before")).observed.y.tolist()
    [1.0, 0.0, 2.0, 1.0]
    """

    column: str
    potential: ClassVar[bool] = False  # whether it says what every action brings, so that nobody needs to have got one

    def columns(self) -> dict[str, str]:
        """Every column that the kind reads, by its role in words; the outcome itself first."""
        return {"outcome": self.column}

    @abstractmethod
    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``Y``, and what :meth:`policytree.RewardEstimator.fit` takes beside it to say how it was observed.

        Raises
        ------
        InputError
            If the columns cannot be read in this way.
        """

    def arguments_of_part(self, table: pd.DataFrame) -> dict[str, Any]:
        """:meth:`arguments` of some rows of a table that is larger than memory: others may hold values that lack here.

        Raises
        ------
        InputError
            If the kind cannot be read in parts.
        """
        del table
        raise InputError(
            f"Outcomes of the kind {type(self).__name__} cannot be read a batch at a time; take a study in memory: "
            "study.in_memory()."
        )

    @property
    def in_parts(self) -> bool:
        """Whether the kind can be read a batch at a time: it then has an :meth:`arguments_of_part` of its own."""
        return type(self).arguments_of_part is not Outcome.arguments_of_part

    @property
    def labelled(self) -> list[str]:
        """Columns whose values are labels, of which those of all rows say what they mean."""
        return []

    def settled(self, observed: StudyData) -> Outcome:
        """The same with what the rows decided, such as a horizon that nobody named."""
        del observed
        return self

    def mean(self, observed: StudyData, name: str = "") -> str:
        """Name the average outcome, in words; ``name``: of the outcome, where somebody calls it otherwise."""
        del observed
        return f"mean {name or self.column}"


@dataclass(frozen=True, slots=True)
class Number(Outcome):
    """An outcome that is a number in every row.

    Parameters
    ----------
    column : str

    Examples
    --------
    >>> from policytree.study.outcomes import Number
    >>> Number("score").columns()
    {'outcome': 'score'}
    """

    column: str

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``Y``."""
        return {"Y": table[self.column]}

    arguments_of_part = arguments


@dataclass(frozen=True, slots=True)
class Event(Outcome):
    """An outcome in texts or codes, one of which is an event: 1 where it is met, 0 elsewhere.

    Parameters
    ----------
    column : str
    value : optional
        The value that stands for the event.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.study import Event
    >>> Event("status", "relapse").arguments(pd.DataFrame({"status": ["relapse", "well"]}))["Y"].tolist()
    [1.0, 0.0]
    """

    column: str
    value: Any

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``Y``, missing where the column is."""
        return self._arguments(table, part=False)

    def arguments_of_part(self, table: pd.DataFrame) -> dict[str, Any]:
        """The same, whether or not the event is among these rows."""
        return self._arguments(table, part=True)

    def _arguments(self, table: pd.DataFrame, part: bool) -> dict[str, Any]:
        column = table[self.column]
        return {"Y": met(column, self.value, part=part).astype(float).where(column.notna()).rename(self.column)}

    @property
    def labelled(self) -> list[str]:
        """The outcome."""
        return [self.column]

    def mean(self, observed: StudyData, name: str = "") -> str:
        """The share of rows with the event."""
        del observed
        return f"share with {name or f'{self.column} = {self.value}'}"


@dataclass(frozen=True, slots=True)
class MayBeMissing(Outcome):
    """An outcome that is missing in some rows, which stay: weighted for who is missing, given covariates and treatment.

    Parameters
    ----------
    of : str or Outcome
        The column, or the kind of the outcome where it is known: a number or an :class:`Event`.

    Examples
    --------
    >>> from policytree.study import Event, MayBeMissing
    >>> MayBeMissing("score").column, MayBeMissing(Event("status", "relapse")).column
    ('score', 'status')
    """

    of: str | Number | Event

    @property
    def column(self) -> str:  # type: ignore[override]
        """The column of the outcome."""
        return self.of if isinstance(self.of, str) else self.of.column

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``Y`` with its gaps, and that rows without it are weighted for."""
        return {**self.known.arguments(table), "missing_outcome": WEIGHT}

    def arguments_of_part(self, table: pd.DataFrame) -> dict[str, Any]:
        """The same of some of the rows."""
        return {**self.known.arguments_of_part(table), "missing_outcome": WEIGHT}

    @property
    def known(self) -> Number | Event:
        """The outcome where it is known."""
        return Number(self.of) if isinstance(self.of, str) else self.of

    @property
    def labelled(self) -> list[str]:
        """Those of the outcome where it is known."""
        return self.known.labelled

    def mean(self, observed: StudyData, name: str = "") -> str:
        """Name the average outcome where it is known."""
        return self.known.mean(observed, name)


@dataclass(frozen=True, slots=True)
class TimeToEvent(Outcome):
    """A time to an event, censored in some rows, and what it counts for.

    Parameters
    ----------
    time : str
        Column of the times at which follow-up ended, by the event or by censoring.
    event : str
        Column that says how: 1 (or True) at the event, 0 (or False) where the row was censored.
    happened : optional
        The value of ``event`` that stands for the event, where it is not of 1 and 0; all others count as censored.
    cause : optional
        The value of ``event`` that is asked about, where there are several causes; 0 then stands for censoring.
    horizon : float, optional
        Time up to which events count, in the unit of ``time``. By default the last time at which a tenth of every
        treatment's rows is still followed, or 95 % of their outcomes are known (the event came before, or they were
        followed until then).
    measure : {"rmst", "survival", "years_lost", "cumulative_incidence"}, optional
        Measure of the outcome: the restricted mean survival time (the default) or the probability of no event;
        with ``cause``, the time lost to it (the default then) or its cumulative incidence.
    entry : str, optional
        Column of the times from which on rows were followed (left truncation).

    Examples
    --------
    >>> from policytree.study import TimeToEvent
    >>> TimeToEvent("days", event="died", horizon=365).columns()
    {'outcome': 'days', 'event': 'died'}
    """

    time: str
    event: str
    happened: Any = None
    cause: Any = None
    horizon: float | None = None
    measure: str | None = None
    entry: str | None = None

    @property
    def column(self) -> str:  # type: ignore[override]
        """The column of the times."""
        return self.time

    def columns(self) -> dict[str, str]:
        """Times, events and entries."""
        entry = {} if self.entry is None else {"entry": self.entry}
        return {"outcome": self.time, "event": self.event, **entry}

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``Y``, ``event`` and what they count for.

        Raises
        ------
        InputError
            If both ``happened`` and ``cause`` name a value, or the column never holds it.
        """
        return self._arguments(table, part=False)

    def arguments_of_part(self, table: pd.DataFrame) -> dict[str, Any]:
        """The same, whether or not an event is among these rows."""
        return self._arguments(table, part=True)

    @property
    def labelled(self) -> list[str]:
        """How times ended."""
        return [self.event]

    def _arguments(self, table: pd.DataFrame, part: bool) -> dict[str, Any]:
        return {
            "Y": table[self.time],
            "event": event_codes(table[self.event], self.happened, self.cause, part=part),
            "horizon": self.horizon,
            "target": self.measure,
            "cause": None if self.cause is None else CodedCause(self.cause),
            "entry": None if self.entry is None else table[self.entry],
        }

    def settled(self, observed: StudyData) -> Outcome:
        """The same with the horizon and the measure that hold."""
        assert observed.times is not None, "they are times to an event"
        return replace(self, horizon=observed.times.horizon, measure=observed.times.target.name)

    def mean(self, observed: StudyData, name: str = "") -> str:
        """Such as "mean days up to 365"."""
        assert observed.times is not None, "they are times to an event"
        return observed.times.described(name or self.time)


@dataclass(frozen=True, slots=True)
class Rewards(Outcome):
    """Rewards of every treatment for each row, a column for each: the outcome need not be learnt any more.

    For :class:`policytree.PolicyTree`, :func:`policytree.encoded.encode` and what else reads rewards. Treatments are
    called as their columns.

    Parameters
    ----------
    of : sequence of str
        Columns of the rewards.

    Examples
    --------
    >>> from policytree.study import Rewards
    >>> Rewards(["none", "drug"]).columns()
    {'reward none': 'none', 'reward drug': 'drug'}
    """

    of: Sequence[str]
    potential: ClassVar[bool] = True

    def __post_init__(self) -> None:
        named = names_of(self.of, "Rewards")
        if isinstance(self.of, str) or not named:
            raise InputError(f"Rewards takes a list of columns, one for each treatment; got {self.of!r}.")
        if len(named) < len(self.of):
            raise InputError("Rewards names a column twice; name each once.")
        object.__setattr__(self, "of", named)

    @property
    def column(self) -> str:  # type: ignore[override]
        """The columns' names in words."""
        return f"rewards of {', '.join(self.of)}"

    def columns(self) -> dict[str, str]:
        """The column of every treatment."""
        return {f"reward {name}": name for name in self.of}

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``rewards``, as :meth:`policytree.PolicyTree.fit` takes them."""
        return {"rewards": table[list(self.of)]}


@dataclass(frozen=True, slots=True)
class Label(Outcome):
    """A class that a tree is to predict.

    For :class:`policytree.OptimalTreeClassifier` and :func:`policytree.encoded.encode`.

    Parameters
    ----------
    column : str

    Examples
    --------
    >>> from policytree.study import Label
    >>> Label("ill").columns()
    {'label': 'ill'}
    """

    column: str
    potential: ClassVar[bool] = True

    def columns(self) -> dict[str, str]:
        """The column of the classes."""
        return {"label": self.column}

    @property
    def labelled(self) -> list[str]:
        """The column of the classes."""
        return [self.column]

    def arguments(self, table: pd.DataFrame) -> dict[str, Any]:
        """``y``, as :meth:`policytree.OptimalTreeClassifier.fit` takes it."""
        return {"y": table[self.column]}


def met(column: pd.Series, value: Any, *, part: bool = False) -> pd.Series:
    """Rows of a column that hold a value, (n,) of bool. Texts are compared without outer blanks.

    At least one row does, unless these are ``part`` of the rows.

    Raises
    ------
    InputError
        If none does.
    """
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    wanted = number_of(value) if numeric and isinstance(value, str) else value
    found = column.eq(wanted) if numeric else column.astype("string").str.strip().eq(str(value).strip())
    rows = found.fillna(False).astype(bool) & column.notna()
    if not (part or rows.any()):
        raise InputError(
            f"Column {column.name!r} never holds {value!r}; its values are {values_shown(column, FEW_VALUES)}."
        )
    return rows


def event_codes(column: pd.Series, happened: Any, cause: Any, *, part: bool = False) -> pd.Series:
    """How times ended, (n,) of int: 0 censored, 1 the event (of the cause asked about), 2 an event of another cause.

    Parameters
    ----------
    column : Series of shape (n,)
        With gaps it is returned as it is, for whoever counts them.
    happened : optional
        The value that stands for the event, all others for censoring; None if the column is of 1 and 0, or of true and
        false.
    cause : optional
        The value that stands for the cause; 0, or a text such as "censored", then stands for censoring.
    part : bool
        Whether these are some of the rows, which need not hold every value.

    Raises
    ------
    InputError
        If the column never holds such values, or nobody said what its values mean.
    """
    if happened is not None and cause is not None:
        raise InputError("happened and cause both name a value of the event's column; with cause leave happened out.")
    if column.isna().any():
        return column
    numeric = pd.api.types.is_numeric_dtype(column)
    if cause is not None:
        own = met(column, cause, part=part)
        censored = column.eq(0) if numeric else _folded(column).isin([*SAID_CENSORED, "0"]).astype(bool)
        if not (part or censored.any()) or (own & censored).any():
            raise InputError(
                f"With cause, 0 in column {column.name!r} stands for censoring (or 'censored', among texts) and other "
                f"values for causes; it holds {values_shown(column, FEW_VALUES)}."
            )
        return pd.Series(np.select([own, censored], [1, 0], 2), index=column.index, name=column.name)
    if happened is not None:
        return met(column, happened, part=part).astype(int)
    codes = column if numeric and column.isin([0, 1]).all() else _folded(column).map(TRUE_OR_FALSE)
    if codes.isna().any():
        raise _no_events(column)
    if not (part or codes.eq(1).any()):
        raise InputError(
            f"Column {column.name!r} (event) holds nothing but {value_text(column.iloc[0])}, so that every time is "
            "censored; without a single event there is nothing to learn: name another column."
        )
    return codes.astype(int).rename(column.name)


def _folded(column: pd.Series) -> pd.Series:
    """Values as text, without outer blanks and capital letters."""
    return column.astype("string").str.strip().str.casefold()


def _no_events(column: pd.Series) -> InputError:
    values = sorted({value_text(value) for value in column.unique()})
    named = f"Column {column.name!r} (event)"
    if len(values) > FEW_VALUES:
        return InputError(
            f"{named} holds {len(values):,} different values; it must say whether the event was seen, by 1 or 0, and "
            "outcome names the times."
        )
    if len(values) == 1:
        return InputError(
            f"{named} holds nothing but {values[0]}, which is neither 1 (the event was seen) nor 0 (censored); name "
            "another column."
        )
    likely = value_text(likely_event(column))
    causes = f", or which of several causes is asked about, such as cause={likely!r}" if len(values) > 2 else ""
    return InputError(
        f"{named} holds {', '.join(values)} and not 1 and 0; say which value stands for the event, such as "
        f"happened={likely!r} (all others are then censored){causes}."
    )


def as_outcome(outcome: str | Outcome) -> Outcome:
    """A column's name as the kind :class:`Number`; a kind as it is.

    Raises
    ------
    InputError
        If it is neither.
    """
    if isinstance(outcome, str):
        return Number(outcome)
    if not isinstance(outcome, Outcome):
        raise InputError(
            "outcome must be the name of a column or a kind of outcome (Number, Event, MayBeMissing, TimeToEvent, "
            f"Rewards, Label); got {outcome!r}."
        )
    return outcome
