"""Gain by the learner of curves: bias, coverage and regret where confounding is curved, and elsewhere; truth known.

    python benchmarks/curved_confounding.py                    # what is lacking: half an hour on one core
    python benchmarks/curved_confounding.py --cell "sine and product, n=300" --runs 100
    python benchmarks/curved_confounding.py --table            # the table from the draws that are kept

The same draws are learnt from by the default rewards, with the learner of curves ("curves") and without it ("without").
Strong confounding: chances of treatment are logistic(1.5 c), outcomes 2.25 c plus half a unit of the effect, whose sign
depends on another covariate, plus noise; `c` is a curve with products, or one without. The other cells are those of
`default_rewards.py`. In the first cell two more ways were tried without the learner: "overlap" (stages and weights of
the mixture by errors weighted by (1 - e) / e^2, the variance that they cost), and "updated" (a targeted step with
the covariate 1 / e after the mixture). Regret: trees of depth two, judged by the true means of new rows.

Every draw is kept in `results/curved_confounding.csv`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from default_rewards import STUDIES, Study, Truth, _confounder, _logistic, _normal, _two
from reporting import RESULTS, Simulation, with_error, write_tables

from policytree import PolicyTree, RewardEstimator, policy_value
from policytree.weighting import stacking
from policytree.weighting.stacking import OutcomeStack

OUTPUT = RESULTS / "curved_confounding.csv"
FIRST = "sine and product, n=300"
WAYS = ("without", "curves", "overlap", "updated")
MEASURES = ("bias", "covered", "regret", "seconds")
COLUMNS = ["cell", "draw", *(f"{measure}_{way}" for way in WAYS for measure in MEASURES)]
CURVES: dict[str, Callable] = {
    "sine and product": _confounder,
    "step": lambda X: np.where(X[:, 0] > 0.3, 1.0, -0.6),
    "sine": lambda X: np.sin(2.0 * X[:, 0]),
    "maximum": lambda X: np.maximum(X[:, 0], X[:, 1]) - 0.5,
    "square": lambda X: 0.6 * (X[:, 0] ** 2 - 1.0),
    "exclusive or": lambda X: 0.8 * np.sign(X[:, 0] * X[:, 1]),
    "straight": lambda X: 0.8 * X[:, 0],
}


@dataclass(frozen=True)
class Cell:
    """A design and a number of rows."""

    study: Study
    n: int


def _strong(name: str, curve: Callable) -> Study:
    def means(X):
        base, effect = 2.25 * curve(X), 0.5 * np.sign(X[:, 3])
        return np.column_stack([base - effect / 2.0, base + effect / 2.0])

    return Study(name, (300,), _normal(6), lambda X: _two(_logistic(1.5 * curve(X))), means)


CELLS = {
    f"{study.name}, n={n}": Cell(study, n)
    for study in (*(_strong(name, curve) for name, curve in CURVES.items()), *STUDIES)
    for n in study.sizes
}


@cache
def truth_of(cell: Cell) -> Truth:
    """New rows of a cell and what is true of them."""
    return Truth.of(cell.study)


@contextmanager
def learnt(way: str) -> Iterator[None]:
    """Rewards in one of the ways."""
    most, mixed = stacking.MOST_CURVES, OutcomeStack.mixed
    changed = {"overlap": _by_overlap, "updated": _updated}.get(way)
    try:
        stacking.MOST_CURVES = most if way == "curves" else 0
        if changed is not None:
            OutcomeStack.mixed = changed(mixed)
        yield
    finally:
        stacking.MOST_CURVES, OutcomeStack.mixed = most, mixed


def _by_overlap(mixed: Callable) -> Callable:
    def of_overlap(stack, fits, Z, observed, propensity):
        e = propensity[np.arange(len(Z)), observed.arm]
        cost = (1.0 - e) / e**2
        weight = observed.weight * np.minimum(cost, np.quantile(cost, 0.99))
        predictions, models = mixed(stack, fits, Z, replace(observed, sample_weight=weight / weight.mean()), None)
        targeted = np.empty_like(predictions)
        for train, test in fits[0].folds.splits():
            step = stacking._targeting(predictions, propensity, observed, train)
            targeted[test] = step.adjusted(predictions[test])
        return targeted, models

    return of_overlap


def _updated(mixed: Callable) -> Callable:
    def with_step(stack, fits, Z, observed, propensity):
        predictions, models = mixed(stack, fits, Z, observed, propensity)
        updated = predictions.copy()
        for train, test in fits[0].folds.splits():
            for k in range(predictions.shape[1]):
                own = train[observed.arm[train] == k]
                clever = 1.0 / propensity[own, k]
                slope = clever @ (observed.y[own] - predictions[own, k]) / (clever @ clever)
                updated[test, k] += slope / propensity[test, k]
        return updated, models

    return with_step


def one_run(cell: Cell, draw: int) -> dict:
    """Bias, coverage, regret and seconds of every way on one draw."""
    X, T, Y = cell.study.draw(cell.n, np.random.default_rng([5200, cell.n, draw]))
    truth, found = truth_of(cell), {}
    propensity = cell.study.chances(X[:1])[0] if cell.study.trial else None
    for way in WAYS if cell is CELLS[FIRST] else WAYS[:2]:
        started = time.process_time()
        with learnt(way):
            rewards = RewardEstimator(random_state=draw).fit_predict(Y, T, X=X, propensity=propensity)
        seconds = time.process_time() - started
        effects = [policy_value(k, rewards, baseline=0) for k in range(1, rewards.shape[1])]
        true = truth.average[1:] - truth.average[0]
        values = {
            "bias": np.mean([e.value - t for e, t in zip(effects, true, strict=True)]),
            "covered": np.mean([e.lower <= t <= e.upper for e, t in zip(effects, true, strict=True)]),
            "regret": truth.regret(PolicyTree(max_depth=2).fit(X, rewards)),
            "seconds": seconds,
        }
        found |= {f"{measure}_{way}": value for measure, value in values.items()}
    return found


def tables(draws: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """A line for every cell and way."""
    lines = []
    for cell, part in draws.groupby("cell", sort=False):
        for way in WAYS:
            own = {measure: part[f"{measure}_{way}"] for measure in MEASURES}
            if own["bias"].isna().all():
                continue
            more = own["regret"] - part["regret_without"]
            lines.append({
                "cell": cell, "draws": len(part), "way": way, "bias": with_error(own["bias"], 3),
                "root mean square": f"{np.sqrt((own['bias'] ** 2).mean()):.3f}",
                "covered %": with_error(100.0 * own["covered"], 0), "regret": with_error(own["regret"], 3),
                "more regret, paired": "" if way == "without" else with_error(more, 4),
                "seconds": f"{own['seconds'].median():.2f}",
            })  # fmt: skip
    yield f"{(__doc__ or '').split(chr(10) * 2)[2]}\n\n", pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Draw what is lacking, and write the table."""
    simulation = Simulation(CELLS, one_run, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT, runs=25).parse_args(arguments)
    draws = simulation.asked_for(asked)
    if draws is not None:
        write_tables(asked.output, "Curved confounding", tables(draws))


if __name__ == "__main__":
    main()
