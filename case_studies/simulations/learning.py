"""One simulated study: nuisance models, rewards, and every rule learnt from them, with its regret."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import t
from simulations.designs import NEW_ROWS, TRUTH_ROWS, Design, Truth
from simulations.rules import Split, arms_of, columns_of, grow
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import RewardEstimator

COLORS = {"exact": "#0072B2", "hybrid": "#009E73", "greedy": "#D55E00", "plug-in tree": "#CC79A7",
          "plug-in rule": "#999999"}  # fmt: skip
STYLES = {0: "-", 1: ":", 2: "-", 3: "--"}

TREES = 50  # of a forest
ROWS_OF_PLUG_IN = 3_000  # new rows that judge the plug-in rule without a tree: forests are slow to ask
LOOKS = {1: ("exact",), 2: ("exact", "greedy"), 3: ("exact", "hybrid", "greedy")}  # others are the same trees
AHEAD = {"greedy": 1, "hybrid": 2}


@dataclass(frozen=True)
class Plan:
    """Settings of one run.

    Attributes
    ----------
    design : Design
    n : int
        Rows that are learnt from.
    depths : tuple of int
    default : bool
        Whether the library's default learners are run too (exact trees of depth two).
    learner : {"forests", "linear"}
        Outcome models; with linear ones, which are fast, no plug-in rule is learnt.
    costly_runs : int, optional
        How many runs, from the first on, also do what takes longest: trees of depth three and the default learners.
        Without it all do.
    """

    design: Design
    n: int
    depths: tuple[int, ...] = (1, 2, 3)
    default: bool = False
    learner: str = "forests"
    costly_runs: int | None = None

    def of_run(self, run: int) -> Plan:
        """Return the part of the plan for one run."""
        if self.costly_runs is None or run < self.costly_runs:
            return self
        return replace(self, depths=tuple(depth for depth in self.depths if depth < 3), default=False)


def linear(seed: int) -> RewardEstimator:
    """Doubly robust rewards by linear outcome models: right in a trial, whatever the truth."""
    return RewardEstimator(LinearRegression(), LogisticRegression(), random_state=seed)


def forests(seed: int) -> RewardEstimator:
    """Doubly robust rewards by random forests, and logistic propensities where they are not known."""
    forest = RandomForestRegressor(TREES, min_samples_leaf=5, max_features=0.67, random_state=seed)
    return RewardEstimator(forest, LogisticRegression(), random_state=seed)


LEARNERS = {"forests": forests, "linear": linear}


@cache
def best_tree(design: Design) -> Split | int:
    """The best tree of the design's depth: exact, on the true means of many rows."""
    known = design.covariates(TRUTH_ROWS, np.random.default_rng(0))
    return grow(known, design.means(known), design.best_depth, design.best_depth)


def truth_of(design: Design, rng: np.random.Generator, n_new: int = NEW_ROWS) -> Truth:
    """New rows, their true means, and what the best tree would give them."""
    new = design.covariates(n_new, rng)
    return Truth(design.table(new), design.means(new), arms_of(best_tree(design), new))


def regrets(plan: Plan, seed: int) -> list[dict]:
    """Learn from one draw; regret of every rule on new rows.

    Parameters
    ----------
    plan : Plan
    seed : int
        Of the draw, the folds and the forests.

    Returns
    -------
    list of dict
        design, n, run, learner, rule, depth (0: no tree), regret, asks about (columns).
    """
    rng = np.random.default_rng([seed, plan.n])
    data, truth = plan.design.draw(plan.n, rng), truth_of(plan.design, rng)
    learnt = LEARNERS[plan.learner](seed).fit(data.Y, data.T, X=data.X, propensity=data.propensity)
    X, new = data.X.to_numpy(), truth.X.to_numpy()
    rows = []

    def judged(rule: str, depth: int, arms: np.ndarray, columns=(), learner: str = plan.learner) -> None:
        asked = " ".join(f"x{j + 1}" for j in sorted(columns))
        rows.append({"design": plan.design.name, "n": plan.n, "run": seed, "learner": learner, "rule": rule,
                     "depth": depth, "regret": truth.regret(arms), "asks about": asked})  # fmt: skip

    for depth in plan.depths:
        for name in LOOKS[depth]:
            tree = grow(X, learnt.rewards_.to_numpy(), depth, AHEAD.get(name, depth))
            judged(name, depth, arms_of(tree, new), columns_of(tree))
        if plan.learner == "forests":
            tree = grow(X, learnt.regression_.to_numpy(), depth, depth)
            judged("plug-in tree", depth, arms_of(tree, new), columns_of(tree))
    if plan.learner == "forests":
        predicted = learnt.predict_outcomes(X=truth.X.iloc[:ROWS_OF_PLUG_IN]).to_numpy()
        judged("plug-in rule", 0, predicted.argmax(axis=1))
    if plan.default:
        rewards = RewardEstimator(random_state=seed).fit_predict(data.Y, data.T, X=data.X, propensity=data.propensity)
        tree = grow(X, rewards.to_numpy(), 2, 2)
        judged("exact", 2, arms_of(tree, new), columns_of(tree), "default")
    return rows


