"""Values of rules at other prices of treatments: moments from which a page computes them, and break-even prices.

At prices ``p`` a rule that gives arm ``k`` to a share ``s_k`` of people is worth ``v - p s``: linear in ``p``, and its
variance is quadratic in it. Means, shares and covariances of the held-out estimates therefore say all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policytree.evaluation.formatting import bounds_text, decimals
from policytree.evaluation.policy_value.rule_names import POLICY, STATUS_QUO, fixed_rules
from policytree.evaluation.policy_value.tables import PolicyValueTable, Repetition
from policytree.report.content import Prices, Section, Table, Words
from policytree.report.material import Material

FARTHEST = 4  # of twice the largest difference between rules: prices beyond are in the table alone
LEFT_OUT = "Where no price is named, none above zero makes the two worth the same."


def prices_section(material: Material) -> Section | None:
    """Values at other prices; None where people are others than those of the study, or may refuse offers."""
    values = material.only(PolicyValueTable)
    if values is None or values.observed.study is not None or values.observed.instrument is not None:
        return None
    data = price_data(values)
    learnt = material.study.about.costs or "no price"
    data |= {"unit": material.study.about.unit, "learnt": learnt}
    words = (
        "A price is what a person's treatment costs, in the outcome's unit, beside what the values above are already "
        f"net of ({learnt}). Rules stay as they were learnt; at another price a search may find a better tree."
    )
    table = _break_even(data)
    data["marks"] = [[row["treatment"], row["rule"], row["price"]] for row in table.numbers]
    size = 2 * float(np.ptp([e.value for e in values.estimates.values()])) or 1.0
    data["most"] = round_above(max([size, *(price for *_, price in data["marks"] if price <= FARTHEST * size)]))
    blocks = (Words(words), Prices(data), table, Words(LEFT_OUT, "note"))
    return Section("prices", "Prices of treatments", blocks)


def price_data(values: PolicyValueTable) -> dict[str, Any]:
    """Moments of every rule of the table, and of the rule to use (else the tree) less each other.

    Returns
    -------
    dict
        ``arms``; ``sign``: of a price in the value; ``own``: the rule to use; ``rules`` and ``differences``: by rule
        "mean" (K + 1,) and "covariance" (K + 1, K + 1) of its value and its share of every arm, and "t", the quantile
        of the interval.
    """
    arms = [str(label) for label in values.observed.treatments]
    fixed, kept = fixed_rules(values.observed), [rule for rule in values.estimates if _known(values, rule)]
    columns = {rule: [_columns(values, r, rule) for r in values.repetitions] for rule in kept}
    own = values.verdict.rule if values.verdict.gain is not None and values.verdict.rule in kept else POLICY
    differences = {
        rule: [mine - theirs for mine, theirs in zip(columns[own], columns[rule], strict=True)]
        for rule in kept
        if rule != own
    }
    return {
        "arms": arms,
        "own": own,
        "sign": -1.0 if values.direction == "maximize" else 1.0,
        "digits": values.digits,
        "level": values.estimates[POLICY].level,
        "rules": {rule: _moments(values, found, learnt=rule not in fixed) for rule, found in columns.items()},
        "differences": {
            rule: _moments(values, found, learnt=not {rule, own} <= {*fixed}) for rule, found in differences.items()
        },
    }


def round_above(size: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... (or .5, .2, ...) that is not below a number above zero."""
    power = 10.0 ** np.floor(np.log10(size))
    return float(power * next(step for step in (1, 2, 5, 10) if step * power >= size))


def _known(values: PolicyValueTable, rule: str) -> bool:
    """Whether it is known whom a rule gives what."""
    return rule in (POLICY, STATUS_QUO, *(f"always {label}" for label in values.observed.treatments))


