"""A list of constraints: whether it can be meant, in which order the search takes it, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from policytree.constraints.amounts import Budget, ExpectedCost, Limit, Share
from policytree.constraints.constraint import Constraint, Rows
from policytree.constraints.groups import EqualShares, EqualValues, WorstGroup
from policytree.constraints.people import Limited, given_outcomes, subgroup_columns
from policytree.exceptions import InputError, quoted
from policytree.solvers.core.constraints import Constraint as Sum
from policytree.weighting.costs import treatment_costs

# In the order in which the search takes them, whatever that of the user's list; other kinds follow.
KINDS: tuple[type[Constraint], ...] = (
    Budget, Share, Limit, EqualShares, EqualValues, ExpectedCost, WorstGroup,
)  # fmt: skip


def asked(tree: Any) -> list[Constraint]:
    """The constraints of an estimator, in the order of the search; none if it knows none."""
    found = list(getattr(tree, "constraints", ()) or ())
    order = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(found, key=lambda each: (order.get(type(each), len(KINDS)), str(each.about)))


def check_list(tree: Any, *, of_treatments: bool) -> None:
    """Refuse a list that cannot be meant, whatever the rows."""
    given = tree.constraints
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InputError(f"constraints must be a list, such as [Budget(50.0)]; got {quoted(given)}.")
    for each in given:
        if not isinstance(each, Constraint):
            raise InputError(
                f"constraints must be of policytree.constraints, such as Budget(50.0); got {quoted(each)}."
            )
        name = type(each).__name__
        if each.of_treatments and not of_treatments:
            raise InputError(f"{name} is about treatments, which a {type(tree).__name__} does not give; leave it out.")
        if each.needs == "feature_costs" and tree.feature_costs is None:
            raise InputError(f"{name} limits what tests cost; pass feature_costs as well.")
        if any(type(other) is type(each) and other.about == each.about for other in given if other is not each):
            of = "" if each.about is None else f" of {each.about!r}"
            raise InputError(f"constraints holds {name}{of} twice; make one of them.")
    if len({id(each) for each in given}) < len(given):
        raise InputError("constraints holds the same constraint twice; leave one out.")
    if given and not (tree.solver == "direct" and tree.guesses is None):
        raise InputError("constraints need the exact search; leave solver and guesses alone.")


def check_constraints(
    tree: Any, labels: Any, n: int, budget_costs: Any = None, outcomes: Any = None, subgroups: Any = None
) -> Limited:
    """Refuse constraints that cannot be meant of these rows; what they are about, otherwise."""
    given, found = given_outcomes(outcomes, n, labels), asked(tree)
    about = Limited(
        None, {k: v for k, (v, _) in given.items()}, {k: better for k, (_, better) in given.items()},
        subgroup_columns(subgroups, n),
    )  # fmt: skip
    if budget_costs is not None:
        if not any(each.needs == "budget_costs" for each in found):
            raise InputError("budget_costs are given, but no Budget; add Budget(most), the largest spend a person.")
        try:
            about = replace(about, spending=treatment_costs(budget_costs, n, labels))
        except InputError as error:
            raise InputError(f"budget_costs: {error}") from error
    for each in found:
        each.check(about, labels, found)
    return about


def limits_tests(tree: Any) -> bool:
    """Whether the cost of tests is limited, and not charged."""
    return any(each.needs == "feature_costs" for each in asked(tree))


def is_limited(tree: Any) -> bool:
    """Whether an estimator is asked for limits on further outcomes or groups."""
    return any(each.needs in ("outcomes", "subgroups") for each in asked(tree))


def unlimited(constraints: Sequence[Constraint]) -> list[Constraint]:
    """The others than limits on further outcomes or groups."""
    return [each for each in constraints if each.needs not in ("outcomes", "subgroups")]


def sums_of(tree: Any, rows: Rows) -> tuple[Sum, ...]:
    """The constraints of the search."""
    return tuple(one for each in asked(tree) for one in each.sums(rows))
