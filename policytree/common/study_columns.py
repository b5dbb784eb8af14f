"""The columns of a study by their roles: what calls compute with, whoever named them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from policytree.common.calls import CallArguments
from policytree.common.row_labels import aligned_rows
from policytree.common.typing import Column, PerTreatment, Table
from policytree.exceptions import InputError

R = TypeVar("R")
# What calls are given only if they take it: it is said of the question, and not of rows.
SAID_BESIDE = ("direction", "control", "randomized", "known_propensity", "unit")


@dataclass(frozen=True, slots=True, eq=False)
class StudyColumns(CallArguments):
    """What a study holds, column by column, with no table that names them.

    Calls are made with it in the place of a :class:`policytree.Study`, which makes one of its table. It checks nothing:
    whoever reads a column does.

    Parameters
    ----------
    Y : array-like of shape (n,)
        Outcomes; times to an event where there is ``event``.
    T : array-like of shape (n,), or table of several columns
        Treatments.
    X, W : table of shape (n, p), optional
        Covariates that a rule may split on, and further confounders.
    propensity, regression : optional
        Known probabilities of treatment, and expected outcomes from elsewhere.
    sample_weight, groups : array-like of shape (n,), optional
        Sampling weights, and clusters.
    strata : array-like of shape (n,) or table, optional
        Blocks within which treatment was assigned.
    event : array-like of shape (n,), optional
        How times ended: 0 where they are censored, 1 (or the number of a cause) at the event.
    horizon, target, entry, cause : optional
        What times count for, and from when on rows were followed (:class:`policytree.study.TimeToEvent`).
    missing_outcome : {"refuse", "weight"}
        Whether rows without an outcome are weighted for (:class:`policytree.study.MayBeMissing`).
    instrument : array-like of shape (n,), optional
        Offers (:class:`policytree.study.Offered`).
    study : array-like of shape (n,) of bool, optional
        False for rows that are people whom the rule is for, and of no study.
    target_X, target_W : table of shape (m, p), optional
        In place of ``study``: these people's covariates and confounders (:class:`policytree.study.Population`).
    target_weights : array-like of shape (n,), optional
        In place of both: how many of these people every row stands for.
    sample_treatment_costs, budget_costs : mapping or array of shape (K,) or (n, K), optional
        What treatments cost in the outcome's unit, and what they take of a budget.
    outcomes : mapping of name to column, or to (column, direction), optional
        Further outcomes.
    subgroups : table of shape (n, q), optional
        Columns of groups of people.
    direction, control, randomized, known_propensity, unit : optional
        What the study says of its question.
    """

    Y: Column
    T: Column
    X: Table | None = None
    W: Table | None = None
    propensity: PerTreatment | None = None
    regression: PerTreatment | None = None
    sample_weight: Column | None = None
    groups: Column | None = None
    strata: Column | Table | None = None
    event: Column | None = None
    horizon: float | None = None
    target: str | None = None
    entry: Column | None = None
    cause: Any = None
    missing_outcome: str | None = None
    instrument: Column | None = None
    study: Column | None = None
    target_X: Table | None = None
    target_W: Table | None = None
    target_weights: Column | None = None
    sample_treatment_costs: PerTreatment | None = None
    budget_costs: PerTreatment | None = None
    outcomes: Mapping[str, Any] | None = None
    subgroups: Table | None = None
    direction: str | None = None
    control: Any = None
    randomized: bool | None = None
    known_propensity: bool | None = None
    unit: str | None = None

    def given(self) -> dict[str, Any]:
        """All that is not None, by its role."""
        every = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {"Y": self.Y, "T": self.T} | {name: value for name, value in every if value is not None}

    def data_arguments(self) -> dict[str, Any]:
        """What a call cannot be made without knowing."""
        return {name: value for name, value in self.given().items() if name not in SAID_BESIDE}

    def arguments(self) -> dict[str, Any]:
        """The same, with what the study says of its question."""
        return self.given()

    def told(self, value: Any) -> Any:
        """An argument of the call as it is: the direction is an argument of its own."""
        return value


def study_or_columns(name: str, Y: Any, columns: Mapping[str, Any]) -> CallArguments:
    """What stands in the place of Y: a study, beside which nothing else is said; or else the columns, row by row alike.

    Raises
    ------
    InputError
        If a study says what a column says as well.
    """
    given = {role: column for role, column in columns.items() if column is not None}
    if not isinstance(Y, CallArguments):
        return StudyColumns(**aligned_rows({"Y": Y, "T": None, **given}))
    if isinstance(Y, StudyColumns):
        return replace(Y, **aligned_rows(Y.given()))
    for role in given:
        raise InputError(f"{name} is given a study, which says {role} already; leave {role} out.")
    return Y


ROLES = frozenset(each.name for each in fields(StudyColumns))


def by_columns(function: Callable[..., R], *before: Any, **arguments: Any) -> R:
    """Call what takes a study with its columns by name, and whatever else it takes; others with all by name.

    Parameters
    ----------
    function : callable
        Such as a bound ``fit``, of this package's estimators or of others.
    *before
        Arguments that stand before the study.
    **arguments
        Columns by their roles, those that are None being left out, and settings.
    """
    called = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    if not getattr(called, "takes_study", False):
        return function(*before, **arguments)
    columns = {name: value for name, value in arguments.items() if name in ROLES}
    settings = {name: value for name, value in arguments.items() if name not in ROLES}
    return function(*before, StudyColumns(**columns), **settings)
