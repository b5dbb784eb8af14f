"""Constraints on trees: amounts spent on actions and questions, and shares of rows per action.

All as whole numbers, rounded so that promises hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from policytree.exceptions import InputError
from policytree.solvers.core.exact_sums import exact_sum

MOST_DECIMALS = 9
LARGEST_CUT = 1e100  # beyond, costs are taken as they are
LARGEST_BITS = 48  # sums stay below 2**48: exact in float64, with room for sums of both signs


@dataclass(frozen=True, slots=True)
class Applied:
    """Actions and payments of rows under a tree.

    Attributes
    ----------
    actions : ndarray of shape (n,)
    paid : ndarray of shape (n, n_features), or None
        How often each row pays for a question about each feature; None where questions cost nothing.
    """

    actions: np.ndarray
    paid: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Questions:
    """Charges that rows add to a constraint's sum for the questions on their way.

    Attributes
    ----------
    charges : ndarray of shape (n_prices, n), int64
        For a question of each price.
    price_of : ndarray of shape (n_features,), int64
        Which of the prices a question about each feature has.
    unit_costs : ndarray of shape (n_features,), float64
        Charge of a question for every unit of weight, in the sum's unit; ``charges`` are these times weights, rounded
        up at most.
    """

    charges: np.ndarray
    price_of: np.ndarray
    unit_costs: np.ndarray

    def total(self, paid: np.ndarray) -> int:
        """The sum over rows that pay for features so often, (n, n_features)."""
        return sum(int(self.charges[self.price_of[f]] @ paid[:, f]) for f in np.flatnonzero(paid.any(axis=0)))


@dataclass(frozen=True, slots=True)
class Constraint:
    """``sum of amounts[i, action of i] + what rows pay for questions <= limit``.

    Numbers with a few decimals are whole in a unit of their last decimal: a tenth is a tenth, and three of them are
    0.3. Others are rounded up, and the limit is rounded down: a tree that meets the constraint here meets it exactly.
    A tree that meets it exactly has at most ``loosest`` here; :meth:`keeps` tells which of those between do.

    Attributes
    ----------
    kind : {"budget", "max_share", "min_share", "expected_cost", "limit", "share_gap", "value_gap", "worst_group"}
    action : int or None
        Whose share it is.
    amounts : ndarray of shape (n, K), int64
    limit : int
    per_person : Fraction
        A sum times this is per person, in the user's unit.
    loosest : int
        See above; ``limit`` itself if nothing was rounded.
    asked : tuple
        Costs (n, K), or of questions (n_features,), weights (n,) and the limit as they were given; negative for
        "min_share".
    questions : Questions or None
        For "expected_cost"; its ``amounts`` are zero.
    name : str
        Its name in messages: of an outcome, or of two groups that are compared.
    at_least : bool
        Whether the limit is the least, and amounts are the negative of what was asked.
    compared : tuple of two ndarray of shape (n,), bool, or None
        Two groups of people, where the sum is the difference of their means; ``asked`` holds values then.
    """

    kind: str
    action: int | None
    amounts: np.ndarray
    limit: int
    per_person: Fraction
    loosest: int
    asked: tuple[np.ndarray, np.ndarray, float] = field(repr=False)
    questions: Questions | None = None
    name: str = ""
    at_least: bool = False
    compared: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    @property
    def sign(self) -> int:
        """Of amounts: at least so much is at most the negative."""
        return -1 if self.at_least else 1

    def keeps(self, applied: Applied) -> bool:
        """Whether a rule that does this to the rows keeps to the limit as it was given, exactly."""
        total = self.total(applied)
        if not self.limit < total <= self.loosest:
            return total <= self.limit
        if self.compared is not None:
            return float(self._gap(applied)) <= self.asked[2]
        pairs = zip(*(each.tolist() for each in self._terms(applied)), strict=True)
        exact = sum((Fraction(c) * Fraction(w) for c, w in pairs), Fraction(0))
        return float(exact / exact_sum(self.asked[1])) <= self.asked[2]  # to the last digit of a float

    def total(self, applied: Applied) -> int:
        """The sum for a rule that does this to the rows."""
        if self.questions is not None:
            assert applied.paid is not None
            return self.questions.total(applied.paid)
        return int(self.amounts[np.arange(len(applied.actions)), applied.actions].sum())

    def mean(self, applied: Applied) -> float:
        """Return the mean per person of a rule within the limit, in the user's unit; never more than the limit."""
        total = self.total(applied)
        if self.loosest == self.limit:
            return self.in_units(total)
        if self.compared is not None:
            return float(self._gap(applied))
        costs, weight = self._terms(applied)
        mean = math.fsum(costs * weight) / math.fsum(self.asked[1])
        return self.sign * (min(mean, self.asked[2]) if total <= self.loosest else mean)

    def _gap(self, applied: Applied) -> Fraction:
        """Exactly, the mean of the first group less that of the second."""
        assert self.compared is not None
        values, weight, _ = self.asked
        chosen, means = values[np.arange(len(applied.actions)), applied.actions], []
        for group in self.compared:
            pairs = zip(chosen[group].tolist(), weight[group].tolist(), strict=True)
            total = sum((Fraction(v) * Fraction(w) for v, w in pairs), Fraction(0))
            means.append(total / exact_sum(weight[group]))
        return means[0] - means[1]

    def _terms(self, applied: Applied) -> tuple[np.ndarray, np.ndarray]:
        """Costs and weights as they were given, whose products the rule comes to."""
        costs, weight, _ = self.asked
        if self.questions is None:
            return costs[np.arange(len(applied.actions)), applied.actions], weight
        assert applied.paid is not None
        rows, features = np.nonzero(applied.paid)
        times = applied.paid[rows, features]
        return np.repeat(costs[features], times), np.repeat(weight[rows], times)

    def in_units(self, total: int) -> float:
        """A sum of amounts as what a user asks for: the mean spend, or the share of an action."""
        return float(self.sign * total * self.per_person)


