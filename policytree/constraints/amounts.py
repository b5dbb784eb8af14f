"""Limits on means over everybody: of spending, of the cost of tests, of who gets a treatment, of further outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policytree.constraints.constraint import Constraint, Rows, check_amount, rounded_up
from policytree.exceptions import InputError
from policytree.solvers.core.constraints import Constraint as Sum
from policytree.solvers.core.constraints import budget_constraint, cost_constraint, mean_constraint, share_constraint
from policytree.weighting.by_label import by_label

if TYPE_CHECKING:
    from policytree.constraints.people import Limited


@dataclass(frozen=True)
class Budget(Constraint):
    """The most that may be spent a person, on average over the rows of ``fit``.

    Parameters
    ----------
    most : float
        Per person (unit of weight), in the unit of ``budget_costs``, which a study or ``fit`` gives. On other people
        the tree may spend more, see :func:`policytree.policy_value`.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import Budget
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> tree = PolicyTree(max_depth=1, constraints=[Budget(30.0)]).fit(X, rewards, budget_costs=[0, 100])
    >>> tree.predict(X).tolist(), tree.spend_
    ([0, 0, 0, 1], 25.0)
    """

    most: float
    kind: ClassVar[str] = "budget"
    option: ClassVar[str] = "--budget"
    needs: ClassVar[str] = "budget_costs"

    def __post_init__(self) -> None:
        check_amount("The budget, the largest spend a person,", self.most)

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse a budget of treatments whose costs nobody gave."""
        if about.spending is None:
            raise InputError("A budget needs the treatments' costs; pass budget_costs to fit, such as {'drug': 120.0}.")

    def sums(self, rows: Rows) -> list[Sum]:
        """One: the mean of the spending."""
        assert rows.about.spending is not None
        return [budget_constraint(rows.about.spending, rows.weight, self.most)]

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """The least that can be spent."""
        if found.kind != self.kind:
            return None
        return f"spends less than {rounded_up(least):g} a person, but the budget is {self.most:g}; raise it to that."

    def facts(self, tree: Any) -> dict[str, str]:
        """The spending."""
        from policytree.trees.text import format_number  # loads pandas, which a search does without

        spend, most = format_number(tree.spend_), format_number(self.most)
        return {"spend": f"{spend} a row, within {most} (these rows; others may differ)"}


@dataclass(frozen=True)
class _Share(Constraint):
    """What :class:`MaxShare` and :class:`MinShare` have in common."""

    treatment: Any
    share: float

    def __post_init__(self) -> None:
        check_amount(f"{type(self).__name__} of {self.treatment!s}", self.share, 0.0, 1.0)

    @property
    def about(self) -> Any:
        """The treatment."""
        return self.treatment

    def position(self, labels: Sequence[Any]) -> int:
        """Of the treatment among the labels."""
        of = {self.treatment: self.share}
        name = type(self).__name__
        return int(
            np.flatnonzero(~np.isnan(by_label(of, 1, labels, argument=name, what="share", missing=np.nan)[0]))[0]
        )

    def sums(self, rows: Rows) -> list[Sum]:
        """One: the share of the weight."""
        k = self.position(rows.labels)
        return [share_constraint(self.kind, k, len(rows.labels), rows.weight, self.share)]

    def facts(self, tree: Any) -> dict[str, str]:
        """The shares of all treatments."""
        return {"shares": ", ".join(f"{arm} {share:.1%}" for arm, share in tree.shares_.items())}


@dataclass(frozen=True)
class MaxShare(_Share):
    """The most of the people (of the weight) that may get a treatment, on the rows of ``fit``.

    Parameters
    ----------
    treatment : label
    share : float
        From 0 to 1.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import MaxShare
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> PolicyTree(max_depth=1, constraints=[MaxShare(1, 0.5)]).fit(X, rewards).shares_
    {0: 0.5, 1: 0.5}
    """

    kind: ClassVar[str] = "max_share"
    option: ClassVar[str] = "--max-share"

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse unknown treatments, and shares that leave people without one."""
        most = {each.position(labels): each.share for each in others if isinstance(each, MaxShare)}
        left = 1 - sum(most.get(k, 1.0) for k in range(len(labels)))
        if left > 1e-9:
            raise InputError(f"MaxShare leaves {left:.3g} of the people without a treatment; raise a share.")

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """The least that can be given."""
        if (found.kind, found.action) != (self.kind, self.position(labels)):
            return None
        return (
            f"gives {self.treatment!s} to less than {rounded_up(least):g} of the people, but its largest share is "
            f"{self.share:g}; raise it."
        )


@dataclass(frozen=True)
class MinShare(_Share):
    """The least of the people (of the weight) that must get a treatment, on the rows of ``fit``.

    Parameters
    ----------
    treatment : label
    share : float
        From 0 to 1.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import MinShare
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> PolicyTree(max_depth=1, constraints=[MinShare(0, 0.5)]).fit(X, rewards).predict(X).tolist()
    [0, 0, 1, 1]
    """

    kind: ClassVar[str] = "min_share"
    option: ClassVar[str] = "--min-share"

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse unknown treatments, and shares that are together too large, or larger than what is allowed."""
        k = self.position(labels)
        asked = sum(each.share for each in others if isinstance(each, MinShare))
        if asked > 1.0 + 1e-9:
            raise InputError(f"MinShare asks for {asked:.3g} of the people in all; lower a share.")
        for each in others:
            if isinstance(each, MaxShare) and each.position(labels) == k and self.share > each.share:
                raise InputError(
                    f"MinShare of {self.treatment!s} is {self.share:g}, more than its MaxShare, {each.share:g}; mend "
                    "one."
                )

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """The most that can be given."""
        if (found.kind, found.action) != (self.kind, self.position(labels)):
            return None
        return (
            f"gives {self.treatment!s} to more than {-rounded_up(-least):g} of the people, but its smallest share is "
            f"{self.share:g}; lower it."
        )


