"""Claims about the best of several arms, none of which is the control, and how many of them are false.

    python benchmarks/best_of_arms.py                # 2,000 runs a cell: some two minutes of one core

Mean rewards of arms and of a learnt rule are drawn from their large-sample law: arms are independent, with a standard
error of one each, and the rule gives every arm to an equal share of the people, so that it is worth the mean of the
arms. Each run is judged by `rank_treatments` at a level of 95 %; a verdict makes one of three kinds of claim.

"false": the claim that is made is false, of which 5 % are allowed. "best": an arm is called the best that is not better
than every other one; "rule": the rule is called better than all arms; "than": the arm of the best estimate is called
better than one that is as good. "right": the best arm is named as such; "worst seen": the best estimate is shown better
than the worst arm. In brackets: Monte-Carlo errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from reporting import machine, markdown_head, markdown_table

from policytree.evaluation.inference import step_down

RESULTS = Path(__file__).parent / "results" / "best_of_arms.md"
BEST, HARM = 4.0, -4.0  # standard errors of an arm's mean

CELLS: dict[str, tuple[float, ...]] = {}
for K in (2, 3, 5):
    CELLS |= {
        f"{K} arms, all tie": (0.0,) * K,
        f"{K} arms, one best": (*(0.0,) * (K - 1), BEST),
        f"{K} arms, one harmful": (*(0.0,) * (K - 1), HARM),
    }
CELLS |= {
    "5 arms, two tie far above": (-20.0, -20.0, -20.0, 0.0, 0.0),
    "5 arms, a ladder": (0.0, 1.0, 2.0, 3.0, 4.0),
}


@dataclass(frozen=True)
class Difference:
    """Estimate with the attributes that a test needs."""

    value: float
    standard_error: float
    level: float = 0.95
    degrees_of_freedom: int = 10**6


class OneLaw(step_down._Law):
    """The law of a cell, which all its runs share: draws are put together once."""

    def __init__(self, *of):
        super().__init__(*of)
        self._scores: dict[tuple[str, str], tuple[np.ndarray, float]] = {}

    def scores(self, a: str, b: str) -> tuple[np.ndarray, float]:
        """As of the class above, kept."""
        if (a, b) not in self._scores:
            self._scores[a, b] = super().scores(a, b)
        return self._scores[a, b]


@contextmanager
def one_law():
    """Within it, whoever asks for a law gets the first one."""
    before, made = step_down._Law, []

    def law(*of):
        if not made:
            made.append(OneLaw(*of))
        return made[0]

    step_down._Law = law
    try:
        yield
    finally:
        step_down._Law = before


def covariance(K: int) -> np.ndarray:
    """Of the rule (first) and the arms: the rule's people are each arm's with probability 1 / K."""
    out = np.eye(K + 1)
    out[0, 1:] = out[1:, 0] = 1 / K
    return out


def ranked(values: np.ndarray, errors: np.ndarray):
    """The ranking of one run: values (1 + K), standard errors of all differences (1 + K, 1 + K)."""
    names = ["rule", *(f"arm {k}" for k in range(len(values) - 1))]
    at = {name: k for k, name in enumerate(names)}

    def difference(a: str, b: str) -> Difference:
        return Difference(float(values[at[a]] - values[at[b]]), float(errors[at[a], at[b]]))

    return step_down.rank_treatments("rule", names[1:], difference, "maximize")


def judged(true: Sequence[float], values: np.ndarray, errors: np.ndarray) -> dict[str, bool]:
    """Return the claim that a verdict would make, and whether it is false."""
    found = ranked(values, errors)
    of = {f"arm {k}": value for k, value in enumerate(true)}
    best = max(true)
    false_rule = found.tree_best and np.mean(true) <= best
    arm = found.is_best and not found.tree_best
    false_best = arm and sum(value >= of[found.best] for value in true) > 1
    than = not found.tree_best and not found.is_best
    false_than = than and any(of[name] >= of[found.best] for name in found.better_than)
    worst = min(of, key=lambda name: of[name])
    return {
        "false": bool(false_rule or false_best or false_than), "best": false_best, "rule": bool(false_rule),
        "than": false_than, "right": arm and not false_best,
        "worst seen": min(true) < max(true) and (arm or worst in found.better_than) and found.best != worst,
    }  # fmt: skip


def cell(true: Sequence[float], runs: int, seed: int = 0) -> dict[str, float]:
    """Shares over the runs."""
    rng, law = np.random.default_rng([seed, len(true)]), covariance(len(true))
    means = np.array([np.mean(true), *true])
    own = np.diag(law)
    errors = np.sqrt(np.maximum(own[:, None] + own - 2 * law, 0.0))
    drawn = means + rng.multivariate_normal(np.zeros(len(means)), law, size=runs)
    with one_law():
        found = [judged(true, values, errors) for values in drawn]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def main(arguments: list[str] | None = None) -> None:
    """Run all cells and keep the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    lines, names = [], ["cell", "runs"]
    for name, true in CELLS.items():
        found = cell(true, options.runs)
        names = ["cell", "runs", *found]
        shares = (f"{100 * p:.1f} ({100 * np.sqrt(p * (1 - p) / options.runs):.1f})" for p in found.values())
        lines.append([name, str(options.runs), *shares])
        print(" | ".join(lines[-1]), flush=True)
    about = (__doc__ or "").split("\n\n", 2)[-1].strip()
    head = markdown_head("Claims about arms without a control (percent)", machine())
    options.output.write_text(f"{head}{about}\n\n{markdown_table(names, lines, set(names[1:]))}", encoding="utf-8")


if __name__ == "__main__":
    main()
