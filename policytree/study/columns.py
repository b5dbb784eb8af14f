"""Columns of a study's table by name: which are there, and which values they hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.close_names import no_such_column
from policytree.common.validation import is_whole
from policytree.data.feature_encoder import LARGEST_INTEGER, object_numbers
from policytree.exceptions import InputError, quoted
from policytree.study_check.columns import DURATIONS, column_findings, value_text

MOST_CATEGORIES = 50  # text columns with more values are names or keys, unless they are named as covariates


def names_of(given: str | Sequence[str] | None, role: str) -> tuple[str, ...]:
    """The names of columns in a role, without repetitions; a text is one name.

    Raises
    ------
    InputError
        If a name is no text.
    """
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{role} must be names of columns; got {quoted(name)}.")
    return tuple(dict.fromkeys(names))


def require_column(columns: Sequence[str], name: str, role: str) -> None:
    """Refuse a column that is not there, with names that are close.

    Raises
    ------
    InputError
    """
    if not isinstance(name, str):
        raise InputError(f"{role} must be the name of a column; got {quoted(name)}.")
    if name not in columns:
        raise InputError(no_such_column(name, role, columns))


def refuse_two_roles(roles: Iterable[tuple[str, str]]) -> None:
    """Refuse a column that has two roles of which each excludes the other.

    Parameters
    ----------
    roles : iterable of (role in words, column)

    Raises
    ------
    InputError
    """
    taken: dict[str, str] = {}
    for role, column in roles:
        if column in taken and taken[column] != role:
            remedy = "name another column" if role in ("treatment", "outcome", "event") else "leave it out"
            raise InputError(f"{role} names {column!r}, which is the {taken[column]}; {remedy}.")
        taken[column] = role


def default_covariates(
    table: pd.DataFrame, used: Set[str | None], *, exclude: str = "exclude", covariates: str = "covariates"
) -> tuple[list[str], list[str]]:
    """Every column without another role, but for those that no rule could use; and what to tell the user.

    Parameters
    ----------
    table : DataFrame of shape (n, columns)
    used : set of str
        Columns that have another role, or are left out.
    exclude, covariates : str
        The user's names for the arguments that leave columns out, and that name all covariates.

    Raises
    ------
    InputError
        If a column holds tables, or none is left.
    """
    chosen, notes = [], []
    for name, column in table.items():
        if name in used:
            continue
        if holds_tables(column):
            raise InputError(
                f"Column {name!r} holds lists or tables, on which no tree can split; leave it out by {exclude}, or "
                "make numbers or texts of it."
            )
        if pd.api.types.is_datetime64_any_dtype(column):
            notes.append(f"Column {name!r} holds dates and was left out of the covariates.")
        elif pd.api.types.is_timedelta64_dtype(column):
            notes.append(f"Column {name!r} holds durations and was left out of the covariates. {DURATIONS}")
        elif not _are_numbers(column) and column.nunique() > MOST_CATEGORIES:
            notes.append(_left_out(column))
        elif _beyond_float(column):
            notes.append(
                f"Column {name!r} holds whole numbers beyond 2**53, as ids do, which no floating-point number tells "
                "apart; it was left out of the covariates."
            )
        else:
            chosen.append(str(name))
    if not chosen:
        raise InputError(f"No column is left for a rule to split on; name some by {covariates}.")
    return chosen, notes


def _are_numbers(column: pd.Series) -> bool:
    """Whether a column holds numbers, if need be as Python's objects, such as decimal ones."""
    if column.dtype == object:
        return object_numbers(column.tolist()) is not None
    return bool(pd.api.types.is_numeric_dtype(column))


def _beyond_float(column: pd.Series) -> bool:
    present = column.dropna()
    objects = column.dtype == object and all(map(is_whole, present))
    if not objects and not pd.api.types.is_integer_dtype(column):
        return False
    return bool(len(present)) and max(abs(int(present.min())), abs(int(present.max()))) > LARGEST_INTEGER


def _left_out(column: pd.Series) -> str:
    """Say that a column of many texts was left out, and what to do if it holds numbers or dates."""
    text = f"Column {column.name!r} has {column.nunique():,} different texts and was left out of the covariates."
    for finding in column_findings(column, None):
        if finding.kind in ("numbers as text", "dates"):
            text += f" It {finding.found}. {finding.remedy}"
    return text


def refuse_no_values(table: pd.DataFrame) -> None:
    """Refuse covariates of which none has a value.

    Raises
    ------
    InputError
    """
    if table.shape[1] and table.isna().all(axis=None):
        names = ", ".join(map(str, table.columns[:3])) + (", ..." if table.shape[1] > 3 else "")
        raise InputError(
            f"No covariate has a value in any row ({names}), so that a rule could ask nothing; name others."
        )


def holds_tables(column: pd.Series) -> bool:
    """Whether cells are lists, arrays or mappings, on which nothing can split."""
    return column.dtype == object and any(isinstance(cell, list | tuple | dict | np.ndarray) for cell in column)


def values_shown(column: pd.Series, most: int) -> str:
    """The first values of a column, in sorted order."""
    values: list[Any] = sorted({value_text(value) for value in column.dropna().unique()})
    return ", ".join(values[:most]) + (", ..." if len(values) > most else "")