@dataclass(frozen=True)
class Limit(Constraint):
    """A limit on the mean of a further outcome under the tree, such as harm.

    Parameters
    ----------
    outcome : str
        Name of one of the further outcomes that the study, or ``fit``, gives.
    value : float
    at_least : bool, optional
        Whether the mean must be at least, and not at most, the value. By default it must be if more of the outcome is
        better.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import Limit
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> harm = [[0.0, 0.1], [0.0, 0.2], [0.0, 0.3], [0.0, 0.1]]
    >>> tree = PolicyTree(max_depth=1, constraints=[Limit("harm", 0.1)]).fit(X, rewards, outcomes={"harm": harm})
    >>> tree.predict(X).tolist()
    [0, 0, 1, 1]
    """

    outcome: str
    value: float
    at_least: bool | None = None
    kind: ClassVar[str] = "limit"
    needs: ClassVar[str] = "outcomes"

    def __post_init__(self) -> None:
        check_amount(f"The limit of {self.outcome!r}", self.value)

    @property
    def option(self) -> str:  # type: ignore[override]
        """Two options name the two directions."""
        return "--at-least" if self.at_least else "--limit"

    @property
    def about(self) -> Any:
        """The outcome."""
        return self.outcome

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse an outcome that nobody gave."""
        if self.outcome not in about.outcomes:
            raise InputError(f"Limit names {self.outcome!r}, which is not among the outcomes that fit was given.")

    def settled(self, more_is_better: bool) -> Limit:
        """The same with its direction, where only that of the outcome is known."""
        return replace(self, at_least=more_is_better) if self.at_least is None else self

    def sums(self, rows: Rows) -> list[Sum]:
        """One: the mean of the outcome."""
        least = self.settled(rows.about.larger_is_better[self.outcome]).at_least
        values = rows.about.outcomes[self.outcome]
        return [mean_constraint(self.kind, self.outcome, values, rows.weight, self.value, at_least=bool(least))]

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """The strictest limit that some tree keeps to."""
        if (found.kind, found.name) != (self.kind, self.outcome):
            return None
        more = "above" if found.at_least else "below"
        shown = -rounded_up(-least) if found.at_least else rounded_up(least)
        return f"has a mean of {self.outcome!r} {more} {shown:g}, but its limit is {self.value:g}; change it to that."

    def kept_by(self, mean: float) -> bool:
        """Whether a mean keeps to it."""
        return mean >= self.value if self.at_least else mean <= self.value

    def typed(self) -> str:
        """Outcome and number; the option says the direction."""
        return f"{self.outcome}={self.value!r}"

    @property
    def bound(self) -> str:
        """The number in words."""
        return f"at {'least' if self.at_least else 'most'} {self.value:g}"


@dataclass(frozen=True)
class ExpectedCost(Constraint):
    """The most that tests may cost a person, on average over the rows of ``fit``.

    ``feature_costs``, in any unit, are then limited and not charged in the objective. Kept exactly;
    ``objective_bound_`` comes from Lagrange multipliers, and up to depth three a search closes the gap
    (:mod:`policytree.solvers.constrained.solve`).

    Parameters
    ----------
    most : float
        At least 0.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.constraints import ExpectedCost
    >>> X, y = [[1.0, 5.0], [2.0, 5.0], [3.0, 6.0], [4.0, 6.0]], [0, 0, 1, 1]
    >>> tree = OptimalTreeClassifier(2, 0.0, feature_costs=[10.0, 3.0], constraints=[ExpectedCost(5.0)]).fit(X, y)
    >>> tree.expected_cost_
    3.0
    """

    most: float
    kind: ClassVar[str] = "expected_cost"
    option: ClassVar[str] = "--max-expected-cost"
    needs: ClassVar[str] = "feature_costs"
    of_treatments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_amount("ExpectedCost, the most that tests may cost a person,", self.most, 0.0)

    def sums(self, rows: Rows) -> list[Sum]:
        """One: what tests cost; none where they are free."""
        if rows.test_costs is None:
            return []
        return [cost_constraint(rows.test_costs, rows.weight, self.most, rows.losses.shape[1], rows.most_tests)]

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """Never: a single leaf costs nothing."""
        return None

    def facts(self, tree: Any) -> dict[str, str]:
        """The cost of the tests."""
        from policytree.trees.text import format_number  # loads pandas, which a search does without

        cost, most = format_number(tree.expected_cost_), format_number(self.most)
        return {
            "questions": f"cost {cost} a row on average, within {most} (these rows; others may differ); held-out "
            "values leave it out"
        }
