"""Known probabilities of treatment, as the command line gives them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.cli.tables import number_in, require_column
from policytree.common.option_words import listed, typed_list
from policytree.data.combined_treatments import CombinedTreatments
from policytree.exceptions import InputError
from policytree.weighting.propensities import needs_label

ESTIMATED = "estimated"  # said in place of probabilities: those of a design are then not taken over


def shares_text(propensity: dict) -> str:
    """Treatments with their probabilities, in words."""
    return ", ".join(f"{label} {share:g}" for label, share in propensity.items())


def propensity_from(
    text: str | None,
    frame: pd.DataFrame,
    treatments: np.ndarray,
    what: str = "treatment",
    combined: CombinedTreatments | None = None,
    shares: np.ndarray | None = None,
):
    """The propensity as ``fit`` takes it, words for it, and the columns it uses; None, "", [] if none is given.

    ``what`` has these probabilities: "treatment", or "offer" where there is an instrument. Of ``combined`` treatments
    those of each may be given, if they were drawn independently: drug=0.5,physio=0.5.
    """
    if text is None or (text == ESTIMATED and text not in frame.columns):
        return None, "", []
    if "=" in text and text not in frame.columns:
        if combined is not None and (by_factor := _by_factor(text, combined)) is not None:
            return by_factor, "known: " + shares_text(by_factor), []
        return _propensity_by_label(text, frame, treatments, what)
    number = number_in(text)
    if number is None:
        require_column(text, "--propensity", frame)
    if len(treatments) != 2:
        raise InputError(
            f"--propensity gives one probability, but there are {len(treatments)} {what}s; give one for each: "
            f"{typed_list(f'{label}=...' for label in treatments)}."
        )
    second = treatments[1]
    if number is None:
        _check_probabilities(frame[text], text)
        return frame[text], f"known: column {text}, the probability of {second}", [text]
    if not 0.0 < number < 1.0:
        raise InputError(f"--propensity is {number:g}; the probability of {second} must lie strictly between 0 and 1.")
    if number != 0.5:
        raise InputError(f"--propensity {number:g} {needs_label(number, treatments, what, shares)}")
    return number, f"known: {number:g} for {second}", []


def _by_factor(text: str, combined: CombinedTreatments) -> dict[str, float] | None:
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
        return combined.propensity(chances)
    except InputError as error:
        raise InputError(f"--propensity: {error}") from error


def _propensity_by_label(text: str, frame: pd.DataFrame, treatments: np.ndarray, what: str):
    """Propensities given as label=number or label=column, for every label."""
    labels = {str(label): label for label in treatments}
    given: dict = {}
    columns = []
    for part in listed(text):
        name, _, value = part.rpartition("=")
        name, value = name if name in labels else name.strip(), value.strip()
        if name not in labels:
            raise InputError(f"--propensity names the {what} {name!r}; the {what}s are {', '.join(labels)}.")
        number = number_in(value)
        if number is None:
            require_column(value, "--propensity", frame)
            _check_probabilities(frame[value], value)
            columns.append(value)
        elif not 0.0 < number < 1.0:
            raise InputError(f"--propensity of {name} is {number:g}; it must lie strictly between 0 and 1.")
        given[labels[name]] = frame[value] if number is None else number
    lacking = [name for name, label in labels.items() if label not in given]
    if lacking:
        raise InputError(f"--propensity has no probability for {what} {lacking[0]}; give one for each {what}.")
    if columns:
        return pd.DataFrame(given, index=frame.index), f"known: {text}", columns
    total = sum(given.values())
    if abs(total - 1.0) > 1e-6:
        raise InputError(f"The probabilities of --propensity sum to {total:g}, not to 1.")
    return given, "known: " + shares_text(given), []


def _check_probabilities(column: pd.Series, name: str) -> None:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~((values > 0.0) & (values < 1.0)))
    if len(bad):
        raise InputError(
            f"Column {name!r} (--propensity) is {column.iloc[bad[0]]} in row {bad[0] + 1:,} below the header; "
            "probabilities must lie strictly between 0 and 1: leave out rows that could not get every treatment."
        )
