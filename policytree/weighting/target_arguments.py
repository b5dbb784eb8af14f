"""Another population by its covariates or by weights: ``target_X``, ``target_W`` and ``target_weights``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.validation import as_series, stratum_codes, weights
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError
from policytree.weighting.stacked import weights_of_target
from policytree.weighting.time_to_event.outcome import is_structured

NAMES = ("target_X", "target_W", "target_weights")


def with_target(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with one table of study and target, or with weights, in place of the three arguments.

    People of ``target_X`` stand below those of the study, with ``study=False``. A target that holds exactly the study's
    own rows changes nothing, and neither do weights that are all equal.
    """
    target_X, target_W, target_weights = (given.pop(name, None) for name in NAMES)
    if target_X is None and target_W is None:
        return _weighted(given, target_weights)
    if given.get("study") is not None:
        raise InputError("study says already which rows are of the target; leave target_X and target_W out.")
    if target_weights is not None:
        raise InputError(
            "target_weights say how many people of the target the study's rows stand for, and target_X who they are; "
            "give one of the two."
        )
    n = len(given["Y"])
    tables = {name: _both(given.get(name), target, name, n) for name, target in (("X", target_X), ("W", target_W))}
    known = [pair for pair in tables.values() if pair is not None]
    m = len(known[0][1])
    if any(len(pair[1]) != m for pair in known):
        raise InputError(f"target_X has {m} rows, but target_W has {len(known[1][1])}; give both for the same people.")
    if given.get("sample_weight") is None and _same_people(known):
        return given
    return _stacked(given, tables, n, m)


def _weighted(given: dict[str, Any], target_weights: Any) -> dict[str, Any]:
    """Weights of the target as sampling weights, which they are: rows that stand for more people."""
    if given.get("study") is not None:
        raise InputError("study says who the people of the target are; leave target_weights out, or use sample_weight.")
    n = len(given["Y"])
    factor = weights_of_target(target_weights, n)
    if factor is not None:
        own = weights(given.get("sample_weight"), n)
        given["sample_weight"] = factor if own is None else own * factor
    return given


def _both(table: Any, target: Any, name: str, n: int) -> tuple[pd.DataFrame, pd.DataFrame, bool] | None:
    """A table of the study and one of the target with the same columns, and whether they are frames; or None."""
    if (table is None) is not (target is None):
        given, lacks = (f"target_{name}", name) if table is None else (name, f"target_{name}")
        raise InputError(f"{given} is given without {lacks}; the target needs the same tables as the study.")
    if table is None:
        return None
    own, other = (_frame(each, argument) for each, argument in ((table, name), (target, f"target_{name}")))
    if len(own) != n:
        raise InputError(f"{name} has {len(own)} rows, but Y has {n}; give one row per row of Y.")
    if not len(other):
        raise InputError(f"target_{name} has no rows; pass the people whom the rule is for.")
    framed = as_pandas(table) is not None
    if framed is not (as_pandas(target) is not None):
        lacks = f"target_{name}" if framed else name
        raise InputError(
            f"target_{name} and {name} must both be frames, or both be arrays; give {lacks} column names as well."
        )
    lacking = [str(c) for c in own.columns if c not in other.columns]
    if lacking:
        raise InputError(f"target_{name} lacks the column {lacking[0]!r} of {name}; add it, or leave it out of {name}.")
    more = [str(c) for c in other.columns if c not in own.columns]
    if more:
        raise InputError(f"target_{name} has a column {more[0]!r} that {name} does not have; leave it out.")
    other = other[list(own.columns)]
    _refuse_infinite(other, name)
    _refuse_unknown_values(own, other, name)
    return own, other, framed


def _frame(table: Any, argument: str) -> pd.DataFrame:
    frame = as_pandas(table, argument)
    if frame is not None:
        return frame
    try:
        array = np.asarray(table)
    except ValueError as error:
        raise InputError(f"{argument} must be a table; its rows are of different lengths.") from error
    if array.ndim != 2:
        raise InputError(
            f"{argument} must be a table, a frame or an array with a row per person; got shape {array.shape}."
        )
    return pd.DataFrame(array).infer_objects()  # numbers that stand beside texts are numbers


def _refuse_infinite(other: pd.DataFrame, name: str) -> None:
    """Infinite numbers of the target, before the two tables are one."""
    for column in other.columns:
        if (
            pd.api.types.is_float_dtype(other[column].dtype)
            and np.isinf(other[column].to_numpy(float, na_value=0)).any()
        ):
            raise InputError(
                f"Column {column!r} of target_{name} holds infinite values; replace them by numbers or by missing "
                "values."
            )


def _refuse_unknown_values(own: pd.DataFrame, other: pd.DataFrame, name: str) -> None:
    """Categories that nobody in the study has: there is nothing to learn their effects from."""
    for column in own.columns:
        if pd.api.types.is_datetime64_any_dtype(own[column].dtype):
            continue  # refused as covariates, by a better sentence
        if pd.api.types.is_numeric_dtype(own[column].dtype) or pd.api.types.is_bool_dtype(own[column].dtype):
            if not pd.api.types.is_numeric_dtype(other[column].dtype) and other[column].notna().any():
                raise InputError(
                    f"Column {column!r} of target_{name} does not hold numbers, as it does in the study; convert it to "
                    "numbers."
                )
            continue
        known = set(own[column].dropna().astype(str))
        values = other[column].dropna().astype(str)
        unknown = values[~values.isin(known)]
        if len(unknown):
            raise InputError(
                f"Column {column!r} of target_{name} holds {unknown.iloc[0]!r} ({(values == unknown.iloc[0]).sum()} "
                "rows), which nobody in the study has; leave these people out, or merge the value with another."
            )