def budget_constraint(costs: np.ndarray, weight: np.ndarray, budget: float) -> Constraint:
    """At most ``budget`` per person (unit of weight) is spent; ``costs`` (n, K) of every person and action."""
    return Constraint("budget", None, *_whole(costs, weight, budget), (costs, weight, float(budget)))


def share_constraint(kind: str, action: int, n_actions: int, weight: np.ndarray, share: float) -> Constraint:
    """At most, or at least, a share of the weight gets the action; ``kind`` is "max_share" or "min_share"."""
    sign = -1.0 if kind == "min_share" else 1.0
    one = np.zeros((len(weight), n_actions))
    one[:, action] = sign
    least = kind == "min_share"
    asked = (one, weight, sign * float(share))
    return Constraint(kind, action, *_whole(one, weight, sign * share), asked, at_least=least)


def mean_constraint(
    kind: str, name: str, amounts: np.ndarray, weight: np.ndarray, limit: float, *, at_least: bool = False
) -> Constraint:
    """At most, or at least, so much per person on average; ``amounts`` (n, K) of every person and action."""
    sign = -1.0 if at_least else 1.0
    turned = sign * amounts
    asked = (turned, weight, sign * float(limit))
    return Constraint(kind, None, *_whole(turned, weight, sign * limit), asked, name=name, at_least=at_least)


def gap_constraint(
    kind: str, name: str, values: np.ndarray, weight: np.ndarray, one: np.ndarray, other: np.ndarray, limit: float
) -> Constraint:
    """The mean of values over some people is at most so much above that over others.

    Parameters
    ----------
    values : ndarray of shape (n, K)
        Of every person and action.
    weight : ndarray of shape (n,)
    one, other : ndarray of shape (n,), bool
        Who is in either group; both have weight.
    limit : float
    """
    asked, compared = (values, weight, float(limit)), (one, other)
    decimals, weights = _decimals(values), _decimals(weight)
    if decimals is not None and weights is not None:
        whole, (v, digits) = weights[0], decimals
        of_one, of_other = int(whole[one].sum()), int(whole[other].sum())
        most = float((np.abs(v).max(axis=1).astype(np.float64) * whole) @ (one * of_other + other * of_one))
        if most < 2.0**LARGEST_BITS:
            factor = whole * (one * of_other - other.astype(np.int64) * of_one)
            per_person = Fraction(1, 10**digits * of_one * of_other)
            largest = _largest(limit, Fraction(repr(float(limit))), per_person)
            return Constraint(
                kind, None, v * factor[:, None], largest, per_person, largest, asked, name=name, compared=compared
            )
    total = math.fsum(weight)
    to_one, to_other = (total / math.fsum(weight[group]) for group in compared)
    amounts = values * (np.where(one, to_one, 0.0) - np.where(other, to_other, 0.0))[:, None]
    return Constraint(kind, None, *_whole(amounts, weight, limit), asked, name=name, compared=compared)


