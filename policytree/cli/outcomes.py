"""Outcomes that are texts (yes or no, died or alive), as the zeros and ones of an event."""

from __future__ import annotations

import pandas as pd

from policytree.cli.tables import number_in
from policytree.exceptions import InputError

MOST_LABELS = 10  # labels of a column that may be a text outcome


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
    labels = [str(label) for label in column.dropna().unique()]
    if event is None:
        _refuse_texts(column, labels)
        return column, ""
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    wanted = number_in(event) if numeric else event.strip()
    met = column.eq(wanted) if numeric else column.astype("string").str.strip().eq(wanted)
    met = met.fillna(False).astype(bool) & column.notna()
    if not met.any():
        shown = ", ".join(sorted(labels)[:MOST_LABELS]) + (", ..." if len(labels) > MOST_LABELS else "")
        raise InputError(f"Column {column.name!r} never holds the --event {event!r}; its values are {shown}.")
    if direction is None:
        raise InputError(
            f"Say whether fewer or more rows with {column.name} = {event} are better: --direction minimize or maximize."
        )
    others = sorted({f"{v:g}" if isinstance(v, float) else str(v) for v in column[~met].dropna().unique()})
    if not others:
        raise InputError(
            f"Column {column.name!r} holds nothing but the --event {event!r}; there is nothing to compare."
        )
    rest = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return met.astype(float).where(column.notna()), f"1 if {event}, 0 if {rest}"


def _refuse_texts(column: pd.Series, labels: list[str]) -> None:
    """One sentence where a column of a few texts is an outcome in words."""
    if pd.api.types.is_numeric_dtype(column) or not 2 <= len(labels) <= MOST_LABELS:
        return
    if all(number_in(label) is not None for label in labels):
        return
    named = " or ".join(f"--event {label}" for label in sorted(labels)[:2])
    raise InputError(
        f"Column {column.name!r} (--outcome) holds texts, not numbers ({', '.join(sorted(labels))}); say which one "
        f"counts, such as {named}."
    )
