"""Limits on further outcomes, and on differences between groups of people, as constraints of the search.

Every one is a mean over people of amounts that depend on what they get, so that a limit on it is a linear constraint:
of a further outcome by its own rewards; of the difference between two groups' shares of a treatment, or between their
mean rewards. The least mean over groups is no such thing, but the best tree by it is the best of one tree per group: of
all trees that serve this group worst, the one that serves it best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from policytree.common.typing import Table
from policytree.common.validation import as_series, check_choice, is_real
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError, quoted
from policytree.solvers.core.constraints import Constraint, gap_constraint, mean_constraint
from policytree.weighting.by_label import by_label

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 2  # people of a group whose shares or values are compared
MOST_GROUPS = 20
MAXIMIZE, MINIMIZE = "maximize", "minimize"
GAPS = ("max_share_gap", "max_value_gap")


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
    """What limits are about, for every person.

    Attributes
    ----------
    spending : ndarray of shape (n, K) or None
        What every treatment counts against the budget.
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


# --- checks ---


def check_limits(tree: Any, outcomes: Any, subgroups: Table | None, n: int, labels: Any) -> Limited:
    """Refuse limits that cannot be meant; what they are about otherwise, without the spending."""
    names = [*_mapping("limits", tree.limits)]
    given = _outcomes(outcomes, n, labels)
    for name in names:
        if name not in given:
            raise InputError(f"limits names {name!r}, which is not among the outcomes that fit was given.")
        limit = tree.limits[name]
        if not is_real(limit) or isinstance(limit, bool) or not np.isfinite(limit):
            raise InputError(f"limits of {name!r} must be a finite number; got {quoted(limit)}.")
    columns = subgroup_columns(subgroups, n)
    for argument in GAPS:
        for name, gap in _mapping(argument, getattr(tree, argument)).items():
            _known_column(name, columns, argument)
            if not is_real(gap) or isinstance(gap, bool) or not 0.0 <= gap < np.inf:
                raise InputError(f"{argument} of {name!r} must be a number of at least 0; got {quoted(gap)}.")
    if tree.worst_group is not None:
        _known_column(tree.worst_group, columns, "worst_group")
    if is_limited(tree) and not (tree.solver == "direct" and tree.guesses is None):
        raise InputError("limits, gaps and worst_group need the exact search; leave solver and guesses alone.")
    return Limited(
        None, {k: v for k, (v, _) in given.items()}, {k: better for k, (_, better) in given.items()}, columns
    )


def is_limited(tree: Any) -> bool:
    """Whether an estimator asks for limits on outcomes or groups."""
    return bool(tree.limits or tree.max_share_gap or tree.max_value_gap or tree.worst_group)


def _mapping(argument: str, value: Any) -> Mapping[str, float]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{argument} must be a mapping from name to number; got {quoted(value)}.")
    return value


def _known_column(name: Any, columns: Mapping[str, Subgroups], argument: str) -> None:
    if name not in columns:
        known = ", ".join(columns) or "none"
        raise InputError(f"{argument} names {name!r}, which is no column of subgroups; they are {known}.")


def further_outcomes(outcomes: Any) -> dict[str, tuple[Any, str]]:
    """What is given of every further outcome, and which way it is better."""
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


def _outcomes(outcomes: Any, n: int, labels: Any) -> dict[str, tuple[np.ndarray, bool]]:
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


# --- constraints ---


def limit_constraints(
    tree: Any, labels: Any, limited: Limited, losses: np.ndarray, weight: np.ndarray
) -> list[Constraint]:
    """The constraints of people of positive weight."""
    out = [
        mean_constraint("limit", name, limited.outcomes[name], weight, limit, at_least=limited.larger_is_better[name])
        for name, limit in _mapping("limits", tree.limits).items()
    ]
    for name, gap in _mapping("max_share_gap", tree.max_share_gap).items():
        arms = range(len(labels) if len(labels) > 2 else 1)  # of two treatments, one share says the other
        for k in arms:
            one = np.zeros_like(losses)
            one[:, k] = 1.0
            out += _gaps("share_gap", f"{name}, {labels[k]!s}", limited.subgroups[name], one, weight, gap)
    for name, gap in _mapping("max_value_gap", tree.max_value_gap).items():
        out += _gaps("value_gap", name, limited.subgroups[name], losses, weight, gap)
    return out


def _gaps(
    kind: str, name: str, subgroups: Subgroups, values: np.ndarray, weight: np.ndarray, gap: float
) -> list[Constraint]:
    """The mean of every group is at most so much above that of every other."""
    masks = _populated(subgroups, weight, name)
    return [
        gap_constraint(
            kind, f"{name}: {subgroups.labels[g]} - {subgroups.labels[h]}", values, weight, masks[g], masks[h], gap
        )
        for g, h in permutations(range(len(masks)), 2)
    ]  # fmt: skip


def _populated(subgroups: Subgroups, weight: np.ndarray, name: str) -> list[np.ndarray]:
    """Who is in every group; refuses groups of hardly anybody."""
    masks = subgroups.masks()
    for mask, label in zip(masks, subgroups.labels, strict=True):
        if mask.sum() < FEWEST:
            raise InputError(
                f"Group {label!r} of {name!r} has {int(mask.sum())} people of positive weight, too few to compare; "
                "join it to another."
            )
    return masks


@dataclass(frozen=True, slots=True, eq=False)
class WorstGroup:
    """The part of a search by the worst group: trees that serve one group worst.

    Attributes
    ----------
    losses : ndarray of shape (n, K)
        Those of its people, so that their weighted mean over everybody is the mean over the group.
    constraints : tuple of Constraint
        No other group is served worse.
    """

    losses: np.ndarray
    constraints: tuple[Constraint, ...]


def worst_groups(name: str, subgroups: Subgroups, losses: np.ndarray, weight: np.ndarray) -> list[WorstGroup]:
    """One search per group; the best tree by the worst group is the best of what they find."""
    masks = _populated(subgroups, weight, name)
    total, out = weight.sum(), []
    for g, mask in enumerate(masks):
        others = tuple(
            gap_constraint(
                "worst_group", f"{name}: {subgroups.labels[h]} - {subgroups.labels[g]}", losses, weight, other, mask,
                0.0,
            )
            for h, other in enumerate(masks)
            if h != g
        )  # fmt: skip
        out.append(WorstGroup(losses * np.where(mask, total / weight[mask].sum(), 0.0)[:, None], others))
    return out


# --- what a tree comes to ---


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