def cost_constraint(costs: np.ndarray, weight: np.ndarray, limit: float, n_actions: int, most: int) -> Constraint:
    """Questions cost at most ``limit`` per person; ``costs`` (n_features,), each row pays for at most ``most``."""
    # A price that not even the lightest row can pay forbids its question, so it is cut: others then keep more digits.
    priced = costs[costs > 0]
    with np.errstate(over="ignore"):
        enough = max(float(priced.min(initial=1.0)), 2.0 * limit * (math.fsum(weight) / float(weight.min())))
    cut = 10.0 ** math.ceil(math.log10(enough)) if enough < LARGEST_CUT else math.inf
    prices, price_of = np.unique(np.minimum(costs, cut), return_inverse=True)
    each = np.broadcast_to(prices, (len(weight), len(prices)))
    amounts, largest, per_person, loosest = _whole(each, weight, limit, most)
    scale = 1.0 / (float(per_person) * math.fsum(weight))
    questions = Questions(
        np.ascontiguousarray(amounts.T), price_of.reshape(-1).astype(np.int64), prices[price_of.reshape(-1)] * scale
    )
    nothing = np.zeros((len(weight), n_actions), dtype=np.int64)
    asked = (costs, weight, float(limit))
    return Constraint("expected_cost", None, nothing, largest, per_person, loosest, asked, questions)


def with_limit(constraint: Constraint, limit: int) -> Constraint:
    """The same with another limit."""
    return replace(constraint, limit=limit)


def _whole(
    costs: np.ndarray, weight: np.ndarray, limit: float, times: int = 1
) -> tuple[np.ndarray, int, Fraction, int]:
    """Whole amounts, the limit of their sum, what one of them is per person, and the loosest limit.

    A row's sum is of at most so many (``times``) of its amounts.
    """
    decimals, weights = _decimals(costs), _decimals(weight)
    if decimals is not None and weights is not None:
        most = np.abs(decimals[0]).max(axis=1).astype(np.float64) @ weights[0].astype(np.float64)
        if times * most < 2.0**LARGEST_BITS:
            per_person = Fraction(1, 10 ** decimals[1] * int(weights[0].sum()))
            amounts = decimals[0] * weights[0][:, None]
            largest = _largest(limit, Fraction(repr(float(limit))), per_person)
            return amounts, largest, per_person, largest
    with np.errstate(over="ignore"):
        products = costs * weight[:, None]
        total = times * float(np.abs(products).max(axis=1).sum())
    if not np.isfinite(total):
        raise InputError("Costs are too large to be added up; give them, and their limit, in a larger unit.")
    exponent = LARGEST_BITS - 1 - math.ceil(math.log2(total)) if total > 0 else 0
    scaled = np.ldexp(products, exponent)
    amounts = np.ceil(scaled + np.abs(scaled) * 2.0**-52).astype(np.int64)  # no less than the exact product
    people = math.fsum(weight)  # right to half a unit in the last place
    people = math.nextafter(people, 0.0 if limit >= 0 else math.inf)
    per_person = Fraction(1) / (Fraction(2) ** exponent * Fraction(people))
    largest = _largest(limit, Fraction(float(limit)), per_person)
    loosest = largest + times * len(weight) + 8  # one for every amount that was rounded, and for sums and products
    return amounts, largest, per_person, loosest


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
