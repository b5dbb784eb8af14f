"""Do intervals of rankings and cost curves cover? Simulated trials with known truths.

    python benchmarks/ranking_coverage.py               # all cells, 1,000 runs each: an hour on one core
    python benchmarks/ranking_coverage.py --influences --runs 4000        # AUTOC and QINI without half-samples
    python benchmarks/ranking_coverage.py --cell "60 clusters" --runs 200 --output /tmp/ranking

Every run draws a study as in `held_out_coverage.py`; half of it learns (least squares, and the exact tree of depth
two), the other half judges the order, and the plan, that come out. The truth is that order's, or plan's, in the
population.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import RESULTS, machine, markdown_head, markdown_table
from scipy import stats
from simulated import POPULATION, Cell, LinearLearner, linear_effects, no_effect, unwatched

from policytree import held_out_rewards
from policytree.evaluation import qini_curve, rank_average_treatment_effect
from policytree.evaluation.targeting.toc import Order, toc_and_areas

SHARE, BUDGET = 0.2, 0.3
COST_NOISE = 0.5
TAIL = 1.5  # of the logarithm: one in a hundred costs ten times the mean


def cells() -> list[Cell]:
    """List the settings to simulate; half of the rows judge."""
    none = Cell("no effect, 300 judge", 600, effects=no_effect)
    some = Cell("effects, 300 judge", 600, effects=linear_effects)
    return [
        none,
        some,
        replace(none, name="no effect, 1,000 judge", n=2_000),
        replace(some, name="effects, 1,000 judge", n=2_000),
        replace(none, name="no effect, 4 arms, 1,000 judge", n=2_000, n_arms=4),
        replace(some, name="effects, 4 arms, 1,000 judge", n=2_000, n_arms=4),
        replace(none, name="no effect, 60 clusters of 25 judge", n=3_000, cluster_size=25),
        replace(some, name="effects, 60 clusters of 25 judge", n=3_000, cluster_size=25),
        replace(some, name="effects, weights, 1,000 judge", n=2_000, weighted=True),
    ]


def costs(X: np.ndarray, n_arms: int) -> np.ndarray:
    """Return each treatment's cost for each person: zero for the first, then rising."""
    return np.outer(1 + 0.5 * np.tanh(X[:, 3]), np.arange(n_arms))


class Truth:
    """The population: what an order, or a plan, is worth there."""

    def __init__(self, cell: Cell):
        means, self.weight = cell.truth()
        self.gains, self.costs = means - means[:, [0]], costs(POPULATION, cell.n_arms)
        self.shares = np.array([SHARE])

    def ranking(self, priority: np.ndarray) -> tuple[float, float, float]:
        """AUTOC, QINI and TOC of treatment 1 against 0."""
        areas, toc = toc_and_areas(Order.of(priority), self.gains[:, 1], self.weight, self.shares)
        return *areas, float(toc[0])

    def curve(self, predicted: np.ndarray):
        """The plan's true curve: qini_curve with the truth as scores."""
        return qini_curve(predicted, self.gains, self.costs, sample_weight=self.weight)


