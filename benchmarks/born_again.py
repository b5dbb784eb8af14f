"""Born-again trees: every forest of the reference file, how small a tree, how fast, beside the published program.

    python benchmarks/born_again.py [--data ../shared/data] [--only Seeds] [--trees 10] [--large]

One core, processor seconds of reading the arrays, searching and reading the tree, kernels warm; the published program's
processor seconds stand in the reference file (`reference/born_again.json`), measured on a machine like this one. Trees
of up to a million cells are checked on every cell. ``--large``: forests of 20 and 30 trees of depth 3 on the same data
sets, grown here, with a time limit; what becomes of them.
"""

import argparse
import json
import platform
import resource
import time
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from policytree import BornAgainTree
from policytree.born_again.faithful import check_faithfulness
from policytree.born_again.needed_kernels import BORN_AGAIN
from policytree.born_again.readers import read_ensemble
from policytree.born_again.solve import solve_born_again
from policytree.exceptions import InputError
from policytree.solvers.core.compilation import load_kernels

HERE = Path(__file__).parent
KEYS = {"D": "depth", "L": "leaves", "DL": "depth_then_leaves"}
CHECKED = 1_000_000  # cells
REPEAT_BELOW = 1.0  # seconds: the best of three
MEMORY = 2e9  # bytes, for --large


def measured(trees: dict, objective: str):
    """Solution, ensemble and processor seconds."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        ensemble = read_ensemble(trees)
        solution = solve_born_again(ensemble, objective)
        best = min(best, time.process_time() - start)
        if best > REPEAT_BELOW:
            break
    return solution, ensemble, best


def table(reference: dict, only: str, n_trees: int | None) -> pd.DataFrame:
    """One row for every forest and objective."""
    forests = {(f["dataset"], f["fold"]): f for f in reference["forests"]}
    rows = []
    for known in reference["results"]:
        name, fold, T = known["dataset"], known["fold"], known["n_trees"]
        if only not in name or (n_trees is not None and n_trees != T):
            continue
        forest = forests[name, fold]
        trees = {"trees": forest["trees"][:T], "n_features": forest["n_features"]}
        for key, objective in KEYS.items():
            solution, ensemble, seconds = measured(trees, objective)
            check = "not checked"
            if solution.counters["cells"] <= CHECKED:
                check = str(check_faithfulness(solution.tree, ensemble, most_cells=CHECKED))
            published = known.get(key) or {}
            rows.append(
                {
                    "data": name, "fold": fold, "trees": T, "objective": key, "published_s": published.get("cpu_s"),
                    "ours_s": seconds, "depth": solution.depth, "leaves": solution.leaves,
                    "published_depth": published.get("depth"), "published_leaves": published.get("leaves"),
                    "status": solution.status.value, "cells": solution.counters["cells"],
                    "boxes": solution.counters.get("boxes", 0), "check": check,
                }
            )  # fmt: skip
            print({k: v for k, v in rows[-1].items() if k not in ("cells", "boxes")}, flush=True)
    return pd.DataFrame(rows)


def summary(results: pd.DataFrame) -> str:
    """Means of the folds, as the paper's table has them, and how many forests the published program did not solve."""
    lines = [
        "| data | trees | objective | published, s | ours, s | ratio | solved by published program | depth | leaves |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (name, T, key), part in results.groupby(["data", "trees", "objective"], sort=False):
        both = part[part.published_s.notna()]
        ratio = both.published_s.sum() / both.ours_s.sum() if len(both) else np.nan
        lines.append(
            f"| {name} | {T} | {key} | {both.published_s.mean():.4g} | {part.ours_s.mean():.4g} | {ratio:.3g} | "
            f"{len(both)} of {len(part)} | {part.depth.mean():.1f} | {part.leaves.mean():.1f} |"
        )
    slower = results[results.ours_s > np.maximum(0.01, results.published_s.fillna(np.inf))]
    lines += ["", f"Slower than both the published program and 10 ms: {len(slower)} of {len(results)} searches."]
    lines += [f"- {r.data} {r.fold}, {r.trees} trees, {r.objective}: {r.ours_s:.4f} s" for r in slower.itertuples()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return "\n".join([*lines, "", f"Peak of resident memory of the whole run: {peak:.1f} GB."])


def large(data: Path, limit: float) -> str:
    """Solve forests of 20 and 30 trees, grown with the paper's recipe on the first fold; return a table."""
    lines = [
        f"Hard votes, fewest leaves, time_limit={limit:g}, memory_limit={MEMORY:g}; seconds of wall time.",
        "",
        "| data | trees | cells | depth | leaves | no less than | status | s |",
        "|---|---:|---:|---:|---:|---|---|---:|",
    ]
    for path in sorted((data / "born_again").glob("*.csv.gz")):
        frame = pd.read_csv(path)
        train = frame[frame.test_fold != 1]
        X, y = train.drop(columns=["Class", "test_fold"]), train.Class
        for T in (20, 30):
            forest = RandomForestClassifier(T, max_depth=3, random_state=0).fit(X, y)
            tree = BornAgainTree(forest, "leaves", voting="hard", time_limit=limit, memory_limit=MEMORY)
            start = time.perf_counter()
            name, cells, size, bound = path.name.split(".")[0], "", "", ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = tree.fit().solution_
            except InputError as error:
                status = str(error)
            else:
                cells, status = f"{found.counters['cells']:.3g}", found.status.value
                size = f"{found.depth} | {found.leaves:,}"
                bound = f"depth {found.depth_bound}, {found.leaves_bound:,} leaves"
            seconds = time.perf_counter() - start
            lines.append(f"| {name} | {T} | {cells} | {size or ' | '} | {bound} | {status} | {seconds:.1f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--only", default="", help="data sets whose name contains this")
    parser.add_argument("--trees", type=int, help="forests of so many trees only")
    parser.add_argument("--large", action="store_true", help="forests of 20 and 30 trees instead")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds, for --large")
    parser.add_argument("--save", action="store_true", help="keep the result in results/")
    options = parser.parse_args()
    load_kernels([(BORN_AGAIN, "")])
    machine = platform.processor() or platform.machine()
    head = f"{date.today()}, {machine}, one core, Python {platform.python_version()}\n\n"
    if options.large:
        text, name = large(options.data, options.time_limit), "born_again_large"
    else:
        reference = json.loads((options.data / "reference" / "born_again.json").read_text(encoding="utf-8"))
        results = table(reference, options.only, options.trees)
        text, name = summary(results), "born_again"
        if options.save:
            results.to_csv(HERE / "results" / "born_again.csv", index=False)
    print(text)
    if options.save:
        (HERE / "results" / f"{name}.md").write_text(head + text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
