"""Limits on means over everybody: of spending, of the cost of tests, of who gets a treatment, of further outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from policytree.constraints.constraint import Constraint, Rows, check_amount, rounded_up
from policytree.exceptions import InputError
from policytree.weighting.by_label import by_label

if TYPE_CHECKING:
    from policytree.constraints.people import Limited
    from policytree.solvers.core.constraints import Constraint as Sum

ENDS = {"max_share": "The largest share", "min_share": "The smallest share"}  # words of which options take the place


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
    needs: ClassVar[str] = "budget_costs"

    def __post_init__(self) -> None:
        check_amount("The budget, the largest spend a person,", self.most)

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse a budget of treatments whose costs nobody gave."""
        if about.spending is None:
            raise InputError("A budget needs the treatments' costs; pass budget_costs to fit, such as {'drug': 120.0}.")

    def sums(self, rows: Rows) -> list[Sum]:
        """One: the mean of the spending."""
        from policytree.solvers.core.constraints import budget_constraint

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
class Share(Constraint):
    """The most, or the least, of the people (of the weight) that get a treatment, on the rows of ``fit``.

    Parameters
    ----------
    treatment : label
    most : float, optional
        From 0 to 1: so many may get it.
    least : float, optional
        From 0 to 1: so many must get it. One of the two is needed.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.constraints import Share
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]
    >>> PolicyTree(max_depth=1, constraints=[Share(1, most=0.5)]).fit(X, rewards).shares_
    {0: 0.5, 1: 0.5}
    >>> PolicyTree(max_depth=1, constraints=[Share(0, least=0.25)]).fit(X, rewards).predict(X).tolist()
    [0, 1, 1, 1]
    """

    treatment: Any
    most: float | None = field(default=None, kw_only=True)
    least: float | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "share"

    def __post_init__(self) -> None:
        for kind, share in self._ends():
            check_amount(f"{ENDS[kind]} of {self.treatment!s}", share, 0.0, 1.0)
        if self.most is None and self.least is None:
            raise InputError(
                f"Share of {self.treatment!s} has no limit; give most or least, as in Share({self.treatment!r}, "
                "most=0.3)."
            )
        if self.most is not None and self.least is not None and self.least > self.most:
            raise InputError(
                f"The smallest share of {self.treatment!s} is {self.least:g}, more than its largest, {self.most:g}; "
                "mend one."
            )

    def _ends(self) -> list[tuple[str, float]]:
        """The limits that there are, as the search names them."""
        return [(kind, share) for kind, share in zip(ENDS, (self.most, self.least), strict=True) if share is not None]

    @property
    def about(self) -> Any:
        """The treatment."""
        return self.treatment

    def position(self, labels: Sequence[Any]) -> int:
        """Of the treatment among the labels."""
        kind, share = self._ends()[0]
        found = by_label({self.treatment: share}, 1, labels, argument=ENDS[kind], what="share", missing=np.nan)[0]
        return int(np.flatnonzero(~np.isnan(found))[0])

    def check(self, about: Limited, labels: Sequence[Any], others: Sequence[Constraint]) -> None:
        """Refuse unknown treatments, and shares that leave people without one or ask for more than there are."""
        shares = {each.position(labels): each for each in others if isinstance(each, Share)}
        left = 1 - sum(1.0 if k not in shares or (most := shares[k].most) is None else most for k in range(len(labels)))
        if left > 1e-9:
            raise InputError(
                f"The largest share of each treatment leaves {left:.3g} of the people without one; raise a share."
            )
        needed = sum(each.least or 0.0 for each in shares.values())
        if needed > 1.0 + 1e-9:
            raise InputError(
                f"The smallest share of each treatment asks for {needed:.3g} of the people in all; lower a share."
            )

    def sums(self, rows: Rows) -> list[Sum]:
        """The share of the weight, once for each end."""
        from policytree.solvers.core.constraints import share_constraint

        k = self.position(rows.labels)
        return [share_constraint(kind, k, len(rows.labels), rows.weight, share) for kind, share in self._ends()]

    def refusal(self, found: Sum, least: float, labels: Sequence[Any]) -> str | None:
        """The least, or the most, that can be given."""
        if found.kind not in ENDS or found.action != self.position(labels):
            return None
        if found.at_least:
            return (
                f"gives {self.treatment!s} to more than {-rounded_up(-least):g} of the people, but its smallest share "
                f"is {self.least:g}; lower it."
            )
        return (
            f"gives {self.treatment!s} to less than {rounded_up(least):g} of the people, but its largest share is "
            f"{self.most:g}; raise it."
        )

    def facts(self, tree: Any) -> dict[str, str]:
        """The shares of all treatments."""
        return {"shares": ", ".join(f"{arm} {share:.1%}" for arm, share in tree.shares_.items())}


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
        from policytree.solvers.core.constraints import mean_constraint

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
    needs: ClassVar[str] = "feature_costs"
    of_treatments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_amount("ExpectedCost, the most that tests may cost a person,", self.most, 0.0)

    def sums(self, rows: Rows) -> list[Sum]:
        """One: what tests cost; none where they are free."""
        from policytree.solvers.core.constraints import cost_constraint

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
