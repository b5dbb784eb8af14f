"""Trees with a price per leaf and no depth limit: is the best one proved, and how long does that take.

    python benchmarks/no_depth_limit.py [--time-limit 60] [--data ../shared/data] [--only car] [--repeats 3]
        [--sketch ../shared/sketch/no_depth_limit.py]

One core, processor seconds of whole fits with binning, kernels warm, medians. The value is accuracy less price x
(leaves - 1). ``--sketch``: a prototype of the search over subsets of rows, timed in the same run, with and without its
look-ahead; the better one counts.
``--parts bounds``: the search over subsets of rows alone, with bounds switched off, and with sets as lists of rows.
``--parts depths``: tables of many thresholds, proved by the search over depths, with its bounds switched off.
``--parts conflicts``: noisy tables of many columns, with conflict pairs and without.
``--parts gaps``: what is open: the gap after so many processor seconds (``--time-limit``), beside the one to be
halved.
``--parts seventy``: 14 tables of GOSDT's repositories at five prices, and the geometric mean of their seconds, in which
a problem that is not proved counts as 30 s.
``--parts column``: one column of very many distinct values, by dynamic programming.
"""

import argparse
import importlib.util
import statistics
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from policytree import OptimalTreeClassifier
from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import all_kernels, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock, stopped_by
from policytree.solvers.core.rows import new_control, prepare
from policytree.solvers.exact.subset_search import start_subset_search
from policytree.solvers.kernels.base.layout import FEASIBLE
from policytree.solvers.kernels.subsets.layout import ENTERED

SPARSE = {  # table of 0/1 columns: (price, best known value)
    "zoo": (0.001, 0.992),
    "monk2_f": (0.001, 0.933),
    "tic_tac_toe_f": (0.005, 0.8507),
    "tic_tac_toe_onehot": (0.005, 0.8507),
    "car_f": (0.005, 0.7992),
    "car_onehot": (0.005, 0.8527),
    "nursery_f": (0.01, 0.7726),
    "nursery_onehot": (0.01, 0.8127),
    "mushroom_f": (0.01, 0.9452),
    "kr_vs_kp": (0.01, 0.9009),
    "balance_f": (0.005, 0.6732),
    "balance_onehot": (0.005, 0.7692),
    "lymph": (0.01, 0.8462),
}
SMALL = (
    "classification/monk1", "classification/monk2", "classification/monk3", "classification/car",
    "classification/balance_scale", "classification/tic_tac_toe", "classification/iris", "born_again/FICO",
    "born_again/COMPAS-ProPublica",
)  # fmt: skip
PRICES = (0.1, 0.05, 0.02, 0.01, 0.005)
SEVENTY = {  # table: rows that are drawn with seed 0 (0: all)
    **dict.fromkeys(SMALL, 0), "classification/monk1_train_onehot": 0, "classification/monk2_train_onehot": 0,
    "classification/spiral": 0, "classification/compas": 0, "classification/fico_heloc": 1_000,
}  # fmt: skip
SHORT = 2.0  # seconds of a fit that is repeated
UNSOLVED = 30.0  # seconds that a problem counts as which is not proved
NOISY = {
    "classification/compas": (0.02, 0.01, 0.005, 0.004),
    "classification/coupon_rest20_onehot": (0.02, 0.01, 0.005),
    "classification/broward": (0.01, 0.005),
}
LONG = {"contree_bank": 0.02, "contree_rice": 0.02, "fourclass": 0.02, "iris": 0.005, "contree_wilt": 0.005}
CONFLICTS = (  # table, rows that are drawn (0: all), seed, price
    ("fico_heloc", 300, 0, 0.05),
    ("fico_heloc", 1_000, 0, 0.05),
    ("fico_heloc", 1_000, 1, 0.05),
    ("fico_heloc", 1_000, 2, 0.05),
    ("fico_heloc", 1_000, 0, 0.02),
    ("coupon_rest20_onehot", 0, 0, 0.02),
    ("coupon_carryout_onehot", 0, 0, 0.02),
    ("broward", 0, 0, 0.05),
    ("broward", 0, 0, 0.02),
)
OPEN = {  # table, rows that are drawn with seed 0 (0: all), price: the gap in rows when proofs were asked for
    ("fico_heloc", 1_000, 0.02): 220, ("fico_heloc", 1_000, 0.01): 240, ("fico_heloc", 1_000, 0.005): 240,
    ("compas", 0, 0.02): 829, ("compas", 0, 0.01): 1_312, ("compas", 0, 0.005): 1_381,
    ("broward", 0, 0.02): 392, ("broward", 0, 0.01): 524, ("broward", 0, 0.005): 600,
    ("coupon_rest20_onehot", 0, 0.01): 350, ("coupon_rest20_onehot", 0, 0.005): 467,
}  # fmt: skip
TEXT = ("monk", "car", "tic_tac_toe")  # attributes are categories
LONG_FOR_THE_SKETCH = ("lymph",)


