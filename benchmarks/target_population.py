"""Another population: bias and coverage where the target differs from the study; simulated, truth known.

    python benchmarks/target_population.py --list
    python benchmarks/target_population.py --cell "held out: effects" --runs 60     # some twenty minutes on one core
    python benchmarks/target_population.py --table                                  # from what was kept so far

A study of 1,000 people and 1,000 people of the target, told apart by a logistic function of two covariates on which
effects depend; treatment in the study depends on covariates as well. Cells named "effects" judge the average effect in
the target by `policy_value`, with some models wrong: a constant as the outcome model, the same odds for everybody,
the same chances of treatment for everybody. Those named "held out" judge stumps by `cross_val_policy_value`, those
named "default" use the default models, all others linear and logistic ones. Every run is kept in
`benchmarks/results/target_population.csv`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from reporting import RESULTS, Simulation, with_error, write_tables
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value, policy_value
from policytree.weighting.study_data import by_columns

N = 1_000
P = 4
POPULATION = 200_000  # people of the target, from whom the truth is computed
ROUNDING = 1e-6  # of means that are added up in another order


def people(n: int, of_study: bool, rng: np.random.Generator, shift: float = 1.0) -> np.ndarray:
    """Covariates of n people of the study, or of the target."""
    X = rng.standard_normal((4 * n, P))
    chance = 1 / (1 + np.exp(shift * (0.8 * X[:, 0] - 0.6 * X[:, 1])))
    return X[(rng.uniform(size=4 * n) < chance) == of_study][:n]


def effect(X: np.ndarray) -> np.ndarray:
    """Return the treatment's effect on the outcome."""
    return 0.8 * X[:, 0] - 0.4 * X[:, 1]


@dataclass(frozen=True)
class Cell:
    """Settings of a simulation."""

    wrong: tuple[str, ...] = ()
    size: float = 1.0
    held_out: bool = False
    default: bool = False
    shift: float = 1.0

    def models(self) -> dict:
        """Arguments of `RewardEstimator`."""
        wrong = {name: model for part in self.wrong for name, model in WRONG[part].items()}
        return ({} if self.default else LINEAR) | wrong


LINEAR = {
    "model_regression": LinearRegression(), "model_propensity": LogisticRegression(),
    "model_study": LogisticRegression(),
}  # fmt: skip
WRONG = {
    "outcome": {"model_regression": DummyRegressor()},
    "odds": {"model_study": DummyClassifier()},
    "propensity": {"model_propensity": DummyClassifier()},
}
CELLS = {
    f"effects: {' and '.join(wrong) or 'nothing'} wrong": Cell(wrong)
    for wrong in ((), ("outcome",), ("odds",), ("odds", "propensity"), ("outcome", "odds"))
}
CELLS |= {"no effect": Cell(size=0.0), "default": Cell(default=True), "default, no effect": Cell((), 0.0, default=True)}
CELLS |= {
    "half the shift": Cell(shift=0.5), "half the shift, no effect": Cell(size=0.0, shift=0.5),
    "half the shift, default": Cell(default=True, shift=0.5),
}  # fmt: skip
CELLS |= {"held out: effects": Cell(held_out=True), "held out: no effect": Cell(size=0.0, held_out=True)}


def draw_study(cell: Cell, draw: int) -> dict:
    """Arguments of `RewardEstimator.fit`."""
    rng = np.random.default_rng([1, draw])
    X, target = people(N, True, rng, cell.shift), people(N, False, rng, cell.shift)
    T = (rng.uniform(size=N) < 1 / (1 + np.exp(-0.6 * X[:, 1]))).astype(int)
    Y = X[:, 0] + 0.5 * X[:, 2] + cell.size * effect(X) * T + rng.standard_normal(N)
    return {"Y": Y, "T": T, "X": X, "target_X": target}


@lru_cache(maxsize=2)
def everybody(shift: float) -> np.ndarray:
    """Covariates of all people of the target."""
    return people(POPULATION, False, np.random.default_rng(0), shift)


def run(cell: Cell, draw: int) -> dict:
    """One study: an estimate, its standard error, and the truth."""
    population = everybody(cell.shift)
    data, gain = draw_study(cell, draw), cell.size * effect(population)
    start = time.process_time()
    if cell.held_out:
        return held_out(cell, data, gain, draw, population) | {"seconds": time.process_time() - start}
    model = by_columns(RewardEstimator(random_state=draw, **cell.models()).fit, **data)
    found = policy_value(1, model.rewards_, baseline=0, population=model.population_)
    truth = float(gain.mean())
    own = None
    if draw < 50:
        own = RewardEstimator(random_state=draw, **cell.models()).fit(data["Y"], data["T"], X=data["X"]).rewards_
    return {
        "estimate": found.value, "truth": truth, "error": found.standard_error,
        "covered": float(found.lower <= truth <= found.upper), "seconds": time.process_time() - start,
        "effect in the study": np.nan if own is None else float((own[1] - own[0]).mean()),
    }  # fmt: skip


