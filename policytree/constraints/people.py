"""Quantities that constraints limit, for every person: spending, further outcomes, and groups of people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from policytree.common.typing import Table
from policytree.common.validation import as_series, check_choice
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError, quoted
from policytree.weighting.by_label import by_label

if TYPE_CHECKING:
    import pandas as pd

MOST_GROUPS = 20
MAXIMIZE, MINIMIZE = "maximize", "minimize"


@dataclass(frozen=True, slots=True, eq=False)
class Subgroups:
    """One column that divides people into groups.

    Attributes
    ----------
    code : ndarray of shape (n,), int
    labels : tuple of str
    """

    code: np.ndarray
    labels: tuple[str, ...]

    def masks(self) -> list[np.ndarray]:
        """Who is in every group."""
        return [self.code == g for g in range(len(self.labels))]


@dataclass(frozen=True, slots=True, eq=False)
class Limited:
    """Quantities that constraints limit, for every person.

    Attributes
    ----------
    spending : ndarray of shape (n, K) or None
        Every treatment's cost against the budget.
    outcomes : mapping of str to ndarray of shape (n, K)
        Rewards of further outcomes.
    larger_is_better : mapping of str to bool
        Of these outcomes: their limit is then the least mean.
    subgroups : mapping of str to Subgroups
    """

    spending: np.ndarray | None = None
    outcomes: Mapping[str, np.ndarray] = field(default_factory=dict)
    larger_is_better: Mapping[str, bool] = field(default_factory=dict)
    subgroups: Mapping[str, Subgroups] = field(default_factory=dict)

    def part(self, rows: np.ndarray | slice) -> Limited:
        """The same of some people."""
        return Limited(
            None if self.spending is None else self.spending[rows],
            {name: values[rows] for name, values in self.outcomes.items()},
            self.larger_is_better,
            {name: Subgroups(each.code[rows], each.labels) for name, each in self.subgroups.items()},
        )


def further_outcomes(outcomes: Any) -> dict[str, tuple[Any, str]]:
    """Split every further outcome into its values, and which way it is better."""
    if outcomes is None:
        return {}
    if not isinstance(outcomes, Mapping):
        raise InputError(
            f"outcomes must be a mapping from a name to its values, or to these and 'maximize'; got {quoted(outcomes)}."
        )
    out = {}
    for name, given in outcomes.items():
        values, direction = given if isinstance(given, tuple) and len(given) == 2 else (given, MINIMIZE)
        check_choice(direction, f"The direction of outcome {name!r}", (MAXIMIZE, MINIMIZE))
        out[str(name)] = values, direction
    return out


def given_outcomes(outcomes: Any, n: int, labels: Any) -> dict[str, tuple[np.ndarray, bool]]:
    """Rewards (n, K) of further outcomes, and whether more of each is better."""
    out = {}
    for name, (table, direction) in further_outcomes(outcomes).items():
        values = by_label(table, n, labels, argument=f"outcomes[{name!r}]", what="reward")
        if values.shape != (n, len(labels)):
            raise InputError(
                f"outcomes[{name!r}] has shape {values.shape}; give one reward for each of {n} people and "
                f"{len(labels)} treatments."
            )
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            raise InputError(f"outcomes[{name!r}] has a missing or infinite reward in row {bad[0, 0]}.")
        out[name] = values, direction == MAXIMIZE
    return out


def subgroup_columns(table: Table | None, n: int) -> dict[str, Subgroups]:
    """Columns of groups as codes."""
    if table is None:
        return {}
    frame = as_pandas(table)
    columns = {str(name): frame[name] for name in frame.columns} if frame is not None else _one_column(table)
    out = {}
    for name, column in columns.items():
        series = as_series(column, "subgroups")
        if len(series) != n:
            raise InputError(f"subgroups has {len(series)} rows, but there are {n} people; give every person one.")
        if series.isna().any():
            raise InputError(
                f"Column {name!r} of subgroups is missing for {int(series.isna().sum())} people; give them a group of "
                "their own, such as 'unknown'."
            )
        found, code = np.unique(series.astype(str).to_numpy(dtype=str), return_inverse=True)
        if not 2 <= len(found) <= MOST_GROUPS:
            raise InputError(
                f"Column {name!r} of subgroups has {len(found)} groups; groups that are compared must be 2 to "
                f"{MOST_GROUPS}: cut numbers into a few classes."
            )
        out[name] = Subgroups(code.reshape(-1).astype(np.int64), tuple(found.tolist()))
    return out


def _one_column(values: Any) -> dict[str, Any]:
    series = as_series(values, "subgroups")
    name = getattr(values, "name", None)
    return {"group" if name is None else str(name): series}


def group_table(
    subgroups: Mapping[str, Subgroups], actions: np.ndarray, values: np.ndarray, weight: np.ndarray, labels: Any
) -> pd.DataFrame:
    """Mean reward and share of every treatment by group, on the rows of the fit.

    Returns
    -------
    DataFrame
        Indexed by column and group: ``people``, ``weight`` (its share), ``value``, ``share of <treatment>``.
    """
    import pandas as pd

    lines = {}
    chosen = values[np.arange(len(actions)), actions]
    for name, each in subgroups.items():
        for mask, label in zip(each.masks(), each.labels, strict=True):
            w = weight[mask]
            if not len(w):
                continue
            line = {"people": len(w), "weight": w.sum() / weight.sum(), "value": np.average(chosen[mask], weights=w)}
            for k, arm in enumerate(labels):
                line[f"share of {arm!s}"] = float(w[actions[mask] == k].sum() / w.sum())
            lines[name, label] = line
    frame = pd.DataFrame.from_dict(lines, orient="index")
    frame.index = pd.MultiIndex.from_tuples(lines, names=["column", "group"])
    return frame
