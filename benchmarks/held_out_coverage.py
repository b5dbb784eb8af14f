"""Do held-out intervals cover what they say? Simulated trials and studies with known truths.

    python benchmarks/held_out_coverage.py                    # all cells, 1,000 runs each: about an hour on one core
    python benchmarks/held_out_coverage.py --list
    python benchmarks/held_out_coverage.py --cell "no effect, n=300, 2 arms" --runs 200

Every run draws a study, calls `cross_val_policy_value` with a light learner (`LinearLearner`: linear outcome models by
least squares, cross-fitted in two folds, then the exact tree) and compares intervals with the true values of the rules
that were judged. Results are saved after every cell; see `benchmarks/README.md` for the columns.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import machine, markdown_head, markdown_table
from simulated import POPULATION, Cell, LinearLearner, boosting, cells, least_squares, unwatched
from sklearn.base import clone

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.evaluation.inference.best_arm import compare_with_best
from policytree.evaluation.policy_value.cross_val import settled

RESULTS = Path(__file__).parent / "results"
ROUNDING = 1e-9  # of means that are added up in another order: a tree that is one arm differs from it by nothing else
OTHER_RUNS = 300  # of sequential validation and the split, for which there are theorems
PROCEDURES = ("repeated", "adaptive", "single", "sequential", "split")


# --- a run ---


def true_value(tree, means, weight) -> float:
    """Expected outcome of the population under a tree."""
    arms = tree.tree_.action[tree.tree_.apply(POPULATION)]
    return float(weight @ means[np.arange(len(means)), arms])


def targets(table, means, weight, repetitions) -> float:
    """Mean true value of the judged rules, each by the weight of its rows."""
    total = 0.0
    for repetition in repetitions:
        fold = repetition.folds.fold[table.judged]
        own = table.observed.sample_weight
        of_rows = np.ones(len(fold)) if own is None else own[table.judged]
        shares = np.bincount(fold, weights=of_rows)
        values = [true_value(tree, means, weight) for tree in repetition.trees]
        total += float(np.average(values, weights=shares[np.unique(fold)])) / len(repetitions)
    return total


def judge(table, repetitions, truths, target, best_value) -> dict:
    """Compare the intervals of some repetitions with the truth."""

    def estimate(scores):
        return table.validation.estimate(scores, table.observed, 0.95)

    value = estimate([r.scores["policy tree"] for r in repetitions])
    differences = {
        f"always {k}": estimate([r.scores["policy tree"] - r.scores[f"always {k}"] for r in repetitions])
        for k in range(len(truths))
    }
    first = differences["always 0"]
    best = compare_with_best(differences, "maximize")
    return {
        "value": _covers(value, target),
        "difference": _covers(first, target - truths[0]),
        "against best": _covers(best, target - best_value),
        "worse": best.worse, "better": best.better, "width": first.upper - first.lower,
        "best width": best.upper - best.lower, "error": first.value - (target - truths[0]), "se": first.standard_error,
        "arms worse": any(d.upper < 0 for d in differences.values()),
    }  # fmt: skip


def learner_of(cell: Cell):
    """Make the learner of the rules."""
    if cell.learner == "default":
        return DRPolicyTree(max_depth=cell.depth, random_state=0)
    return LinearLearner(cell.depth, boosting if cell.learner == "boosting" else least_squares)


def one_run(cell: Cell, seed: int, procedures) -> list[dict]:
    """One simulated study under every procedure, unless it is for a few runs only."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, (means, weight) = cell.draw(rng), cell.truth()
    truths = weight @ means
    learner = learner_of(cell)
    Y, T = study.pop("Y"), study.pop("T")
    out = []

    def add(name, table, repetitions, target):
        record = judge(table, repetitions, truths, target, truths.max())
        out.append({"procedure": name, "repetitions": len(repetitions), **record})

    if set(procedures) & {"repeated", "adaptive", "single"}:
        table = cross_val_policy_value(learner, Y, T, **study, random_state=seed)
        done = table.repetitions
        target = targets(table, means, weight, done)
        add("repeated", table, done, target)
        add("single", table, done[:1], targets(table, means, weight, done[:1]))
        early = next((r for r in (3, 4) if settled(done[:r], table.observed, table.validation, 0.95)), len(done))
        add("adaptive", table, done[:early], target if early == 5 else targets(table, means, weight, done[:early]))
        whole = clone(learner).fit(Y, T, W=None, **{"sample_weight": None, "groups": None, **study})
        out[0]["all rows"] = _covers(
            table.differences["always 0"], true_value(whole.policy_tree_, means, weight) - truths[0]
        )
    for name in ("sequential", "split"):
        if name in procedures and seed < OTHER_RUNS:
            table = cross_val_policy_value(learner, Y, T, **study, validation=name, random_state=seed)
            add(name, table, table.repetitions, targets(table, means, weight, table.repetitions))
    return out