def run_all(study, plans: list[Plan], runs: int) -> pd.DataFrame:
    """Every plan so many times, on all cores; one row per run and rule."""
    rows: list[dict] = []
    for plan in plans:
        study.step(f"{plan.design.name}, n = {plan.n:,}: {runs} runs")
        rows += [row for part in Parallel(n_jobs=-1)(delayed(regrets)(plan.of_run(s), s) for s in range(runs))
                 for row in part]  # fmt: skip
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean regret with its Monte-Carlo standard error and the median, by design, n, learner, rule and depth."""
    groups = frame.groupby(["design", "n", "learner", "rule", "depth"], sort=False)["regret"]
    table = groups.agg(runs="size", mean="mean", error="sem", median="median")
    return table.rename(columns={"error": "MC error"}).reset_index()


def half_width(error, runs):
    """Half of a 95% interval of a mean over runs: by Student's t, since sixteen runs tell little of their spread."""
    return t.ppf(0.975, np.asarray(runs) - 1) * error


def paired(frame: pd.DataFrame, first: tuple[str, int], second: tuple[str, int]) -> pd.DataFrame:
    """Regret of the second rule less that of the first on the same draws, with its Monte-Carlo error."""
    wide = frame[frame["learner"] != "default"].pivot_table(
        index=["design", "n", "run"], columns=["rule", "depth"], values="regret", sort=False
    )
    if first not in wide or second not in wide:
        return pd.DataFrame(columns=["design", "n", "difference", "MC error"])
    gap = (wide[second] - wide[first]).dropna().rename("gap").reset_index()
    table = gap.groupby(["design", "n"], sort=False)["gap"].agg(["mean", "sem"]).reset_index()
    return table.set_axis(["design", "n", "difference", "MC error"], axis=1)


def draw_regret(study, table: pd.DataFrame, name: str, title: str) -> None:
    """Mean regret with its Monte-Carlo interval, a panel per design."""
    designs = list(dict.fromkeys(table["design"]))
    figure, axes = plt.subplots(
        1, len(designs), figsize=(2.2 + 3.4 * len(designs), 3.8), layout="constrained", squeeze=False, sharey=True
    )
    for ax, design in zip(axes[0], designs, strict=True):
        here = table[table["design"] == design]
        lines = here.groupby(["rule", "depth"], sort=False)
        aside = (
            0.012 * np.ptp(table["n"]) * (np.arange(len(lines)) - (len(lines) - 1) / 2)
        )  # so that none hides another
        for k, ((rule, depth), line) in enumerate(lines):
            label = f"{rule}, depth {depth}" if depth else rule
            error = half_width(line["MC error"], line["runs"])
            ax.errorbar(line["n"] + aside[k], line["mean"], yerr=error, label=label, color=COLORS[rule],
                        linestyle=STYLES[depth], marker="o", markersize=3, capsize=2)  # fmt: skip
        ax.axhline(0.0, color="black", linewidth=0.7)
        ax.set(title=design if len(designs) > 1 else "", xlabel="rows", xticks=sorted(set(here["n"])))
    axes[0, 0].set_ylabel("mean regret")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    study.figure(figure, name)