def one_run(cell: Cell, truth: Truth, seed: int, n_bootstrap: int = 200) -> list[dict]:
    """All quantities of one study: estimate, interval, truth."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study = cell.draw(rng)
    held = held_out_rewards(LinearLearner(), study.pop("Y"), study["T"], **{k: v for k, v in study.items() if k != "T"},
                            random_state=seed)  # fmt: skip
    model, X, out = held.estimator, study["X"][held.rows], []
    there = model.reward_estimator_.predict_outcomes(X=POPULATION, W=None).to_numpy()
    priorities = {"predicted": held.predicted_gain(1, 0), "covariate": X[:, 2], "tree": _gain(model.policy_tree_, X)}
    truths = {
        "predicted": truth.ranking(there[:, 1] - there[:, 0]),
        "covariate": truth.ranking(POPULATION[:, 2]),
        "tree": truth.ranking(_gain(model.policy_tree_, POPULATION)),
    }

    def add(name, estimate, true):
        out.append({"quantity": name, "inside": estimate.lower <= true <= estimate.upper, "true": true,
                    "error": estimate.value - true, "width": estimate.upper - estimate.lower,
                    "se": getattr(estimate, "standard_error", np.nan),
                    "zero outside": not estimate.lower <= 0.0 <= estimate.upper})  # fmt: skip

    for at, target in enumerate(("AUTOC", "QINI")):
        ranking = rank_average_treatment_effect(
            priorities, held, treatment=1, target=target, n_bootstrap=n_bootstrap, random_state=seed
        )
        add(target, ranking.estimates["predicted"], truths["predicted"][at])
        add(f"{target}, tree", ranking.estimates["tree"], truths["tree"][at])
        difference = truths["predicted"][at] - truths["covariate"][at]
        add(f"{target}, difference", ranking.difference("predicted", "covariate"), difference)
    toc = ranking.toc[ranking.toc["priority"] == "predicted"].set_index("share").loc[SHARE]
    add(f"TOC at {SHARE}", toc, truths["predicted"][2])
    _add_curves(add, cell, truth, held, study, there, rng, {"n_bootstrap": n_bootstrap, "random_state": seed})
    return out


def quick_run(cell: Cell, truth: Truth, seed: int) -> list[dict]:
    """AUTOC and QINI with errors from their influences: without half-samples and tree, thousands of runs are cheap."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, out = cell.draw(rng), []
    held = held_out_rewards(LinearLearner(max_depth=0), study.pop("Y"), study.pop("T"), **study, random_state=seed)
    there = held.estimator.reward_estimator_.predict_outcomes(X=POPULATION, W=None).to_numpy()
    truths = truth.ranking(there[:, 1] - there[:, 0])
    for at, target in enumerate(("AUTOC", "QINI")):
        priority = held.predicted_gain(1, 0)
        e = rank_average_treatment_effect(priority, held, treatment=1, target=target, n_bootstrap=2).estimate
        sums = e.influence if held.groups is None else np.bincount(held.groups, weights=e.influence)
        se = np.sqrt(sums @ sums * e.n_clusters / (e.n_clusters - 1)) / len(e.influence)
        half = se * stats.t.ppf(0.975, e.n_clusters - 1)
        error = e.value - truths[at]
        out.append({"quantity": f"{target}, by influences", "inside": abs(error) <= half, "se": se, "error": error,
                    "true": truths[at], "zero outside": abs(e.value) > half})  # fmt: skip
    return out


def _gain(tree, X) -> np.ndarray:
    values = tree.predict_value(X)
    return values[:, 1] - values[:, 0]


def _add_curves(add, cell: Cell, truth: Truth, held, study, there, rng, options) -> None:
    """Cost curves with known and with estimated costs, and paired differences."""
    X, tree = study["X"][held.rows], held.estimator.policy_tree_
    known = costs(X, cell.n_arms)
    curve, true = qini_curve(held.outcomes, held, known, **options), truth.curve(there)
    add("gain at a budget", curve.value_at(BUDGET), true.value_at(BUDGET).value)
    untargeted = true.value_at(BUDGET).value - true.untargeted.value_at(BUDGET).value
    add("gain, less untargeted", curve.difference(curve.untargeted, BUDGET), untargeted)
    by_tree = qini_curve(tree.predict_value(X), held, known, **options)
    other = true.value_at(BUDGET).value - truth.curve(tree.predict_value(POPULATION)).value_at(BUDGET).value
    add("gain, less the tree's", curve.difference(by_tree, BUDGET), other)
    # Costs that are outcomes themselves: everybody's own is seen, with noise; the plan knows a rule of thumb.
    T, thumb = study["T"][held.rows], np.arange(cell.n_arms, dtype=float)
    own, plan = known[np.arange(len(T)), T], np.tile(thumb, (len(T), 1))
    there_plan = np.tile(thumb, (len(POPULATION), 1))
    really = qini_curve(there, truth.gains, there_plan, cost_scores=truth.costs, sample_weight=truth.weight)
    noises = {"estimated": 1 + COST_NOISE * rng.standard_normal(len(T)),
              "heavy-tailed": np.exp(TAIL * rng.standard_normal(len(T)) - TAIL**2 / 2)}  # fmt: skip
    for name, noise in noises.items():
        surprise = (T[:, None] == np.arange(cell.n_arms)) * cell.n_arms * (own * noise - thumb[T])[:, None]
        curve_here = qini_curve(held.outcomes, held, plan, cost_scores=plan + surprise, **options)
        add(f"gain, {name} costs", curve_here.value_at(BUDGET), really.value_at(BUDGET).value)
    goal = 0.5 * true.value_at(BUDGET).value
    if goal > 0.02:  # with no effect there is nothing to buy
        add("budget for half of it", curve.budget_for(goal), true.budget_for(goal).value)


