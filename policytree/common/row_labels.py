"""Rows by their labels: columns whose pandas indexes hold the same labels are put into one order; others are refused.

pandas pairs rows by label, numpy by position. An array, and a polars or pyarrow table, has no labels and is paired by
position.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from policytree.common.callers import stacklevel_outside
from policytree.data.feature_encoder import collected
from policytree.exceptions import InputError, RowOrderWarning, quoted

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
R = TypeVar("R")
# Names of arguments with a value per row, by whose rows they are. The first one of a call that has labels is its
# reference: a table before a column, so that arrays without labels follow the covariates.
ROWS = (
    "X", "rewards", "W", "Y", "y", "T", "propensity", "regression", "sample_weight", "groups", "strata", "event",
    "entry", "instrument", "study", "target_weights", "sample_treatment_costs", "budget_costs", "outcomes",
    "subgroups", "policy", "policies", "a", "b", "leaves", "priority", "predicted", "costs", "cost_scores", "baseline",
    "status_quo", "others", "scores", "blocks", "time", "feature", "influence", "eligible", "allowed", "observed",
    "weights",
)  # fmt: skip
FAMILIES = (ROWS, ("target_X", "target_W"), ("X_validation", "y_validation"))
PER_TREATMENT = {"propensity", "regression", "sample_treatment_costs", "budget_costs", "costs", "baseline"}
FEW = 10  # values of a Series that may be one per treatment, of as many rows
NAMES = frozenset(name for family in FAMILIES for name in family)


def has_labels(values: Any) -> bool:
    """Whether something is a pandas Series or DataFrame, whose rows have labels."""
    return nw.dependencies.is_pandas_series(values) or nw.dependencies.is_pandas_dataframe(values)


def row_labels(*columns: Any) -> pd.Index | None:
    """The labels of the first of some columns that has any; None if all are arrays or without an index."""
    return next((column.index for column in columns if has_labels(column)), None)


def aligns_rows(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of what takes several columns or tables with a value per row: see :func:`aligned_rows`."""
    signature = inspect.signature(function)
    collecting = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # Python's own sentence says it better
            return function(*args, **kwargs)
        given = {name: value for name, value in bound.arguments.items() if name in NAMES}
        more = bound.arguments.get(collecting, {}) if collecting else {}
        given |= {name: value for name, value in more.items() if name in NAMES}
        for name, value in aligned_rows(given).items():
            (bound.arguments if name in signature.parameters else more)[name] = value
        return function(*bound.args, **bound.kwargs)

    called.aligns_rows = True  # type: ignore[attr-defined]
    return called


def aligned_rows(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name with their rows in one order, that of the first with labels in the order of ``ROWS``.

    The same labels in the same order, and whatever has no labels, pass as they are; a Y without labels gets them.
    Columns of another length are left to the checks of lengths: a Series may have a number per treatment. A polars
    LazyFrame is collected.

    Parameters
    ----------
    given : mapping of name to column, table, mapping of columns, or anything else

    Returns
    -------
    dict

    Raises
    ------
    InputError
        If two indexes hold different labels, or the same in another order and some of them more than once.

    Warns
    -----
    RowOrderWarning
        If rows were put into another order.
    """
    out = {name: collected(value) for name, value in given.items()}
    if (
        type(out.get("Y")) in (list, np.ndarray)
        and (labels := row_labels(*(out.get(name) for name in ROWS))) is not None
    ):
        out["Y"] = _labelled(out["Y"], labels)
    for family in FAMILIES:
        out |= aligned({name: out[name] for name in family if name in out})
    return out


def aligned(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same as :func:`aligned_rows` for arguments of any names that are all of the same rows, the first leading."""
    parts = [part for name, value in given.items() for part in _parts(name, value)]
    if not parts:
        return dict(given)
    first, reference, moved = parts[0][0], parts[0][1].index, list[str]()
    out = {name: _in_order(value, name, first, reference, moved) for name, value in given.items()}
    if moved:
        what = f"{moved[0]} has" if len(moved) == 1 else f"{', '.join(moved[:-1])} and {moved[-1]} have"
        warnings.warn(
            f"{what} the row labels (pandas' index) of {first} in another order; rows were put into the order of "
            f"{first}.",
            RowOrderWarning,
            stacklevel=stacklevel_outside(),
        )
    return out


def _labelled(column: Any, labels: pd.Index) -> Any:
    """Outcomes with the labels of the other rows, since what comes out has those of Y; odd shapes as they are."""
    import pandas as pd

    if len(column) != len(labels) or np.ndim(column) != 1 or getattr(getattr(column, "dtype", None), "names", None):
        return column
    return pd.Series(column, index=labels)


def _parts(name: str, value: Any) -> list[tuple[str, Any]]:
    """List the parts of an argument that have labels: itself, or columns of a mapping."""
    if has_labels(value):
        return [(name, value)]
    if isinstance(value, Mapping):
        return [part for key, column in value.items() for part in _parts(f"{name}[{quoted(key)}]", column)]
    return _parts(name, value[0]) if _is_outcome(value) else []


def _is_outcome(value: Any) -> bool:
    """Whether a value is a further outcome with its direction, (column, "minimize")."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str) and has_labels(value[0])


def _in_order(value: Any, name: str, first: str, reference: pd.Index, moved: list[str]) -> Any:
    """The argument, or the columns of a mapping, in the order of the reference; ``moved`` gets what changed."""
    if isinstance(value, Mapping):
        return {
            key: _in_order(column, f"{name}[{quoted(key)}]", first, reference, moved) for key, column in value.items()
        }
    if _is_outcome(value):
        return (_in_order(value[0], name, first, reference, moved), value[1])
    if not has_labels(value) or len(value) != len(reference) or value.index.equals(reference):
        return value
    if name in PER_TREATMENT and len(value) < FEW and nw.dependencies.is_pandas_series(value):
        return value
    own, remedy = value.index, "if their rows are in the same order, give both .reset_index(drop=True)"
    if not own.is_unique or not reference.is_unique:
        twice = own if not own.is_unique else reference
        label = twice[twice.duplicated()][0]
        raise InputError(
            f"{name} and {first} have different row labels (pandas' index), of which {_quoted(label)} stands more than "
            f"once, so that rows cannot be matched by label; {remedy}."
        )
    place = own.get_indexer(reference)
    if (place < 0).any():
        label = reference[np.flatnonzero(place < 0)[0]]
        raise InputError(
            f"{name} and {first} have different row labels (pandas' index): {first} has {_quoted(label)}, and {name} "
            f"does not, as for {int((place < 0).sum()):,} of {len(own):,} rows; {remedy}, else select the same rows of "
            "both by label."
        )
    moved.append(name)
    return value.iloc[place]


def _quoted(label: Any) -> str:
    return quoted(label.item() if isinstance(label, np.generic) else label)
