"""A row for every person and decision: long tables to stages."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.typing import Table
from policytree.common.validation import sorted_labels
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError
from policytree.regimes.checking import _as_numbers, _flags
from policytree.regimes.stages import Stage


def stages_from_long(
    table: Table,
    *,
    id: Hashable,
    stage: Hashable,
    treatment: Hashable,
    outcome: Hashable,
    covariates: Sequence[Hashable] | None = None,
    adjust: Sequence[Hashable] = (),
    propensity: Hashable | None = None,
    lost: Hashable | None = None,
) -> list[Stage]:
    """Stages of a table with one row per person and decision.

    A person without a row at a later stage has left, and brings nothing from then on. Where the last outcome of a
    person is missing, or ``lost`` is 1 there, later ones are unknown instead (``missing_outcome="weight"``).

    Parameters
    ----------
    table : DataFrame
        pandas or polars.
    id, stage, treatment, outcome : column names
        Of the person, of the decision (numbers, dates, an ordered categorical, or text that sorts in the order of
        time), of what was given (missing where there was nothing to decide) and of what it brought until the next
        decision.
    covariates : list of column names, optional
        Columns that rules may use; by default all others. Those that are missing throughout a stage are left out
        there.
    adjust : list of column names, optional
        Further confounders, for adjustment only.
    propensity : column name, optional
        Known probability of the treatment that the person got. Each stage must have two treatments then.
    lost : column name, optional
        1 where a person was lost after this row, 0 elsewhere.

    Returns
    -------
    list of Stage
        Their rows are the people in the order of their first appearance, whose ids are the index of X.

    Raises
    ------
    InputError
        If a column is lacking, a person has two rows at a stage, or comes back after having left.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.regimes import stages_from_long
    >>> visits = pd.DataFrame({
    ...     "patient": [1, 1, 2, 3, 3], "visit": [1, 2, 1, 1, 2], "drug": ["A", "B", "A", "B", "B"],
    ...     "response": [0.0, 3.0, 1.0, 0.5, 2.0], "severity": [5, 4, 6, 3, 3],
    ... })
    >>> first, second = stages_from_long(visits, id="patient", stage="visit", treatment="drug", outcome="response")
    >>> second.eligible.tolist()
    [True, False, True]
    """
    frame = as_pandas(table)
    if frame is None:
        raise InputError(f"table must be a DataFrame; got {type(table).__name__}.")
    used = [id, stage, treatment, outcome, *adjust, *(each for each in (propensity, lost) if each is not None)]
    if covariates is None:
        covariates = [name for name in frame.columns if name not in used]
    _refuse_two_roles({"id": id, "stage": stage, "treatment": treatment, "outcome": outcome, "propensity": propensity,
                       "lost": lost}, covariates, adjust)  # fmt: skip
    for name in (*used, *covariates):
        if name not in frame.columns:
            known = ", ".join(map(str, frame.columns))
            raise InputError(f"The table has no column {name!r}; it has {known}.")
    for name, what in ((id, "id"), (stage, "stage")):
        empty = np.flatnonzero(frame[name].isna())
        if len(empty):
            raise InputError(f"Column {name!r} ({what}) is missing in row {empty[0]}; every row needs one.")
    if not len(frame):
        raise InputError("The table has no rows; give it one for every person and decision.")
    numbers = {outcome: _numbers(frame[outcome], "outcome")}
    if propensity is not None:
        numbers[propensity] = _numbers(frame[propensity], "propensity")
    if lost is not None:
        flags = frame[lost].fillna(0)
        numbers[lost] = pd.Series(_flags(flags, f"Column {lost!r} (lost)", frame.index), frame.index, dtype=np.float64)
    frame = frame.copy(deep=False)
    for name, values in numbers.items():
        frame[name] = values
    for name, what in ((id, "id"), (stage, "stage")):
        if frame[name].map(lambda cell: isinstance(cell, list | dict | set | np.ndarray)).any():
            raise InputError(f"Column {name!r} ({what}) holds lists or tables; make numbers or texts of them.")
    twice = np.flatnonzero(frame.duplicated([id, stage]))
    if len(twice):
        row = frame.iloc[twice[0]]
        raise InputError(f"Person {row[id]!s} has two rows at stage {row[stage]!s}; keep one of them.")
    people = pd.Index(pd.unique(frame[id]), name=id)
    times = stage_times(frame[stage])
    parts = [frame[frame[stage] == time].set_index(id).reindex(people) for time in times]
    here = np.column_stack([people.isin(frame.loc[frame[stage] == time, id]) for time in times])
    _refuse_returns(here, people, times)
    gone_unknown = np.zeros(len(people), dtype=bool)
    early = np.zeros(len(people), dtype=bool)  # said to be lost where a later row follows
    stages = []
    for s, (time, part) in enumerate(zip(times, parts, strict=True)):
        present = here[:, s]
        values = part[outcome].to_numpy()
        y = np.where(present, values, np.where(gone_unknown, np.nan, 0.0))
        if lost is not None:
            last = present & ~(here[:, s + 1] if s + 1 < len(times) else np.zeros(len(people), dtype=bool))
            said = part[lost].to_numpy() == 1
            y = np.where(last & said, np.nan, y)
            early = early | (present & ~last & said)
            back = np.flatnonzero(early & last & ~said)
            if len(back):
                raise InputError(
                    f"Person {people[back[0]]!s} is lost after an earlier stage by column {lost!r}, but has a row at "
                    f"stage {time!s}; write 1 in the last row of a person only."
                )
        gone_unknown |= np.isnan(y)
        eligible = present & part[treatment].notna().to_numpy()
        kept = [name for name in covariates if part[name].notna().any()]
        more = [name for name in adjust if part[name].notna().any()]
        stages.append(
            Stage(
                part[treatment].where(eligible), X=part[kept], W=part[more] if more else None, Y=y, eligible=eligible,
                propensity=None if propensity is None else _of_second(part, treatment, propensity, eligible, time),
                name=f"{stage} {_time_text(time)}",
            )
        )  # fmt: skip
    return stages


def _refuse_two_roles(
    roles: Mapping[str, Hashable | None], covariates: Sequence[Hashable], adjust: Sequence[Hashable]
) -> None:
    """Refuse a column that has two roles, such as an outcome that rules may look at."""
    taken: dict[Hashable, str] = {}
    for role, name in roles.items():
        if name is not None and name in taken:
            raise InputError(f"Column {name!r} is both {taken[name]} and {role}; give each its own.")
        if name is not None:
            taken[name] = role
    for argument, names in (("covariates", covariates), ("adjust", adjust)):
        if isinstance(names, str):
            raise InputError(f"{argument} must be a list of names of columns; got {names!r}.")
        for name in names:
            if name in taken:
                raise InputError(f"{argument} names {name!r}, which is the {taken[name]}; leave it out.")


def _numbers(column: pd.Series, role: str) -> pd.Series:
    """A column of a long table as numbers, NaN where it has none."""
    return pd.Series(_as_numbers(column, f"Column {column.name!r} ({role})"), column.index)


def stage_times(column: pd.Series) -> list[Any]:
    """The stages of a long table, in order: that of an ordered categorical, of numbers, dates or texts.

    Raises
    ------
    InputError
        If texts and others stand side by side, or texts with numbers in them sort otherwise than the numbers.
    """
    found = column.drop_duplicates()
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        present = set(found)
        return [time for time in column.dtype.categories if time in present]
    texts = [isinstance(time, str) for time in found]
    if any(texts) and not all(texts):
        raise InputError(
            f"Column {column.name!r} (stage) holds both texts and other values, which have no order; number the stages."
        )
    times = sorted_labels(np.array(list(found), dtype=object) if all(texts) else found.to_numpy()).tolist()
    if all(texts):
        natural = sorted(times, key=_natural)
        for here, there in zip(times, natural, strict=True):
            if here != there:
                raise InputError(
                    f"The stages of column {column.name!r} sort as text, {here} before {there}; number them 1, 2, ..., "
                    "or make the column an ordered categorical."
                )
    return [pd.Timestamp(time) for time in found.sort_values()] if column.dtype.kind == "M" else times


def _time_text(time: Any) -> str:
    """A stage in the name of a stage: of dates the day, if it is all."""
    if isinstance(time, pd.Timestamp) and time == time.normalize():
        return str(time.date())
    return str(time)


def _refuse_returns(here: np.ndarray, people: pd.Index, times: Sequence[Any]) -> None:
    """Refuse people who are absent at one stage and present at a later one."""
    for s in range(1, len(times)):
        back = np.flatnonzero(here[:, s] & ~here[:, s - 1])
        if len(back):
            raise InputError(
                f"Person {people[back[0]]!s} has a row at stage {times[s]!s}, but none at stage {times[s - 1]!s}: "
                "stages must follow each other. Give a row without a treatment where there was nothing to decide."
            )


def _of_second(
    part: pd.DataFrame, treatment: Hashable, propensity: Hashable, eligible: np.ndarray, time: Any
) -> np.ndarray:
    """Every person's probability of the second treatment, from that of the one they got."""
    labels = sorted_labels(part.loc[eligible, treatment].to_numpy())
    if len(labels) > 2:
        raise InputError(
            f"Stage {time!s} has {len(labels)} treatments, and a column of probabilities says only that of the one "
            "that was given; leave propensity out here and set it on the stages, with one column per treatment."
        )
    got_second = (part[treatment] == labels[-1]).to_numpy()
    chance = part[propensity].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(eligible, np.where(got_second, chance, 1.0 - chance), 0.5)


def _natural(text: str) -> list:
    """A key that sorts the numbers in texts as numbers: by their length, then by their digits."""
    parts = re.split(r"([0-9]+)", text)
    return [(len(p.lstrip("0")), p.lstrip("0")) if k % 2 else p for k, p in enumerate(parts)]