def table(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Features and label of a table; of the monks, the rows to train on."""
    frame = pd.read_csv(f"{path}.csv.gz")
    if "split" in frame:
        frame = frame[frame["split"] == "train"]
    frame = frame.drop(columns=["split", "test_fold"], errors="ignore")
    X = frame.iloc[:, :-1]
    return X.astype("category") if path.name.startswith(TEXT) else X, frame.iloc[:, -1].astype(str)


def fit(X, y, price: float, limit: float | None, repeats: int) -> tuple[OptimalTreeClassifier, float]:
    """A fitted tree, and the median of its seconds; long fits are not repeated. ``limit``: of wall time."""
    model, seconds = OptimalTreeClassifier(regularization=price, time_limit=limit), []
    while len(seconds) < repeats and sum(seconds) < 10:
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
    return model, statistics.median(seconds)


def load_sketch(path: str):
    """The prototype as a module, compiled."""
    spec = importlib.util.spec_from_file_location("sketch", path)
    sketch = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sketch)
    rng = np.random.default_rng(0)
    sketch.Problem(rng.integers(0, 2, (64, 4)), rng.integers(0, 2, 64), 0.125).solve()
    return sketch


def time_sketch(sketch, X, y, price: float, repeats: int) -> float:
    """Seconds of the prototype, the better of its two settings."""
    best = []
    for ahead in (True, False):
        seconds = []
        while len(seconds) < repeats and sum(seconds) < 10:
            start = time.process_time()
            sketch.Problem(X.to_numpy(int), y.to_numpy(), price).solve(ahead=ahead)
            seconds.append(time.process_time() - start)
        best.append(statistics.median(seconds))
    return min(best)


def problem_of(X, y, price: float) -> Problem:
    """Errors, with a price per leaf that is a share of the rows, and no depth limit."""
    labels = pd.factorize(y)[0]
    losses = (labels[:, None] != np.arange(labels.max() + 1)).astype(float)
    return Problem(bin_matrix(X.to_numpy(float)), losses, price * len(y), None)


def subsets_alone(X, y, price: float, limit: float, siblings: bool, ahead: bool, keep: str) -> str:
    """Sets entered and seconds of the search over subsets of rows; a star if it did not end."""
    problem = problem_of(X, y, price)
    node = prepare(problem, to_fixed_point(problem.losses, problem.leaf_penalty, len(y)), merge=True)
    clock = Clock(None, new_control(similar_support=siblings, look_ahead=ahead))
    start = time.process_time()
    search = start_subset_search(node, len(y), clock, None, keep)
    work, value = search.first_slice(), FEASIBLE
    while search.bound < value and not search.ended and time.process_time() < start + limit:
        value = search.advance(FEASIBLE, work)
        work *= 2
    star = "" if search.bound >= value else "*"
    return f"{search.counters[ENTERED]:,} ({time.process_time() - start:.2f}{star})"


def bounds_part(data: Path, only: str, limit: float) -> None:
    """Print a table of searches with and without each bound."""
    print("\n| table | all | no siblings | no look-ahead | neither | lists, all |")
    print("|---|" + "---:|" * 5, flush=True)
    for name, (price, _) in SPARSE.items():
        if only in name and name not in LONG_FOR_THE_SKETCH:
            X, y = table(data / "sparse" / name)
            settings = [(True, True), (False, True), (True, False), (False, False)]
            cells = [subsets_alone(X, y, price, limit, *setting, "bits") for setting in settings]
            cells.append(subsets_alone(X, y, price, limit, True, True, "lists"))
            print("|", " | ".join([name, *cells]), "|", flush=True)


def depths_part(data: Path, only: str, limit: float) -> None:
    """Print the effect of bounds on the search over depths: subtrees of depth two solved, and processor seconds."""
    print("\n| table | price | all | without leaf_counts | without similar_support | neither |")
    print("|---|" + "---:|" * 5, flush=True)
    for name, price in LONG.items():
        if only not in name:
            continue
        problem, cells = problem_of(*table(data / "classification" / name), price), []
        for leaf_counts, similar in ((True, True), (False, True), (True, False), (False, False)):
            start = time.process_time()
            limits = SearchLimits(time_limit=limit)
            found = solve_direct(problem, limits, leaf_counts=leaf_counts, similar_support=similar)
            star = "" if found.status == Status.OPTIMAL else "*"
            seconds = time.process_time() - start
            cells.append(f"{found.counters['depth_two_solves']:,} ({seconds:.2f}{star})")
        print("|", " | ".join([name, str(price), *cells]), "|", flush=True)


def conflicts_part(data: Path, only: str, limit: float) -> None:
    """Gaps in rows and processor seconds of whole searches, with conflict pairs and without."""
    print(
        "\n| table | rows | seed | price | objective | gap | seconds | sets | closed by pairs | gap without | seconds |"
    )
    print("|---|" + "---:|" * 10, flush=True)
    for name, n, seed, price in CONFLICTS:
        if only not in name:
            continue
        X, y = table(data / "classification" / name)
        if n:
            X = X.sample(n, random_state=seed)
            y = y.loc[X.index]
        cells = []
        for used in (True, False):
            start = time.process_time()
            found = solve_direct(problem_of(X, y, price), SearchLimits(time_limit=limit), conflict_pairs=used)
            cells += [f"{found.objective - found.lower_bound:.1f}", f"{time.process_time() - start:.1f}"]
            if used:
                cells += [f"{found.counters[c]:,}" for c in ("nodes", "closed_by_conflict_pairs")]
        print(
            "|",
            " | ".join([name, str(len(X)), str(seed), str(price), f"{found.objective:.1f}", *cells]),
            "|",
            flush=True,
        )


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Searches inside stop once the process has had so many seconds of a processor, whatever else runs beside it."""
    spent, ended, until = threading.Event(), threading.Event(), time.process_time() + seconds

    def watch() -> None:
        while not ended.wait(0.05):
            if time.process_time() >= until:
                spent.set()
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with stopped_by(spent):
            yield
    finally:
        ended.set()
        thread.join()


def gaps_part(data: Path, only: str, limit: float) -> None:
    """Gaps in rows after so many processor seconds, beside those when proofs were asked for."""
    header = [
        "table", "rows", "cuts", "price", "objective", "leaves", "lower bound", "gap", "of the objective", "asked",
        "half", "seconds", "sets",
    ]  # fmt: skip
    print("\n|", " | ".join(header), "|")
    print("|---|" + "---:|" * (len(header) - 1), flush=True)
    for (name, n, price), asked in OPEN.items():
        if only not in name:
            continue
        X, y = table(data / "classification" / name)
        if n:
            X = X.sample(n, random_state=0)
            y = y.loc[X.index]
        problem = problem_of(X, y, price)
        start = time.process_time()
        with processor_limit(limit):
            found = solve_direct(problem, SearchLimits())
        gap = found.objective - found.lower_bound
        cells = [
            name, f"{len(X):,}", f"{int((problem.data.n_bins - 1).sum()):,}", price, f"{found.objective:.2f}",
            found.tree.n_leaves, f"{found.lower_bound:.2f}", f"{gap:.1f}", f"{gap / found.objective:.2f}", asked,
            "proved" if found.status == Status.OPTIMAL else "yes" if gap <= asked / 2 else "no",
            f"{time.process_time() - start:.1f}", f"{found.counters['nodes']:,}",
        ]  # fmt: skip
        print("|", " | ".join(map(str, cells)), "|", flush=True)


def seventy_part(data: Path, only: str, limit: float, repeats: int) -> None:
    """Whole fits of 14 tables at five prices, of so many processor seconds each, and the geometric mean of these."""
    header()
    every, proved = [], 0
    for name, drawn in SEVENTY.items():
        if only not in name:
            continue
        X, y = table(data / name)
        if drawn:
            X = X.sample(drawn, random_state=0)
            y = y.loc[X.index]
        for price in PRICES:
            with processor_limit(limit):
                model, seconds = fit(X, y, price, None, 1)
            if seconds < SHORT:
                model, seconds = fit(X, y, price, None, repeats)
            proved += model.status_.proved
            every.append(seconds if model.status_.proved else UNSOLVED)
            row(Path(name).name, X, price, "", model, seconds)
    print(f"\nproved: {proved} of {len(every)}, geometric mean: {mean(every)} s")


def column_part(data: Path, only: str, limit: float) -> None:
    """Whole fits of one column whose values are all different: a wave of labels, a seventh of them wrong."""
    settings = (
        {"regularization": 0.01}, {"regularization": 0.01, "min_samples_leaf": 50}, {"max_depth": 3},
        {"regularization": 0.0, "max_depth": 6},
    )  # fmt: skip
    print("\n| distinct values | classes | missing | arguments | status | leaves | seconds |")
    print("|---:|---:|---:|---|---|---:|---:|", flush=True)
    for n, classes, missing in ((10_000, 2, 0.0), (1_000_000, 2, 0.0), (1_000_000, 5, 0.1)):
        rng = np.random.default_rng(0)
        x = rng.permutation(n) + 0.5
        y = (x / n * 20).astype(int) % classes
        wrong = rng.random(n) < 0.15
        y[wrong] = rng.integers(0, classes, wrong.sum())
        x[rng.random(n) < missing] = np.nan
        for arguments in settings:
            seconds, model = [], OptimalTreeClassifier(time_limit=limit, **arguments)
            while len(seconds) < 3:
                start = time.process_time()
                model.fit(x[:, None], y)
                seconds.append(time.process_time() - start)
            named = ", ".join(f"{name}={value}" for name, value in arguments.items())
            cells = [f"{n:,}", classes, missing, named, model.status_.value, model.tree_.n_leaves]
            print("|", " | ".join(map(str, [*cells, f"{statistics.median(seconds):.3f}"])), "|", flush=True)


def row(name: str, X, price: float, known, model, seconds: float, *more) -> None:
    """Print a line."""
    value = f"{1 + price - model.objective_value_:.4f}"
    cells = [name, f"{len(X)} x {X.shape[1]}", price, value, known, model.status_.value]
    cells += [f"{model.optimality_gap_:.4f}", f"{seconds:.4f}", f"{model.solution_.counters['nodes']:,}", *more]
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def header(*more: str) -> None:
    """Print the head of a table."""
    cells = ["table", "rows x columns", "price", "value", "best known", "status", "gap", "seconds", "sets and nodes"]
    print("\n|", " | ".join([*cells, *more]), "|")
    print("|---|---|" + "---:|" * 3 + "---|" + "---:|" * (3 + len(more)), flush=True)


def mean(seconds: list[float]) -> str:
    """Geometric mean, as text."""
    return f"{np.exp(np.mean(np.log(seconds))):.4f}"


def main():
    """Fit every table and print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--data", default=str(Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--only", default="", help="part of the tables' names")
    parser.add_argument("--parts", default="sparse,small,noisy")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sketch", help="file of the prototype")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    load_kernels(all_kernels())
    sketch = load_sketch(arguments.sketch) if arguments.sketch else None
    data, limit, repeats = Path(arguments.data), arguments.time_limit, arguments.repeats
    if "sparse" in arguments.parts:
        header(*(["sketch, seconds"] if sketch else []))
        ours, theirs = [], []
        for name, (price, known) in SPARSE.items():
            if arguments.only not in name:
                continue
            X, y = table(data / "sparse" / name)
            model, seconds = fit(X, y, price, limit, repeats)
            more = []
            if sketch and name not in LONG_FOR_THE_SKETCH:
                theirs.append(time_sketch(sketch, X, y, price, repeats))
                ours.append(seconds)
                more = [f"{theirs[-1]:.4f}"]
            row(name, X, price, known, model, seconds, *more)
        if theirs:
            print(f"\ngeometric mean: {mean(ours)} s, sketch {mean(theirs)} s")
    parts = {
        "bounds": bounds_part,
        "depths": depths_part,
        "conflicts": conflicts_part,
        "gaps": gaps_part,
        "seventy": partial(seventy_part, repeats=repeats),
        "column": column_part,
    }
    for part, lines in parts.items():
        if part in arguments.parts:
            lines(data, arguments.only, limit)
    for part, tables in (("small", dict.fromkeys(SMALL, PRICES)), ("noisy", NOISY)):
        if part not in arguments.parts:
            continue
        header()
        every = []
        for name, prices in tables.items():
            if arguments.only not in name:
                continue
            X, y = table(data / name)
            for price in prices:
                model, seconds = fit(X, y, price, limit, repeats)
                every.append(seconds)
                row(Path(name).name, X, price, "", model, seconds)
        print(f"\ngeometric mean: {mean(every)} s")


if __name__ == "__main__":
    main()
