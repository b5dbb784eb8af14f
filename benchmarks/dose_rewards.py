"""Rules for continuous treatments: who is to get a little more (Athey and Wager, table 3), and which dose whom.

    python benchmarks/dose_rewards.py                       # 20 draws a cell: ten minutes on one core
    python benchmarks/dose_rewards.py --cell "1, n=600" --runs 20
    python benchmarks/dose_rewards.py --table               # the tables from the draws that are kept

The design is that of table 3 of Athey and Wager (2021, "Policy learning with observational data"): six standard normal
covariates; doses `3 / (1 + 3 exp(-(x1 + x3 + e1))) + e2`, cut at -4.99 and 6.99, without `e1` in setup 2; a 0/1 outcome
of probability `Phi(dose - b)`, `b = 5 / (1 + 3 exp(-(x1 + x2))) - 1/2`.

Nudges: one unit more of the dose costs .2, and a tree of depth two says who gets a little more. The value is the mean
of `pi (phi(dose - b) - .2)` over 11,111 new people, as there. Their 40 draws a cell are published with R's policytree.

Doses: everybody gets one of the doses 0, 1, 2 and 3, each unit of which costs .15. Regret is against the best tree of
depth two for the true means of 20,000 people, on 20,000 new ones. The same tree is learnt from doses that are cut into
four treatments (`RewardEstimator`), and from the outcome model alone.

Every draw is kept in `results/dose_rewards.csv`; cells that are asked for again go on where they ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
from reporting import RESULTS, Simulation, with_error, write_tables
from scipy.stats import norm
from simulated import unwatched

from policytree import PolicyTree, RewardEstimator
from policytree.weighting import DoseRewards

SIZES = (600, 1_800, 5_400)
#: Mean and standard error of the published draws (`experiments` of grf-labs/policytree, `table_3_raw_output`).
PUBLISHED = {(1, 600): (0.014, 0.001), (1, 1_800): (0.024, 0.001), (1, 5_400): (0.028, 0.000),
             (2, 600): (0.018, 0.002), (2, 1_800): (0.033, 0.000), (2, 5_400): (0.035, 0.000)}  # fmt: skip
COST, DOSE_COST = 0.2, 0.15
GRID = np.arange(4.0)
OUTPUT = RESULTS / "dose_rewards.csv"
COLUMNS = ["cell", "draw", "value", "effect", "true_effect", "everybody", "regret", "regret_cut", "regret_model",
           "regret_one_dose", "bandwidth", "effective_rows"]  # fmt: skip


def people(n: int, setup: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Covariates (n, 6), doses and `b` (n,)."""
    X = rng.standard_normal((n, 6))
    more = rng.standard_normal(n) if setup == 1 else 0.0
    dose = 3 / (1 + 3 * np.exp(-(X[:, 0] + X[:, 2] + more))) + rng.standard_normal(n)
    return X, np.clip(dose, -4.99, 6.99), 5 / (1 + 3 * np.exp(-(X[:, 0] + X[:, 1]))) - 0.5


def utilities(b: np.ndarray) -> np.ndarray:
    """Expected outcome of every dose of the grid after its cost, (n, K)."""
    return norm.cdf(GRID - b[:, None]) - DOSE_COST * GRID


@cache
def best_value() -> tuple[float, np.ndarray, np.ndarray]:
    """The value of the best tree on new people, their covariates and utilities."""
    X, _, b = people(20_000, 1, np.random.default_rng(1))
    with unwatched():
        tree = PolicyTree(max_depth=2).fit(np.round(X, 2), utilities(b))
    new, _, b = people(20_000, 1, np.random.default_rng(2))
    return value_of(tree, new, utilities(b)), new, utilities(b)


def value_of(tree: PolicyTree, X: np.ndarray, table: np.ndarray) -> float:
    """Mean of what the tree brings rows whose true means are known."""
    return float(table[np.arange(len(X)), tree.tree_.action[tree.apply(X)]].mean())


def one_run(cell: tuple[int, int], draw: int) -> dict:
    """Both questions, one draw."""
    setup, n = cell
    rng = np.random.default_rng([draw, setup, n])
    X, dose, b = people(n, setup, rng)
    Y = (rng.random(n) < norm.cdf(dose - b)).astype(float)
    estimator = DoseRewards(GRID, random_state=draw)
    rewards = estimator.fit_predict(Y, dose, X=X)
    nearest = GRID[np.abs(dose[:, None] - GRID).argmin(axis=1)]
    cut = RewardEstimator(random_state=draw).fit_predict(Y, nearest, X=X)
    new, new_dose, new_b = people(11_111, setup, rng)
    slope = norm.pdf(new_dose - new_b)
    best, others, table = best_value()

    def tree(learnt: pd.DataFrame, **arguments) -> PolicyTree:
        with unwatched():
            return PolicyTree(max_depth=2).fit(X, learnt, **arguments)

    costs = {g: DOSE_COST * g for g in GRID}
    regrets = {
        name: best - value_of(tree(learnt, sample_treatment_costs=costs), others, table)
        for name, learnt in (("regret", rewards), ("regret_cut", cut), ("regret_model", estimator.regression_))
    }
    nudged = tree(estimator.nudge_rewards(COST)).predict(new) == "raise"
    return {
        "value": np.mean(nudged * (slope - COST)), "effect": estimator.nudges_.mean(), "true_effect":
        norm.pdf(dose - b).mean(), "everybody": np.mean(slope - COST), **regrets,
        "regret_one_dose": best - table.mean(axis=0).max(), "bandwidth": estimator.bandwidth_,
        "effective_rows": estimator.overlap_["effective_rows"].min(),
    }  # fmt: skip


def tables(draws: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Nudges beside the published values; doses beside other ways."""
    nudges, doses = [], []
    for name, part in draws.groupby("cell", sort=False):
        published = PUBLISHED[CELLS[name]]
        off = part["effect"] - part["true_effect"]
        nudges.append({
            "setup, people": name, "draws": len(part), "value": with_error(part["value"]),
            "published": f"{published[0]:.3f} ({published[1]:.3f})", "everybody more": with_error(part["everybody"]),
            "average effect: bias": with_error(off), "RMSE": f"{np.sqrt((off**2).mean()):.4f}",
        })  # fmt: skip
        doses.append({
            "setup, people": name, "draws": len(part), "regret": with_error(part["regret"]),
            "doses cut into treatments": with_error(part["regret_cut"]), "outcome model alone":
            with_error(part["regret_model"]), "best single dose": with_error(part["regret_one_dose"]),
            "cut less ours": with_error(part["regret_cut"] - part["regret"]),
            "bandwidth": f"{part['bandwidth'].mean():.2f}",
            "effective rows, rarest dose": f"{part['effective_rows'].mean():.0f}",
        })  # fmt: skip
    yield "Nudges (Monte-Carlo errors in brackets; the published ones from their raw output):\n\n", pd.DataFrame(nudges)
    yield "\nDoses:\n\n", pd.DataFrame(doses)


CELLS = {f"{setup}, n={n}": (setup, n) for setup in (1, 2) for n in SIZES}


def main(arguments: list[str] | None = None) -> None:
    """Draw what is lacking, and write both tables."""
    simulation = Simulation(CELLS, one_run, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT, runs=20).parse_args(arguments)
    draws = simulation.asked_for(asked)
    if draws is not None:
        write_tables(asked.output, "Rewards of doses", tables(draws))


if __name__ == "__main__":
    main()
