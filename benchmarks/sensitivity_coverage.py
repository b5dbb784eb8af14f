"""Whether bounds for hidden confounding hold the truth when the confounder is as strong as they allow, and only then.

    python benchmarks/sensitivity_coverage.py                # all cells, 300 runs each: half an hour on a quiet core
    python benchmarks/sensitivity_coverage.py --cell "no effect" --runs 100

Every run draws a study with a hidden confounder of known strength: given covariates it moves the odds of treatment by
exactly Gamma, either way, and marks the people with the highest outcomes, which is the worst that the marginal
sensitivity model allows. Nuisances (linear) are cross-fitted. Then intervals of a rule's advantage over treating nobody
and of its value are compared with the truth: at the true Gamma, half-way to 1, and at 1; and omitted-variable bounds
with the confounder's true strength, and without any. See `benchmarks/README.md` for the columns.
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reporting import RESULTS, machine, markdown_head, markdown_table
from scipy.stats import norm
from simulated import LinearLearner, unwatched
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import PolicyTree, RewardEstimator, cross_val_policy_value
from policytree.evaluation import marginal_sensitivity, omitted_variable_bounds
from policytree.exceptions import InputError

POPULATION = 200_000
SMALLER_POPULATION = 20_000  # where 25 trees a run are applied to it
N_BOOTSTRAP = 300
SHOWN = ("sharp", "simple", "value", "sharp bounds", "half-way", "gamma 1", "false claims", "claims at 1", "omitted",
         "omitted 0", "once")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A kind of study."""

    name: str
    n: int = 1_000
    gamma: float = 2.0
    effects: bool = True
    learnt: bool = False  # the rule is a tree, learnt from another study of the same size
    binary: bool = False
    cluster_size: int = 1
    weighted: bool = False
    skewed: bool = False
    cross_fitted: bool = False  # trees learnt from the study itself: the table of cross_val_policy_value is judged

    def draw(self, rng, n: int) -> dict[str, Any]:
        """A study, and of every row what is hidden."""
        X = rng.standard_normal((n, 3))
        e = 1 / (1 + np.exp(-(0.5 * X[:, 0] + 0.5 * X[:, 1])))
        odds = e / (1 - e)
        high, low = self.gamma * odds / (1 + self.gamma * odds), odds / (self.gamma + odds)
        share = (e - low) / (high - low) if self.gamma > 1 else np.full(n, 0.5)  # whose odds are higher
        noise = rng.standard_normal(n)
        if self.cluster_size > 1:
            noise += np.repeat(rng.standard_normal(-(-n // self.cluster_size)), self.cluster_size)[:n]
            noise /= np.sqrt(2)
        marked = norm.cdf(noise) > 1 - share
        hidden_e = np.where(marked, high, low)
        T = (rng.random(n) < hidden_e).astype(int)
        shift = (0.4 * X[:, 0] + 0.5) * self.effects
        if self.skewed:  # outcomes that spread with their level, still ordered by the noise
            outcomes = [np.exp(0.5 * (X[:, 1] + s) + 0.5 * noise) for s in (0.0, shift)]
        else:
            outcomes = [X[:, 1] + s + noise for s in (0.0, shift)]
        if self.binary:
            outcomes = [(values > 0).astype(float) for values in outcomes]
        weight = np.exp(0.5 * X[:, 2]) if self.weighted else np.ones(n)
        return {
            "X": X, "T": T, "Y": np.where(T == 1, outcomes[1], outcomes[0]), "outcomes": np.column_stack(outcomes),
            "weight": weight, "e": np.column_stack([1 - e, e]), "hidden": np.column_stack([1 - hidden_e, hidden_e]),
            "jump": norm.pdf(norm.ppf(1 - share)), "share": share, "marked": marked, "difference": high - low,
        }  # fmt: skip

    def groups(self, n: int) -> np.ndarray | None:
        """Clusters of a study."""
        return None if self.cluster_size == 1 else np.arange(n) // self.cluster_size


def cells() -> list[Cell]:
    """List the settings to simulate."""
    return [
        Cell("no effect, Gamma 1, n=500", 500, 1.0, effects=False),
        Cell("no effect, Gamma 1.5, n=500", 500, 1.5, effects=False),
        Cell("no effect, Gamma 2", effects=False),
        Cell("effects, Gamma 1.5, n=500", 500, 1.5),
        Cell("effects, Gamma 2"),
        Cell("effects, Gamma 2, n=4000", 4_000),
        Cell("effects, Gamma 4", gamma=4.0),
        Cell("a learnt tree, Gamma 2", learnt=True),
        Cell("no effect, a learnt tree, Gamma 2", learnt=True, effects=False),
        *[
            Cell(f"cross-fitted trees, {name}, Gamma {gamma:g}, n={n}", n, gamma, effects=effects, cross_fitted=True)
            for name, effects in (("no effect", False), ("effects", True))
            for n in (300, 1_000)
            for gamma in (1.0, 1.5)
        ],
        Cell(
            "cross-fitted trees, no effect, 60 clusters of 25, Gamma 1",
            1_500,
            1.0,
            False,
            cluster_size=25,
            cross_fitted=True,
        ),
        Cell("outcomes 0 and 1, Gamma 2", binary=True),
        Cell("skewed outcomes, Gamma 2", skewed=True),
        Cell("60 clusters of 25, Gamma 2", 1_500, cluster_size=25),
        Cell("weights, Gamma 2", weighted=True),
    ]


def learn(study: dict, seed: int) -> RewardEstimator:
    """Linear nuisances, cross-fitted."""
    outcome = LinearRegression() if len(np.unique(study["Y"])) > 2 else LogisticRegression()
    learner = RewardEstimator(outcome, LogisticRegression(C=1e6), cv=2, random_state=seed)
    return learner.fit(study["Y"], study["T"], X=study["X"], sample_weight=study["weight"])


def rule(cell: Cell, rng, seed: int):
    """A function of covariates that says whom to treat."""
    if not cell.learnt:
        return lambda X: (X[:, 0] > 0).astype(int)
    other = cell.draw(rng, cell.n)
    tree = PolicyTree(max_depth=2, min_samples_leaf=50).fit(other["X"], learn(other, seed).rewards_)
    return tree.predict


def truth(population: dict, policy: np.ndarray) -> tuple[float, float, float, float]:
    """Advantage, value, and the confounder's true strength ``(cf_y, cf_d)`` for a rule."""
    weight = population["weight"] / population["weight"].sum()
    rows = np.arange(len(policy))
    chosen = population["outcomes"][rows, policy]
    change = np.outer(policy == 1, [-1.0, 1.0])
    T, e = population["T"], population["e"]
    short = (change[rows, T] / e[rows, T]) ** 2
    long = (change[rows, T] / population["hidden"][rows, T]) ** 2
    sign = np.where(T == 1, 1.0, -1.0)
    by_treatment = sign * population["jump"] * population["difference"] / e[rows, T]
    by_hidden = population["jump"] * np.where(
        population["marked"], 1 / population["share"], -1 / (1 - population["share"])
    )
    noise = population["outcomes"][:, 0] - population["X"][:, 1]
    unexplained = weight @ (noise - by_treatment) ** 2
    return (
        float(weight @ (chosen - population["outcomes"][:, 0])), float(weight @ chosen),
        float(min(1.0, weight @ (by_hidden - by_treatment) ** 2 / unexplained)),
        max(0.0, float(1 - (weight @ short) / (weight @ long))) if change.any() else 0.0,
    )  # fmt: skip


def cross_fitted(cell: Cell, rng, population: dict, seed: int):
    """A study, the held-out table of its trees, and what is true of them, by the rows that each one judges."""
    study = cell.draw(rng, cell.n)
    rows = {"X": study["X"], "sample_weight": study["weight"], "groups": cell.groups(cell.n)}
    table = cross_val_policy_value(LinearLearner(), study["Y"], study["T"], **rows, random_state=seed)
    truths, shares = [], []
    for repetition in table.repetitions:
        for fold, tree in enumerate(repetition.trees):
            truths.append(truth(population, tree.predict(population["X"])))
            shares.append(study["weight"][repetition.folds.fold == fold].sum())
    first = len(table.repetitions[0].trees)
    return (
        study, table, tuple(np.average(truths, axis=0, weights=shares)),
        float(np.average(np.array(truths)[:first, 0], weights=shares[:first])),
    )  # fmt: skip


def one_run(cell: Cell, population: dict, seed: int) -> dict:
    """Compare the intervals of one study with the truth."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    own: Any
    if cell.cross_fitted:
        study, own, (advantage, value, cf_y, cf_d), of_first = cross_fitted(cell, rng, population, seed)
    else:
        treat = rule(cell, rng, seed)
        study, policy = cell.draw(rng, cell.n), treat(population["X"])
        while not policy.any():  # a tree that treats nobody has no advantage to bound
            treat = rule(cell, rng, seed)
            policy = treat(population["X"])
        advantage, value, cf_y, cf_d = truth(population, policy)
        own = treat(study["X"])
    fitted = learn(study, seed)
    options: dict[str, Any] = {
        "propensity": fitted.propensity_, "regression": fitted.regression_, "groups": cell.groups(cell.n),
        "sample_weight": study["weight"], "held_out": True, "n_bootstrap": N_BOOTSTRAP, "random_state": seed,
    }  # fmt: skip
    gammas = (1.0, (1 + cell.gamma) / 2, cell.gamma) if cell.gamma > 1 else (1.0,)
    found = marginal_sensitivity(own, study["Y"], study["T"], baseline=0, gammas=gammas, **options)
    alone = marginal_sensitivity(own, study["Y"], study["T"], gammas=(cell.gamma,), **options)

    def covers(bounds, target) -> bool:
        return bounds.interval_lower <= target <= bounds.interval_upper

    sharp, simple = found.sharp[-1], found.simple[-1]
    out = {
        "sharp": covers(sharp, advantage), "simple": covers(simple, advantage), "value": covers(alone.sharp[0], value),
        "sharp bounds": sharp.lower <= advantage <= sharp.upper,
        "half-way": covers(found.sharp[len(gammas) // 2], advantage), "gamma 1": covers(found.sharp[0], advantage),
        "width": sharp.interval_upper - sharp.interval_lower, "simple width": simple.interval_upper -
        simple.interval_lower, "error": sharp.lower - advantage, "se": sharp.lower_standard_error,
        "false claims": np.nan, "claims at 1": np.nan, "omitted": np.nan, "omitted 0": np.nan, "once": np.nan,
    }  # fmt: skip
    if cell.cross_fitted and own.policy.any():
        once = marginal_sensitivity(own.policy, study["Y"], study["T"], baseline=0, gammas=gammas, **options)
        out["once"] = covers(once.sharp[-1], of_first)
    if not cell.effects:
        out["false claims"] = found.tipping["sharp"].interval > cell.gamma
        out["claims at 1"] = found.tipping["sharp"].interval > 1
    if not cell.binary and not cell.skewed:
        with suppress(InputError):  # few people treated: their mean squared weight comes out negative; not counted
            bounds = omitted_variable_bounds(own, study["Y"], study["T"], baseline=0, **options)
            out["omitted"] = covers(bounds.bounds(cf_y, cf_d), advantage)
            out["omitted 0"] = covers(bounds.bounds(0.0, 0.0), advantage)
    return out


def summary(cell: Cell, records: pd.DataFrame, seconds: float) -> dict:
    """Shares in percent."""
    row = {"cell": cell.name, "runs": len(records)}
    row |= {name: 100 * records[name].astype(float).mean() for name in SHOWN}
    p = records["sharp"].mean()
    return row | {
        "sharp / simple width": records["width"].mean() / records["simple width"].mean(),
        "SE / SD": records["se"].mean() / records["error"].std(),
        "MC error": 100 * np.sqrt(p * (1 - p) / len(records)), "seconds": seconds,
    }  # fmt: skip


def save(rows: list[dict], stem: Path) -> None:
    """All cells so far."""
    frame = pd.DataFrame(rows)
    frame.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g")
    frame = frame.drop(columns="seconds")
    lines = []
    for row in frame.to_dict("records"):
        digits = {"runs": 0, "sharp / simple width": 2, "SE / SD": 2, "MC error": 2}
        lines.append([row["cell"]] + [
            "" if np.isnan(value) else f"{value:.{digits.get(name, 1)}f}" for name, value in list(row.items())[1:]
        ])  # fmt: skip
    head = markdown_head("Coverage of bounds for hidden confounding (percent; nominal at least 95)", machine())
    table = markdown_table(list(frame.columns), lines, set(frame.columns[1:]))
    stem.with_suffix(".md").write_text(head + table, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--cell", action="append", help="part of a cell's name; may be repeated")
    parser.add_argument("--output", type=Path, default=RESULTS / "sensitivity_coverage")
    options = parser.parse_args(arguments)
    rows = []
    for cell in cells():
        if options.cell and not any(part in cell.name for part in options.cell):
            continue
        start = time.perf_counter()
        population = cell.draw(np.random.default_rng(1), SMALLER_POPULATION if cell.cross_fitted else POPULATION)
        with unwatched():
            records = pd.DataFrame([one_run(cell, population, seed) for seed in range(options.runs)])
        rows.append(summary(cell, records, time.perf_counter() - start))
        print(", ".join(f"{k} {v:.4g}" if not isinstance(v, str) else v for k, v in rows[-1].items()), flush=True)
        save(rows, options.output)


if __name__ == "__main__":
    main()
