"""What treatments cost, per arm and per person, in the reward's unit."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from policytree.exceptions import InputError


def treatment_costs(costs, n: int, treatments) -> np.ndarray:
    """Costs as an (n, K) matrix in the order of ``treatments``.

    Parameters
    ----------
    costs : number, mapping, array or frame
        - a number or an array of shape (n,), with two treatments: what the second label in sorted order costs;
        - a mapping from label to a number or to one number per row (labels left out cost nothing);
        - an array of shape (K,) or (n, K), or a frame whose columns are the labels.
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
    """
    names = list(treatments)
    matrix = _matrix(costs, n, names)
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, k = bad[0]
        raise InputError(f"The cost of treatment {names[k]!s} is {matrix[row, k]} in row {row}; give finite numbers.")
    return matrix


def _matrix(costs, n: int, names: list) -> np.ndarray:
    frame = nw.from_native(costs, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if set(frame.columns) != {str(k) for k in names} and set(frame.columns) != set(names):
            raise InputError(f"The table of treatment costs must have the columns {', '.join(map(str, names))}.")
        by_text = {str(c): frame[c].to_numpy() for c in frame.columns}
        return np.column_stack([by_text[str(k)] for k in names]).astype(np.float64)
    if isinstance(costs, Mapping):
        unknown = [str(label) for label in costs if label not in names]
        if unknown:
            raise InputError(
                f"Costs name treatment {unknown[0]}, which does not occur; the treatments are "
                f"{', '.join(map(str, names))}."
            )
        return np.column_stack([_one_column(costs.get(k, 0.0), k, n) for k in names])
    values = _numbers(costs)
    shape = values.shape
    if shape == (n, len(names)) or (shape == (len(names),) and shape != (n,)):
        return np.array(np.broadcast_to(values, (n, len(names))))
    if len(names) == 2 and shape in ((), (n,)):
        return np.column_stack([np.zeros(n), np.broadcast_to(values, (n,))])
    raise InputError(
        f"Treatment costs have shape {shape}; give a mapping from label to cost, or numbers of shape ({len(names)},) "
        f"or ({n}, {len(names)})."
    )


def _numbers(values) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("Treatment costs hold values that are not numbers; give numbers.") from error


def _one_column(value, label, n: int) -> np.ndarray:
    """What one treatment costs every row, from one number or n of them."""
    values = _numbers(value)
    if values.shape not in ((), (n,)):
        raise InputError(f"The cost of {label!s} has {len(values)} values for {n} rows; give one or one per row.")
    return np.broadcast_to(values, (n,))


def subtract_costs(rewards: pd.DataFrame, costs) -> pd.DataFrame:
    """Rewards net of what the treatments cost.

    Parameters
    ----------
    rewards : DataFrame of shape (n, K)
        Larger is better. For outcomes that are better when small, negate them first or let
        ``PolicyTree(direction="minimize")`` add the costs.
    costs
        As in :func:`treatment_costs`.

    Returns
    -------
    DataFrame of shape (n, K)
    """
    return rewards - treatment_costs(costs, len(rewards), rewards.columns)


def row_costs(table: pd.DataFrame, per_label: Mapping, *, scale: tuple[float, float] | None = None) -> pd.DataFrame:
    """A cost for every row and label, computed from the row's columns.

    The costs of the Lalonde study are ``row_costs(df, {"a": lambda d: 200 + 3 * d["age"], "b": lambda d: 100 + 3 *
    d["age"], "c": 300}, scale=(1, 100))``.

    Parameters
    ----------
    table : DataFrame of shape (n, p)
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
    """
    columns = {label: _one_cost(table, label, rule) for label, rule in per_label.items()}
    out = pd.DataFrame(columns, index=table.index, columns=list(per_label))
    values = treatment_costs(out.to_numpy(), len(out), out.columns)
    if scale is not None:
        low, high = values.min(), values.max()
        if not (low < high and scale[0] < scale[1]):
            raise InputError(f"Costs between {low:g} and {high:g} cannot be scaled to {scale}; leave scale out.")
        values = scale[0] + (values - low) * ((scale[1] - scale[0]) / (high - low))
    return pd.DataFrame(values, index=out.index, columns=out.columns)


def _one_cost(table: pd.DataFrame, label, rule) -> np.ndarray:
    if isinstance(rule, str):
        if rule not in table.columns:
            raise InputError(f"The cost of {label!s} is to be read from column {rule!r}, which the table lacks.")
        rule = table[rule]
    return _one_column(rule(table) if callable(rule) else rule, label, len(table))