def _covers(estimate, truth: float) -> bool:
    return estimate.lower - ROUNDING <= truth <= estimate.upper + ROUNDING


# --- tables ---


def summary(records: pd.DataFrame) -> pd.DataFrame:
    """Coverage and widths per procedure, in percent where they are shares."""
    rows = []
    single = records.loc[records["procedure"] == "single", "width"].mean()
    for name in PROCEDURES:
        part = records[records["procedure"] == name]
        if not len(part):
            continue
        rows.append({"procedure": name, "runs": len(part), "repetitions": part["repetitions"].mean()})
        shares = ("value", "difference", "against best", "worse", "better", "arms worse")
        rows[-1] |= {column: 100 * part[column].mean() for column in shares}
        rows[-1] |= {"all rows": 100 * part["all rows"].astype(float).mean() if name == "repeated" else np.nan}
        rows[-1] |= {"width ratio": part["width"].mean() / single, "SE / SD": part["se"].mean() / part["error"].std()}
        p = part["difference"].mean()
        rows[-1]["MC error"] = 100 * np.sqrt(p * (1 - p) / len(part))
    return pd.DataFrame(rows)


def save(results: dict[str, pd.DataFrame], stem: Path) -> None:
    """All cells so far."""
    frame = pd.concat([table.assign(cell=name) for name, table in results.items()])
    frame = frame[["cell", *[c for c in frame.columns if c != "cell"]]]
    frame.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g")
    shown = frame.copy()
    for column in shown.columns[3:]:
        digits = 2 if column in ("width ratio", "SE / SD", "MC error") else 1
        shown[column] = [("" if np.isnan(v) else f"{v:.{digits}f}") for v in shown[column].astype(float)]
    names = list(shown.columns)
    lines = [[str(value) for value in row] for row in shown.itertuples(index=False)]
    head = markdown_head("Coverage of held-out intervals (percent; nominal 95)", machine())
    table = markdown_table(names, lines, set(names[2:]))
    stem.with_suffix(".md").write_text(head + table, encoding="utf-8")


def run_cell(cell: Cell, runs: int, procedures) -> pd.DataFrame:
    """All runs of a cell; says how it goes."""
    start, records = time.perf_counter(), []
    for seed in range(runs):
        records += one_run(cell, seed, procedures)
        if (seed + 1) % 100 == 0 or seed + 1 == runs:
            table = summary(pd.DataFrame(records))
            print(f"{cell.name}: {seed + 1} runs, {time.perf_counter() - start:.0f} s", flush=True)
    print(table.to_string(index=False, float_format=lambda v: f"{v:.2f}") + "\n", flush=True)
    return table


def main(arguments: list[str] | None = None) -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--other-runs", type=int, default=300, help="runs of the cells that begin with 'other'")
    parser.add_argument("--cell", action="append", help="part of a cell's name; may be repeated")
    parser.add_argument("--procedures", default=",".join(PROCEDURES))
    parser.add_argument("--output", type=Path, default=RESULTS / "coverage")
    parser.add_argument("--resume", action="store_true", help="skip cells that the output has already")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    chosen = [c for c in cells() if not options.cell or any(part in c.name for part in options.cell)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return
    if not chosen:
        sys.exit("no cell has such a name; see --list")
    results = {}
    if options.resume and options.output.with_suffix(".csv").is_file():
        done = pd.read_csv(options.output.with_suffix(".csv"))
        results = {name: part.drop(columns="cell") for name, part in done.groupby("cell", sort=False)}
    for cell in chosen:
        if cell.name in results:
            continue
        runs = min(options.runs, options.other_runs) if cell.name.startswith("other") else options.runs
        with unwatched():
            results[cell.name] = run_cell(cell, runs, options.procedures.split(","))
        save(results, options.output)


if __name__ == "__main__":
    main()
