"""Known probabilities of treatment, as the command line gets them: one number, a column, or one for every treatment."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from policytree.cli.tables import number_in, require_column
from policytree.common.option_words import listed
from policytree.data.combined_treatments import CombinedTreatments
from policytree.exceptions import InputError

ESTIMATED = "estimated"  # said in place of probabilities: those of a design are then not taken over


def propensity_of(
    text: str | None,
    frame: pd.DataFrame,
    combined: CombinedTreatments | None = None,
    labels: Collection[str] = (),
) -> float | str | dict[str, float | str] | None:
    """The propensity as a study takes it; None if none is given.

    Of ``combined`` treatments those of each may be given, if they were drawn independently: drug=0.5,physio=0.5.
    Blanks around a name are the option's, unless one of ``labels`` has them itself.
    """
    if text is None or (text == ESTIMATED and text not in frame.columns):
        return None
    if "=" not in text or text in frame.columns:
        return _number_or_column(text, frame)
    if combined is not None and (by_factor := _by_factor(text, combined)) is not None:
        return by_factor
    given = {}
    for part in listed(text):
        name, _, value = part.rpartition("=")
        name = name if name in labels else name.strip()
        given[name] = _number_or_column(value.strip(), frame, f" of {name}")
    return given


def _number_or_column(text: str, frame: pd.DataFrame, whose: str = "") -> float | str:
    number = number_in(text)
    if number is None:
        require_column(text, "--propensity", frame)
        _check_probabilities(frame[text], text)
        return text
    if not 0.0 < number < 1.0:
        raise InputError(f"--propensity{whose} is {number:g}; it must lie strictly between 0 and 1.")
    return number


def _by_factor(text: str, combined: CombinedTreatments) -> dict[str, float | str] | None:
    """The chance of each combination from those of each treatment (COLUMN=X or COLUMN:LEVEL=X); None of other texts."""
    chances: dict[str, float | dict[str, float]] = {}
    for part in listed(text):
        name, _, value = (piece.strip() for piece in part.rpartition("="))
        factor, of_level, level = (name, "", "") if name in combined.levels else name.rpartition(":")
        number = number_in(value)
        if number is None or factor not in combined.levels:
            return None
        own = chances.setdefault(factor, {} if of_level else number)
        if of_level and isinstance(own, dict):
            own[level.strip()] = number
    if set(chances) != set(combined.levels):
        return None
    try:
        return {**combined.propensity(chances)}
    except InputError as error:
        raise InputError(f"--propensity: {error}") from error


def _check_probabilities(column: pd.Series, name: str) -> None:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~((values > 0.0) & (values < 1.0)))
    if len(bad):
        raise InputError(
            f"Column {name!r} (--propensity) is {column.iloc[bad[0]]} in row {bad[0] + 1:,} below the header; "
            "probabilities must lie strictly between 0 and 1: leave out rows that could not get every treatment."
        )