def held_out(cell: Cell, data: dict, gain: np.ndarray, draw: int, population: np.ndarray) -> dict:
    """Whether held-out intervals hold the mean true value of the judged rules in the target."""
    rewards = RewardEstimator(**cell.models())
    tree = DRPolicyTree(rewards=rewards, max_depth=1, min_samples_leaf=100, random_state=draw)
    found, truth = by_columns(cross_val_policy_value, tree, **data, random_state=draw), []
    base = population[:, 0] + 0.5 * population[:, 2]
    for repetition in found.repetitions:
        each = [(base + gain * (tree.predict(population) == 1)).mean() for tree in repetition.trees]
        truth.append(np.average(each, weights=np.bincount(repetition.folds.fold)))
    value, arms = float(np.mean(truth)), [base.mean(), (base + gain).mean()]

    def holds(estimate, target) -> bool:
        return estimate.lower - ROUNDING <= target <= estimate.upper + ROUNDING

    policy = found.estimates["policy tree"]
    return {
        "estimate": policy.value, "truth": value, "error": policy.standard_error,
        "covered": float(holds(policy, value)),
        "difference covered": np.mean([holds(found.differences[f"always {k}"], value - arms[k]) for k in (0, 1)]),
        "tree recommended": float(found.verdict.use_tree),
    }  # fmt: skip


COLUMNS = ["cell", "draw", "estimate", "truth", "error", "covered", "seconds", "effect in the study",
           "difference covered", "tree recommended"]  # fmt: skip
WHAT = """\
`python benchmarks/target_population.py`: 1,000 people of a study and 1,000 of a target whose covariates are distributed
otherwise (a logistic function of two, on which effects depend). "effects": the average effect in the target, with some
of the models wrong, and its 95 % interval; it is unbiased unless outcome models and odds (or outcome models and
propensities) are wrong together. "held out": the value in the target of stumps, against the mean true value of the
judged rules; `difference covered`: its differences to both arms; `tree recommended`: the verdict. "default": by the
default models; all others by linear and logistic ones. `effect in the study`: what is found without a target (50 runs).
Monte-Carlo errors in brackets; processor seconds (median).

The shift is strong: by the true odds, 1,000 rows weighted to the target are as good as 430, with "half the shift" (half
of the logarithmic odds) as 790. Cells share their draws, so that those of few runs have much of their noise in common.
The first 200 draws happen to be unlucky: there, by the linear models too, intervals cover 91.5 % (bias .017), and by
800 draws 94.5 % (.004). Draws 200 to 399 of "default" and 200 to 299 of "held out: effects" are by intervals whose
degrees of freedom are Satterthwaite's and cover 95.5 %, 96.0 % (no effect) and 96.0 %; by as many degrees as rows,
which is what all other rows of the table have, the same draws cover 95.0 % each.
Standard errors are right where all models are; with wrong odds they are too small, though the value is nearly unbiased.
With a constant in place of the outcome models a twentieth of the difference between study and target remains.

"""


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Every cell's means, with Monte-Carlo errors in brackets."""
    rows = []
    for name, part in found.groupby("cell", sort=False):
        off = part["estimate"] - part["truth"]
        row = {"cell": name, "runs": len(part), "truth": f"{part['truth'].mean():.4f}", "bias": with_error(off),
               "spread": f"{off.std():.4f}", "mean error": f"{part['error'].mean():.4f}",
               "covered": f"{part['covered'].mean():.1%}"}  # fmt: skip
        for column in COLUMNS[7:]:
            values = part[column].dropna()
            row[column] = with_error(values) if len(values) else ""
        rows.append(row | {"seconds": f"{part['seconds'].median():.2f}"})
    return pd.DataFrame(rows)


SIMULATION = Simulation(CELLS, run, COLUMNS)


def main() -> None:
    """Run what is asked for, and keep it."""
    asked = SIMULATION.parser(__doc__, RESULTS / "target_population.csv").parse_args()
    found = SIMULATION.asked_for(asked)
    if found is not None:
        write_tables(asked.output, "Another population", [(WHAT, table(found))])


if __name__ == "__main__":
    main()