def summary(records: pd.DataFrame) -> pd.DataFrame:
    """Coverage in percent, and errors in standard errors."""
    rows = []
    for name, part in records.groupby("quantity", sort=False):
        share = part["inside"].mean()
        error = part["error"].where(np.isfinite(part["error"]))  # no budget may reach a gain
        z = error / part["se"].where(part["se"] > 0)
        rows.append({
            "quantity": name, "runs": len(part), "truth": part["true"].mean(), "inside": 100 * share,
            "zero outside": 100 * part["zero outside"].mean(), "SE / SD": part["se"].mean() / error.std(),
            "mean z": z.mean(), "MC error": 100 * np.sqrt(share * (1 - share) / len(part)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def save(results: dict[str, pd.DataFrame], stem: Path) -> None:
    """All cells so far."""
    frame = pd.concat([table.assign(cell=name) for name, table in results.items()])
    frame = frame[["cell", *[c for c in frame.columns if c != "cell"]]]
    frame.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g")
    shown = frame.copy()
    for column in shown.columns[3:]:
        digits = {"truth": 3, "inside": 1, "zero outside": 1}.get(column, 2)
        shown[column] = ["" if not np.isfinite(v) else f"{v:.{digits}f}" for v in shown[column].astype(float)]
    names = list(shown.columns)
    lines = [[str(value) for value in row] for row in shown.itertuples(index=False)]
    head = markdown_head("Coverage of rankings and cost curves (percent; nominal 95)", machine())
    stem.with_suffix(".md").write_text(head + markdown_table(names, lines, set(names[2:])), encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--influences", action="store_true", help="only AUTOC and QINI by influences, in many runs")
    parser.add_argument("--cell", action="append", help="part of a cell's name; may be repeated")
    parser.add_argument("--output", type=Path, default=RESULTS / "ranking_coverage")
    options = parser.parse_args(arguments)
    results = {}  # cells that are not run again stay as they are
    if options.output.with_suffix(".csv").is_file():
        done = pd.read_csv(options.output.with_suffix(".csv"))
        results = {name: part.drop(columns="cell") for name, part in done.groupby("cell", sort=False)}
    for cell in cells():
        if options.cell and not any(part in cell.name for part in options.cell):
            continue
        start, truth, records = time.perf_counter(), Truth(cell), []
        with unwatched():
            for seed in range(options.runs):
                records += (quick_run if options.influences else one_run)(cell, truth, seed)
        table, before = summary(pd.DataFrame(records)), results.get(cell.name)
        if before is not None:
            kept = before["quantity"].str.endswith("by influences") != options.influences
            table = pd.concat([before[kept], table] if options.influences else [table, before[kept]])
        results[cell.name] = table
        print(f"{cell.name}: {time.perf_counter() - start:.0f} s")
        print(results[cell.name].to_string(index=False, float_format=lambda v: f"{v:.3f}") + "\n", flush=True)
        save(results, options.output)


if __name__ == "__main__":
    main()
