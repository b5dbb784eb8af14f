"""Columns of a study's table by name: which are there, and which values they hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from policytree.exceptions import InputError, quoted

NAMES_SHOWN = 20


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


def require_column(table: pd.DataFrame, name: str, role: str) -> None:
    """Refuse a column that is not there, with names that are close.

    Raises
    ------
    InputError
    """
    if not isinstance(name, str):
        raise InputError(f"{role} must be the name of a column; got {quoted(name)}.")
    if name in table.columns:
        return
    known = list(table.columns)
    folded = {other.casefold(): other for other in reversed(known)}
    close = [folded[text] for text in difflib.get_close_matches(name.casefold(), folded, n=3)]
    shown = ", ".join(known[:NAMES_SHOWN]) + (", ..." if len(known) > NAMES_SHOWN else "")
    remedy = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the columns are {shown}."
    raise InputError(f"The table has no column {name!r} ({role}); {remedy}")


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
            raise InputError(f"Column {column!r} is the {taken[column]} and the {role}; give it one role.")
        taken[column] = role


def holds_tables(column: pd.Series) -> bool:
    """Whether cells are lists, arrays or mappings, on which nothing can split."""
    return column.dtype == object and any(isinstance(cell, list | tuple | dict | np.ndarray) for cell in column)


def values_shown(column: pd.Series, most: int) -> str:
    """The first values of a column, in sorted order."""
    values: list[Any] = sorted({str(value) for value in column.dropna().unique()})
    return ", ".join(values[:most]) + (", ..." if len(values) > most else "")
