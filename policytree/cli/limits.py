"""Further outcomes and groups of people: what is judged, what is limited, and what the tree may not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from policytree.cli.tables import column_names, number_in, require_column
from policytree.constraints.amounts import Limit
from policytree.constraints.constraint import Constraint
from policytree.constraints.groups import EqualShares, EqualValues, OfGroups, WorstGroup
from policytree.constraints.people import MAXIMIZE, MINIMIZE, subgroup_columns
from policytree.exceptions import InputError, quoted

FEWEST_IN_GROUP = 20  # rows, where the value of a group is estimated on rows that are held out
GAPS = ("parity", "value_parity")  # options that limit differences between groups
BY_COLUMN = ("limit", "at_least", *GAPS)  # options of columns and numbers
LISTED = ("also", "subgroups")  # options of columns


@dataclass(frozen=True, slots=True)
class Limits:
    """Further outcomes and columns of groups, by the names of their columns.

    Attributes
    ----------
    outcomes : mapping of str to {"minimize", "maximize"}
        Further outcomes, and which way they are better.
    constraints : tuple of Constraint
        Those on outcomes and groups.
    described : tuple of str
        Columns whose groups are described, and not compared otherwise.
    """

    outcomes: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    described: tuple[str, ...] = ()

    @property
    def unseen(self) -> tuple[str, ...]:
        """Columns that the tree does not see unless it is told to: those whose groups it is to treat alike."""
        return tuple(dict.fromkeys(each.column for each in self.constraints if isinstance(each, OfGroups)))

    @property
    def limits(self) -> dict[str, Limit]:
        """Limits on further outcomes."""
        return {each.outcome: each for each in self.constraints if isinstance(each, Limit)}

    @property
    def subgroups(self) -> tuple[str, ...]:
        """All columns of groups."""
        return tuple(dict.fromkeys([*self.unseen, *self.described]))

    def fit_arguments(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Return further arguments of ``fit``: columns instead of their names; empty where nothing was named."""
        found: dict[str, Any] = {}
        if self.outcomes:
            found["outcomes"] = {
                name: (frame[name].astype(np.float64), direction) for name, direction in self.outcomes.items()
            }
        if self.subgroups:
            found["subgroups"] = frame[list(self.subgroups)]
        return found

    def saved(self) -> dict[str, Any]:
        """The options that say the same, for the file of a tree."""
        said: dict[str, Any] = {name: [] for name in BY_COLUMN} | {"worst_group": None}
        for each in self.constraints:
            if isinstance(said[name := _argument(each.option)], list):
                said[name].append(each.typed())
            else:
                said[name] = each.typed()
        also = [name for name in self.outcomes if name not in self.limits]
        return said | {"also": also, "subgroups": list(self.described)}


def limits_of(roles: Any, frame: pd.DataFrame) -> Limits:
    """Read and check the options on further outcomes and groups.

    Parameters
    ----------
    roles : StudyOptions
        Its ``limit``, ``at_least``, ``also``, ``parity``, ``value_parity``, ``worst_group`` and ``subgroups``.
    frame : DataFrame

    Raises
    ------
    InputError
        If a column is not there, has another role or cannot be used, or a number cannot be meant.
    """
    most, least = (by_column(getattr(roles, name), _option(name), frame) for name in ("limit", "at_least"))
    for name in most:
        if name in least:
            raise InputError(f"--limit and --at-least both name {name!r}; an outcome has one limit, leave one out.")
    gaps = {name: by_column(getattr(roles, name), _option(name), frame, least=0.0) for name in GAPS}
    also = column_names(roles.also, "--also", frame)
    described = column_names(roles.subgroups, "--subgroups", frame)
    if roles.worst_group is not None:
        require_column(roles.worst_group, "--worst-group", frame)
    outcomes = {
        **dict.fromkeys(most, MINIMIZE), **dict.fromkeys(least, MAXIMIZE),
        **{name: MINIMIZE for name in also if name not in most and name not in least},
    }  # fmt: skip
    constraints = [
        *(Limit(name, number, False) for name, number in most.items()),
        *(Limit(name, number, True) for name, number in least.items()),
        *(EqualShares(name, number) for name, number in gaps["parity"].items()),
        *(EqualValues(name, number) for name, number in gaps["value_parity"].items()),
        *([] if roles.worst_group is None else [WorstGroup(roles.worst_group)]),
    ]
    found = Limits(outcomes, tuple(constraints), tuple(described))
    _refuse_roles(roles, found)
    for name in outcomes:
        _refuse_no_outcome(frame[name], option_of(name, found), may_lack=roles.missing_outcome == "weight")
    for name in found.subgroups:
        try:
            subgroup_columns(frame[[name]], len(frame))
        except InputError as error:
            raise InputError(f"{option_of(name, found)}: {error}") from error
    return found


