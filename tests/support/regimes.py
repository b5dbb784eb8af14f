"""Studies of two decisions, for tests: a small dirty trial of responders, and the two-stage design of polle."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.regimes import Stage


def smart(n: int = 240, seed: int = 0, *, lost: float = 0.0, known: bool = True) -> list[Stage]:
    """A sequential trial: a first line of two arms; who does not respond is given a second line of three, one rare.

    Gaps, a rare site, text labels, a column with one name at both stages, and people who respond and leave.
    """
    rng = np.random.default_rng(seed)
    severity = rng.normal(size=n)
    site = rng.choice(["north", "south", "island"], n, p=[0.6, 0.37, 0.03])
    first = rng.choice(["drug", "talk"], n)
    responds = severity * (first == "drug") + rng.normal(size=n) > 0.4
    later = severity + rng.normal(size=n)
    chances = {"more": 0.4, "stop": 0.15, "switch": 0.45}
    second = pd.Series(rng.choice([*chances], n, p=[*chances.values()]), name="second").where(~responds)
    gain = (second == "switch") * np.where(later > 0, 1.0, -1.0) + rng.normal(size=n)
    outcome = np.where(responds, 0.0, gain)
    if lost:
        outcome = np.where(~responds & (rng.random(n) < lost), np.nan, outcome)
    baseline = pd.DataFrame({"severity": severity, "site": site})
    baseline.loc[::17, "severity"] = np.nan
    return [
        Stage(first, X=baseline, Y=responds.astype(float), propensity=0.5 if known else None),
        Stage(
            second, X=pd.DataFrame({"severity": later}), Y=outcome, propensity=chances if known else None,
            costs={"switch": 0.1}, name="second line",
        ),
    ]  # fmt: skip


def two_stages(n: int, seed: int, *, effect: bool = True) -> list[Stage]:
    """The two-stage design of polle; without effect, neither decision matters.

    The value of the best regime is 1.4482, that of always treating .999 (4,000,000 draws, error .0008).
    """
    rng = np.random.default_rng(seed)
    base, l1, l2, l3 = rng.normal(size=(4, n))
    c1 = l1 + rng.normal(size=n)
    a1 = (rng.random(n) < 1 / (1 + np.exp(-c1))).astype(int)
    c2 = 0.5 * l1 + a1 * effect + rng.normal(size=n)
    a2 = (rng.random(n) < 1 / (1 + np.exp(-c2))).astype(int)
    first = pd.DataFrame({"B": base, "C1": c1, "L1": l1})
    second = pd.DataFrame({"C2": c2, "L2": l2})
    return [
        Stage(a1, X=first, Y=l1 + a1 * c1 * effect + l2),
        Stage(a2, X=second, Y=a2 * c2 * effect + l3),
    ]


def true_value(regime, n: int = 100_000, seed: int = 99, *, effect: bool = True) -> float:
    """Mean outcome of new people of :func:`two_stages` who are treated by a regime."""
    rng = np.random.default_rng(seed)
    base, l1, l2, l3 = rng.normal(size=(4, n))
    c1 = l1 + rng.normal(size=n)
    first = pd.DataFrame({"B": base, "C1": c1, "L1": l1})
    a1 = regime.predict([Stage(X=first)])
    c2 = 0.5 * l1 + a1 * effect + rng.normal(size=n)
    y1 = l1 + a1 * c1 * effect + l2
    a2 = regime.predict([Stage(a1, X=first, Y=y1), Stage(X=pd.DataFrame({"C2": c2, "L2": l2}))])
    return float((y1 + a2 * c2 * effect + l3).mean())
