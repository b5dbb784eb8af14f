"""Costs of treatments, per arm and per person, in the reward's unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import PerTreatment, Table
from policytree.common.validation import as_numbers
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError, quoted
from policytree.weighting.by_label import by_label

if TYPE_CHECKING:
    import pandas as pd


def treatment_costs(costs: PerTreatment, n: int, treatments: Iterable[Any]) -> np.ndarray:
    """Costs as an (n, K) matrix in the order of ``treatments``.

    Parameters
    ----------
    costs : number, mapping, array or frame
        - a number or an array of shape (n,), with two treatments: what the second label in sorted order costs;
        - a mapping (or a Series indexed by label) from label to a number or to one number per row; labels left out cost
          nothing;
        - an array of shape (K,) or (n, K), or a frame whose columns are the labels, in any order.
    n : int
        Number of rows.
    treatments : array-like of shape (K,)
        Labels.

    Returns
    -------
    ndarray of shape (n, K), float64

    Raises
    ------
    InputError
        If a label is unknown, the shape fits none of the forms, or a cost is missing or infinite.

    Examples
    --------
    >>> from policytree.weighting.costs import treatment_costs
    >>> treatment_costs({"drug": 0.5, "none": 0.0}, 2, ["drug", "none"])
    array([[0.5, 0. ],
           [0.5, 0. ]])
    """
    names = list(treatments)
    matrix = _matrix(costs, n, names)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, k = bad[0]
        raise InputError(f"The cost of treatment {names[k]!s} is {matrix[row, k]} in row {row}; give finite numbers.")
    return matrix


def _matrix(costs, n: int, names: list) -> np.ndarray:
    values = by_label(costs, n, names, argument="costs", what="cost", missing=0.0)
    shape = values.shape
    if shape == (n, len(names)) or (shape == (len(names),) and shape != (n,)):
        return np.array(np.broadcast_to(values, (n, len(names))))
    if len(names) == 2 and shape in ((), (n,)):
        return np.column_stack([np.zeros(n), np.broadcast_to(values, (n,))])
    raise InputError(
        f"costs has shape {shape}; give a mapping from label to cost, or numbers of shape ({len(names)},) "
        f"or ({n}, {len(names)})."
    )


@aligns_rows
@shares_documentation(treatment_costs)
def subtract_costs(rewards: Table, costs: PerTreatment) -> pd.DataFrame:
    """Rewards net of what the treatments cost.

    Parameters
    ----------
    rewards : DataFrame (pandas or polars) of shape (n, K)
        Larger is better. For outcomes that are better when small, negate them first or let
        ``PolicyTree(direction="minimize")`` add the costs.

    Returns
    -------
    DataFrame of shape (n, K)

    Raises
    ------
    InputError
        If ``rewards`` is no frame, or a cost cannot be used.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.weighting.costs import subtract_costs
    >>> rewards = pd.DataFrame({"drug": [2.0, 0.0], "none": [0.0, 1.0]})
    >>> subtract_costs(rewards, {"drug": 0.5, "none": 0.0})
       drug  none
    0   1.5   0.0
    1  -0.5   1.0
    """
    frame = as_pandas(rewards)
    if frame is None:
        raise InputError("rewards must be a DataFrame with a column per treatment, so that costs find their treatment.")
    return frame - treatment_costs(costs, len(frame), frame.columns)


def row_costs(table: Table, per_label: Mapping, *, scale: tuple[float, float] | None = None) -> pd.DataFrame:
    """A cost for every row and label, computed from the row's columns.

    The costs of the Lalonde study are ``row_costs(df, {"a": lambda d: 200 + 3 * d["age"], "b": lambda d: 100 + 3 *
    d["age"], "c": 300}, scale=(1, 100))``, if "scaled linearly to 1..100" is read as of all costs of wrong labels; the
    case study ``weighted_trees`` shows what other readings change.

    Parameters
    ----------
    table : DataFrame (pandas or polars) of shape (n, p)
        Functions are given it as a pandas DataFrame.
    per_label : mapping from label to a number, a column name, or a function of the table that gives n numbers
    scale : (low, high), optional
        Map all costs together linearly so that the smallest becomes ``low`` and the largest ``high``.

    Returns
    -------
    DataFrame of shape (n, K), columns in the order of the mapping

    Raises
    ------
    InputError
        If a column is missing, a cost is not finite, or ``scale`` cannot be reached because all costs are equal.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.weighting import row_costs
    >>> table = pd.DataFrame({"age": [30, 60], "fee": [5.0, 8.0]})
    >>> row_costs(table, {"drug": lambda d: 2 * d["age"], "test": "fee", "none": 0.0})
        drug  test  none
    0   60.0   5.0   0.0
    1  120.0   8.0   0.0
    """
    import pandas as pd

    frame = as_pandas(table)
    if frame is None:
        raise InputError("Costs computed from columns need a table with named columns, such as a DataFrame.")
    if not isinstance(per_label, Mapping):
        raise InputError(
            f"Costs must be a mapping from label to number, column name or function; got {quoted(per_label)}."
        )
    if not per_label:
        raise InputError("No cost is given; name at least one label and what it costs.")
    rules = {label: _values(frame, label, rule) for label, rule in per_label.items()}
    out = pd.DataFrame(index=frame.index, columns=list(per_label), dtype=np.float64)
    values = treatment_costs(rules, len(out), out.columns)
    if scale is not None:
        if np.shape(scale) != (2,) or not np.isfinite(as_numbers(scale, "scale")).all():
            raise InputError(f"scale must be two numbers, low and high; got {quoted(scale)}.")
        low, high = values.min(), values.max()
        if not (low < high and scale[0] < scale[1]):
            raise InputError(f"Costs between {low:g} and {high:g} cannot be scaled to {scale}; leave scale out.")
        values = scale[0] + (values - low) * ((scale[1] - scale[0]) / (high - low))
    return pd.DataFrame(values, index=out.index, columns=out.columns)


def _values(table: pd.DataFrame, label, rule):
    """Evaluate a cost rule on the rows of the table: one number or n."""
    if isinstance(rule, str):
        if rule not in table.columns:
            raise InputError(f"The cost of {label!s} is to be read from column {rule!r}, which the table lacks.")
        return table[rule]
    return rule(table) if callable(rule) else rule