def by_column(
    texts: Sequence[str] | None, option: str, frame: pd.DataFrame, *, least: float = -np.inf
) -> dict[str, float]:
    """Parse COLUMN=X options, each once for a column.

    Raises
    ------
    InputError
        If a text cannot be read, or names no column or a number that is not finite or below ``least``.
    """
    found: dict[str, float] = {}
    for text in texts or ():
        name, _, value = (piece.strip() for piece in text.rpartition("="))
        number = number_in(value)
        if not name or number is None:
            raise InputError(f"{option} {quoted(text)} cannot be read; give a column and a number, as in toxicity=0.1.")
        require_column(name, option, frame)
        if name in found:
            raise InputError(f"{option} names {name!r} twice; give one number for a column.")
        if not least <= number < np.inf or not np.isfinite(number):
            what = "a finite number" if least == -np.inf else f"a number of at least {least:g}"
            raise InputError(f"{option} gives {name!r} the number {value}; it must be {what}.")
        found[name] = number
    return found


def notes_of_limits(limits: Limits, covariates: Sequence[str], confounders: Sequence[str]) -> list[str]:
    """State the roles of these columns, a sentence each."""
    notes, moved = [], [name for name in limits.unseen if name in confounders]
    if moved:
        names = ", ".join(moved)
        notes.append(
            f"The tree does not ask about {names}, whose groups are compared; the outcome models adjust for it. To let "
            "the tree ask, name it among all --covariates."
        )
    seen = [name for name in limits.unseen if name in covariates]
    if seen:
        notes.append(f"The tree may ask about {', '.join(seen)}, whose groups are compared: --covariates names it.")
    if limits.outcomes:
        notes.append(f"Further outcomes ({', '.join(limits.outcomes)}) are no covariates.")
    return notes


def refuse_small_groups(limits: Limits, frame: pd.DataFrame, weight: np.ndarray | None) -> None:
    """Refuse groups of which parts of the rows, from which rules are learnt and judged, would have hardly anybody.

    Raises
    ------
    InputError
    """
    for name in limits.subgroups:
        column = frame[name] if weight is None else frame[name][weight > 0]
        counts = column.value_counts()
        counts = counts[counts > 0]
        if len(counts) and counts.iloc[-1] < FEWEST_IN_GROUP:
            raise InputError(
                f"Group {str(counts.index[-1])!r} of column {name!r} has {counts.iloc[-1]} rows, but groups of fewer "
                f"than {FEWEST_IN_GROUP} cannot be judged on rows that are held out; join it to another group, leave "
                "its rows out, or do without a held-out value, --no-value."
            )


def option_of(name: str, limits: Limits) -> str:
    """The option that names a column."""
    if name in limits.outcomes:
        return limits.limits[name].option if name in limits.limits else "--also"
    groups = (each for each in limits.constraints if isinstance(each, OfGroups) and each.column == name)
    return next((each.option for each in groups), "--subgroups")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _argument(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _refuse_roles(roles: Any, found: Limits) -> None:
    """One column has one role."""
    taken = {
        "treatment": roles.treatment, "outcome": roles.outcome, "weights": roles.weights,
        "event": roles.event_column, "entry": roles.entry_column, "instrument": roles.instrument,
    }  # fmt: skip
    own = {column: role for role, column in taken.items() if column is not None}
    for name in (*found.outcomes, *found.subgroups):
        if name in own:
            raise InputError(f"{option_of(name, found)} names {name!r}, which is the {own[name]}; leave it out.")
    for name in found.outcomes:
        if name in found.subgroups or name == roles.cluster:
            raise InputError(
                f"{option_of(name, found)} names {name!r}, which is a column of groups or clusters as well; "
                "give it one role."
            )
    if found.outcomes and roles.instrument is not None:
        raise InputError(
            "--limit, --at-least and --also know no offers that people may refuse yet; leave them out, or --instrument."
        )


def _refuse_no_outcome(column: pd.Series, option: str, *, may_lack: bool) -> None:
    """Refuse a further outcome that is no column of finite numbers."""
    if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
        values = column.dropna().astype(str).unique()[:3]
        raise InputError(
            f"Column {column.name!r} ({option}) holds texts ({', '.join(values)}); make a column of numbers of it, "
            "such as 1 where the harm was seen and 0 elsewhere."
        )
    bad = np.flatnonzero(np.isinf(column.to_numpy(dtype=np.float64, na_value=np.nan)))
    gaps = np.flatnonzero(column.isna())
    if len(bad):
        raise InputError(f"Column {column.name!r} ({option}) is infinite in row {bad[0] + 1:,} below the header.")
    if len(gaps) and not may_lack:
        raise InputError(
            f"Column {column.name!r} ({option}) has no value in {len(gaps):,} of {len(column):,} rows, the first of "
            f"them row {gaps[0] + 1:,} below the header; leave these rows out, or weight for who is missing, "
            "--missing-outcome weight."
        )
