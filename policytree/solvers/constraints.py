"""What a rule may spend, and to how many it may give an action: as whole numbers, rounded so that promises hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

MOST_DECIMALS = 9
LARGEST_BITS = 48  # sums stay below 2**48: exact in float64, with room for sums of both signs


@dataclass(frozen=True, slots=True)
class Constraint:
    """``sum of amounts[i, action of i] <= limit``.

    Numbers with a few decimals are whole in a unit of their last decimal: a tenth is a tenth, and three of them are
    0.3. Others are rounded up, and the limit is rounded down: a tree that meets the constraint here meets it exactly.

    Attributes
    ----------
    kind : {"budget", "max_share", "min_share"}
    action : int or None
        Whose share it is.
    amounts : ndarray of shape (n, K), int64
    limit : int
    per_person : Fraction
        A sum times this is per person, in the user's unit.
    """

    kind: str
    action: int | None
    amounts: np.ndarray
    limit: int
    per_person: Fraction

    def in_units(self, total: int) -> float:
        """A sum of amounts as what a user asks for: the mean spend, or the share of an action."""
        return float((-1 if self.kind == "min_share" else 1) * total * self.per_person)


def budget_constraint(costs: np.ndarray, weight: np.ndarray, budget: float) -> Constraint:
    """At most ``budget`` per person (unit of weight) is spent; ``costs`` (n, K) of every person and action."""
    return Constraint("budget", None, *_whole(costs, weight, budget))


def share_constraint(kind: str, action: int, n_actions: int, weight: np.ndarray, share: float) -> Constraint:
    """At most, or at least, a share of the weight gets the action; ``kind`` is "max_share" or "min_share"."""
    sign = -1.0 if kind == "min_share" else 1.0
    one = np.zeros((len(weight), n_actions))
    one[:, action] = sign
    return Constraint(kind, action, *_whole(one, weight, sign * share))


def with_limit(constraint: Constraint, limit: int) -> Constraint:
    """The same with another limit."""
    return Constraint(constraint.kind, constraint.action, constraint.amounts, limit, constraint.per_person)


def _whole(costs: np.ndarray, weight: np.ndarray, limit: float) -> tuple[np.ndarray, int, Fraction]:
    """Whole amounts, the limit of their sum, and what one of them is per person."""
    decimals, weights = _decimals(costs), _decimals(weight)
    if decimals is not None and weights is not None:
        most = np.abs(decimals[0]).max(axis=1).astype(np.float64) @ weights[0].astype(np.float64)
        if most < 2.0**LARGEST_BITS:
            per_person = Fraction(1, 10 ** decimals[1] * int(weights[0].sum()))
            amounts = decimals[0] * weights[0][:, None]
            return amounts, _largest(limit, Fraction(repr(float(limit))), per_person), per_person
    products = costs * weight[:, None]
    total = float(np.abs(products).max(axis=1).sum())
    exponent = LARGEST_BITS - 1 - math.ceil(math.log2(total)) if total > 0 else 0
    scaled = np.ldexp(products, exponent)
    amounts = np.ceil(scaled + np.abs(scaled) * 2.0**-52).astype(np.int64)  # no less than the exact product
    people = math.fsum(weight)  # right to half a unit in the last place
    people = math.nextafter(people, 0.0 if limit >= 0 else math.inf)
    per_person = Fraction(1) / (Fraction(2) ** exponent * Fraction(people))
    return amounts, _largest(limit, Fraction(float(limit)), per_person), per_person


def _largest(limit: float, exact: Fraction, per_person: Fraction) -> int:
    """The largest sum within a limit; a limit that is a sum per person, to the last digit of a float, allows it."""
    sum_ = math.floor(exact / per_person)
    return sum_ + 1 if float((sum_ + 1) * per_person) == float(limit) else sum_


def _decimals(values: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Whole numbers and ``d`` so that values are these divided by ``10**d``, as people write them; None if many."""
    if not np.abs(values).max(initial=0.0) < 2.0**LARGEST_BITS:
        return None
    for d in range(MOST_DECIMALS + 1):
        whole = np.rint(values * 10.0**d)
        if np.abs(whole).max(initial=0.0) >= 2.0**LARGEST_BITS:
            return None
        if (whole / 10.0**d == values).all():
            return whole.astype(np.int64), d
    return None