def _columns(values: PolicyValueTable, repetition: Repetition, rule: str) -> np.ndarray:
    """Return the scores of a rule on every judged row, and the arm that it gives, (n_judged, 1 + K)."""
    seen, n = values.observed, len(values.judged)
    if rule == POLICY:
        given = np.asarray(repetition.policy)[:, None] == np.asarray(seen.treatments)[None, :]
    elif rule == STATUS_QUO:
        given = seen.arm[values.judged][:, None] == np.arange(seen.n_arms)[None, :]
    else:
        given = np.tile([rule == f"always {label}" for label in seen.treatments], (n, 1))
    return np.column_stack([repetition.scores[rule], given.astype(float)])


def _moments(values: PolicyValueTable, columns: Sequence[np.ndarray], *, learnt: bool = True) -> dict[str, Any]:
    """Means and covariances of the estimates of columns; the variance of an estimate is a quadratic form in them."""
    level, size = values.estimates[POLICY].level, columns[0].shape[1]

    def estimate(weight: np.ndarray):
        return values.validation.estimate([c @ weight for c in columns], values.observed, level, learnt=learnt)

    unit, varies = np.eye(size), [j for j in range(size) if any(np.ptp(c[:, j]) > 0 for c in columns)]
    own = {j: estimate(unit[j]) for j in varies}
    mean, covariance = np.mean([c[0] for c in columns], axis=0), np.zeros((size, size))
    for at, i in enumerate(varies):
        mean[i], covariance[i, i] = own[i].value, own[i].standard_error ** 2
        for j in varies[:at]:
            both = estimate(unit[i] + unit[j]).standard_error ** 2
            covariance[i, j] = covariance[j, i] = (both - covariance[i, i] - covariance[j, j]) / 2
    if not own:
        return {"mean": mean.tolist(), "covariance": covariance.tolist(), "t": 0.0}
    widest = max(own.values(), key=lambda e: e.standard_error)
    t = (widest.upper - widest.value) / widest.standard_error if widest.standard_error > 0 else 0.0
    return {"mean": mean.tolist(), "covariance": covariance.tolist(), "t": float(t)}


def break_even(moments: dict[str, Any], arm: int, sign: float) -> tuple[float, float, float] | None:
    """The price of an arm at which a difference is zero, all other prices being zero, with Fieller's interval.

    Returns
    -------
    tuple of (price, lower, upper) or None
        None where the price makes no difference; ends are infinite where the difference of shares may be zero.
    """
    mean, covariance, t = moments["mean"], np.array(moments["covariance"]), moments["t"]
    value, slope = mean[0], sign * mean[1 + arm]
    if slope == 0:
        return None
    a = slope**2 - t**2 * covariance[1 + arm, 1 + arm]
    b = 2 * (value * slope - t**2 * sign * covariance[0, 1 + arm])
    c = value**2 - t**2 * covariance[0, 0]
    root = b**2 - 4 * a * c
    if a <= 0 or root < 0:
        return -value / slope, -np.inf, np.inf
    low, high = sorted(((-b - np.sqrt(root)) / (2 * a), (-b + np.sqrt(root)) / (2 * a)))
    return -value / slope, float(low), float(high)


def _break_even(data: dict[str, Any]) -> Table:
    """The price of every treatment at which the rule to use is worth as much as another one."""
    cells, numbers = [], []
    for k, arm in enumerate(data["arms"]):
        for rule, moments in data["differences"].items():
            found = break_even(moments, k, data["sign"])
            if found is None or found[0] <= 0:
                continue
            price, low, high = found
            numbers.append({"treatment": arm, "rule": rule, "price": price, "lower": low, "upper": high})
            finite = np.isfinite([low, high]).all()
            digits = decimals([(high - low) / 4]) if finite else data["digits"]
            interval = bounds_text(max(low, 0.0), high, digits) if finite else "no limits"
            cells.append((arm, rule, f"{price:,.{digits}f}", interval))
    level = f"{100 * data['level']:g}% interval"
    title = f"Break-even prices (others zero), at which {data['own']} is worth as much as another rule"
    return Table(("price of", "compared with", "break-even price", level), tuple(cells), title, numbers=tuple(numbers))
