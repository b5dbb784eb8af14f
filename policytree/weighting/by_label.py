"""Numbers per treatment in any of the forms users have them, put in the order of the treatments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import numpy as np

from policytree.common.validation import as_numbers, place_of
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd


def by_label(
    values,
    n: int,
    treatments,
    *,
    argument: str,
    what: str = "number",
    missing: float | None = None,
    arm: str = "treatment",
) -> np.ndarray:
    """Numbers with mappings, frames and Series indexed by label put in the order of ``treatments``.

    Parameters
    ----------
    values : number, array, frame with a column per label, or mapping (Series) from label to a number or to n numbers
        A name is the label that equals it, or else the one whose text it is: polars knows only text names.
    n : int
        Number of rows.
    treatments : array-like of shape (K,)
    argument : str
        Name of ``values`` in messages.
    what : str
        Name of one of the numbers in messages.
    missing : float, optional
        For labels that a mapping leaves out; without it, and for frames, every label is needed.
    arm : str
        Name of what has a label in messages.

    Returns
    -------
    ndarray, float64
        Shape (n, K) if ``values`` has labels; its own shape otherwise.

    Raises
    ------
    InputError
        If a label is unknown or lacks its numbers, lengths differ from ``n``, or something is not a number.
    """
    frame, given = as_pandas(values), None
    if frame is not None:
        given, missing = {name: frame[name] for name in frame.columns}, None
    elif isinstance(values, Mapping):
        given = dict(values)
    elif nw.dependencies.is_pandas_series(values) and _has_labels(values, n, treatments):
        given = values.to_dict()
    if given is None:
        return as_numbers(values, argument)
    names = _names(given, list(treatments), argument, what, missing is None, arm)
    columns = []
    for label, name in names:
        column = as_numbers(given.get(name, missing), argument)
        if column.shape not in ((), (n,)):
            raise InputError(
                f"{argument} gives {column.size} values for {arm} {label!s} and {n} rows; give one, or one per row."
            )
        columns.append(np.broadcast_to(column, (n,)))
    return np.column_stack(columns)


def _has_labels(values: pd.Series, n: int, treatments) -> bool:
    """Whether the index of a Series names treatments; of n values it numbers the rows unless it names them all."""
    import pandas as pd

    if set(values.index) == set(treatments) and len(values) == len(treatments):
        return True
    return len(values) != n and not isinstance(values.index, pd.RangeIndex)


def _names(given: dict, treatments: list, argument: str, what: str, all_needed: bool, arm: str) -> list[tuple]:
    """Every treatment with the name that ``given`` has for it (:func:`place_of`), or itself where there is none."""
    places = {name: place_of(name, treatments) for name in given}
    names = dict.fromkeys(range(len(treatments)))
    for name, at in places.items():
        if at is not None and names[at] is not None:
            raise InputError(f"{argument} names {arm} {treatments[at]!s} twice, as {names[at]!r} and {name!r}.")
        if at is not None:
            names[at] = name
    lacking = [treatments[at] for at, name in names.items() if name is None]
    if lacking and all_needed:
        raise InputError(f"{argument} has no {what} for {arm} {lacking[0]!s}; give one for each {arm}.")
    extra = [str(name) for name, at in places.items() if at is None]
    if extra:
        known = ", ".join(map(str, treatments))
        raise InputError(f"{argument} names {arm} {min(extra)}, which does not occur; the {arm}s are {known}.")
    return [(label, label if names[at] is None else names[at]) for at, label in enumerate(treatments)]