def _same_people(pairs: list[tuple[pd.DataFrame, pd.DataFrame, bool]]) -> bool:
    """Whether the target holds exactly the rows of the study, in any order."""
    if len(pairs[0][0]) != len(pairs[0][1]):
        return False
    own = pd.concat([pair[0].reset_index(drop=True) for pair in pairs], axis=1)
    other = pd.concat([pair[1].reset_index(drop=True) for pair in pairs], axis=1)
    if own.equals(other):
        return True
    hashes = [np.sort(pd.util.hash_pandas_object(_plain(table), index=False).to_numpy()) for table in (own, other)]
    return bool((hashes[0] == hashes[1]).all())


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers as float64 and everything else as text, so that equal values have equal hashes."""
    columns = {
        j: c.astype(np.float64) if pd.api.types.is_numeric_dtype(c.dtype) else c.astype(object).astype(str)
        for j, (_, c) in enumerate(table.items())
    }
    return pd.DataFrame(columns)


def _stacked(given: dict[str, Any], tables: dict[str, Any], n: int, m: int) -> dict[str, Any]:
    """All arguments for n rows of the study above m people of the target."""
    for name in ("sample_treatment_costs", "budget_costs", "regression", "subgroups"):
        if _by_rows(given.get(name), n):
            raise InputError(
                f"{name} is given row by row, and people of the target need theirs too; give it by treatment, or "
                "leave it out."
            )
    own, other, _ = next(pair for pair in tables.values() if pair is not None)
    Y = given["Y"]
    people = own.index if is_structured(Y) else as_series(Y, "Y").index
    index = people.append(other.index)  # of all that is stacked: rows are paired by it
    out = dict(given)
    for name, pair in tables.items():
        if pair is not None:
            both = pd.concat(pair[:2], ignore_index=True).set_axis(index)
            out[name] = both if pair[2] else both.to_numpy()
    if is_structured(Y):
        out["Y"] = np.concatenate([np.asarray(Y), np.zeros(m, dtype=np.asarray(Y).dtype)])
    else:
        outcome = pd.concat([as_series(Y, "Y"), pd.Series(np.full(m, np.nan))], ignore_index=True)
        out["Y"] = outcome.set_axis(index).rename(_column_name(Y))
    treatments = as_pandas(given.get("T"))
    several = treatments is not None and treatments.shape[1] > 1
    if several:  # factors, to be combined where they are observed
        out["T"] = treatments.astype(object).reset_index(drop=True).reindex(range(n + m)).set_axis(index)
    for name in ("event", "entry") if several else ("T", "event", "entry"):
        if given.get(name) is not None:
            column = as_series(given[name], name).astype(object)
            filled = pd.concat([column, pd.Series([None] * m, dtype=object)], ignore_index=True)
            out[name] = filled.set_axis(index).rename(_column_name(given[name]))
    if given.get("groups") is not None:
        column = as_series(given["groups"], "groups").astype(object)
        alone = pd.Series([f"(person {i} of the target)" for i in range(m)], dtype=object)
        out["groups"] = pd.concat([column, alone], ignore_index=True).set_axis(index)
    if (codes := stratum_codes(given.get("strata"), n)) is not None:
        out["strata"] = np.append(codes, np.full(m, codes.max() + 1))
    if (weight := weights(given.get("sample_weight"), n)) is not None:
        out["sample_weight"] = np.append(weight, np.full(m, weight.mean()))
    if _by_rows(given.get("propensity"), n):
        out["propensity"] = _padded(given["propensity"], m, index)
    out["study"] = np.arange(n + m) < n
    return out


def _column_name(column: Any) -> Any:
    """The name of the user's column, which messages add to the argument's; None if it has none."""
    frame = as_pandas(column)
    return getattr(column, "name", None) if frame is None else frame.columns[0]


def _by_rows(value: Any, n: int) -> bool:
    """Whether something is given for every one of n rows, rather than for each treatment."""
    if value is None or isinstance(value, Mapping):
        return value is not None and any(np.ndim(column) > 0 for column in value.values())
    return np.ndim(value) > 0 and len(value) == n


def _padded(value: Any, m: int, index: pd.Index) -> Any:
    """Columns or a table with m more rows, which nobody reads."""
    if isinstance(value, Mapping):
        return {label: _padded(column, m, index) for label, column in value.items()}
    frame = as_pandas(value)
    if frame is not None:
        return pd.concat(
            [frame, pd.DataFrame(np.nan, index=range(m), columns=frame.columns)], ignore_index=True
        ).set_axis(index)
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:  # of a label, the same for everybody
        return value
    return np.concatenate([array, np.full((m, *array.shape[1:]), np.nan)])
