"""Rows of any number on one machine: Parquet, codes on disk, trees of depth two and three; time, memory, a plot.

    python benchmarks/larger_than_memory.py --rows 100000000 --directory /tmp/larger_than_memory
    python benchmarks/larger_than_memory.py --part rewards --rows 20000000
    python benchmarks/larger_than_memory.py --part times --rows 1000000

Ten numbers a row (the first five continuous, cut into 64 bins; the others of 64 values) and rewards of two treatments.
Parquet files are made in the folder, encoded and fitted; the folder is deleted at the end unless ``--keep`` is given.
For the plot of cost per row, ``--rows`` takes several numbers. Memory is the process's own (anonymous pages); mapped
files are told apart. The table goes to ``results/larger_than_memory.csv``.

The part ``rewards`` begins with outcomes and treatments that depended on the covariates: doubly robust rewards in
three folds (``stream_rewards``, a fifth of the rows held out), codes, trees of depth two and three, and the advantage
of the latter over no treatment on the rows held out, with its interval beside the truth. Outcome models are histogram
boosting (100 trees), propensities logistic regression, each fitted to 1,000,000 rows at most; with ``--learners
streaming``, stochastic gradient descent on splines over all rows. The tables go to
``results/larger_than_memory_rewards.csv`` and ``results/larger_than_memory_rewards_streaming.csv``.

The part ``times`` is the same for censored times of three treatments, by the default learners in five folds: rewards
are mean times up to 1.5, and censoring depends on a covariate and on the treatment. Beside the tree's advantage it has
what every treatment brings on the rows that learn, with its interval and the truth. Its table, which no page quotes, is
``results/larger_than_memory_times.csv``.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from policytree import PolicyTree, RewardEstimator, Study
from policytree.encoded import encode, solve, stream_rewards
from policytree.study import Rewards, TimeToEvent

FEATURES = [f"x{j}" for j in range(10)]
FILE_ROWS = 1_000_000
RESULTS = Path(__file__).parent / "results"
FIELDS = ("rows", "step", "seconds", "cpu_seconds", "own_GB", "mapped_GB", "disk_GB", "objective")
VALUE_FIELDS = (*FIELDS, "value", "lower", "upper", "truth", "best_possible")
LEARNERS = {
    "sample": (HistGradientBoostingRegressor(early_stopping=False, random_state=0), LogisticRegression()),
    "streaming": (
        make_pipeline(StandardScaler(), SplineTransformer(n_knots=8), SGDRegressor(average=True, random_state=0)),
        make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", average=True, random_state=0)),
    ),
}


def make_file(path: Path, rows: int, seed: int) -> None:
    """Write a Parquet file of random rows; the second treatment is better for some rectangles of x0, x5 and x6."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=rows) for name in FEATURES[:5]}
    columns |= {name: rng.integers(0, 64, rows).astype(np.float64) for name in FEATURES[5:]}
    gain = gain_of(columns)
    columns["none"] = rng.normal(size=rows)
    columns["drug"] = columns["none"] + gain + rng.normal(size=rows)
    pq.write_table(pa.table(columns), path)


class Memory:
    """The largest own and mapped memory of this process, looked at ten times a second."""

    def __enter__(self) -> Memory:
        self.own = self.mapped = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            sizes = {line.split(":")[0]: float(line.split()[1]) / 1e6 for line in lines if line.startswith("Rss")}
            self.own = max(self.own, sizes["RssAnon"])
            self.mapped = max(self.mapped, sizes["RssFile"])


def measured(rows: int, step: str, work) -> tuple[dict, object]:
    """Run one step; its time and memory, and its result."""
    start, cpu = time.perf_counter(), time.process_time()
    with Memory() as memory:
        out = work()
    record = {
        "rows": rows,
        "step": step,
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "own_GB": round(memory.own, 3),
        "mapped_GB": round(memory.mapped, 3),
    }
    return record, out


def run(rows: int, folder: Path, n_jobs: int) -> list[dict]:
    """Make, encode and fit so many rows."""
    source, codes = folder / "parquet", folder / "codes"
    source.mkdir(parents=True)

    def make() -> None:
        for k, first in enumerate(range(0, rows, FILE_ROWS)):
            make_file(source / f"part-{k:05d}.parquet", min(FILE_ROWS, rows - first), k)

    record, _ = measured(rows, "make Parquet", make)
    size = sum(f.stat().st_size for f in source.iterdir())
    records = [record | {"disk_GB": round(size / 1e9, 3)}]
    study = Study(source, outcome=Rewards(["none", "drug"]), covariates=FEATURES)
    return records + encode_and_fit(rows, study, codes, n_jobs)[0]


def encode_and_fit(rows: int, study: Study, codes: Path, n_jobs: int) -> tuple[list[dict], PolicyTree]:
    """Encode rewards, and fit trees of depth two and three; the latter is returned, too."""
    record, data = measured(
        rows,
        "encode",
        lambda: encode(study, directory=codes, n_jobs=n_jobs, verbose=1),
    )
    records = [record | {"disk_GB": round(data.nbytes / 1e9, 3)}]
    PolicyTree(max_depth=0).fit(data)  # compiles
    for depth in (2, 3):
        tree = PolicyTree(max_depth=depth, n_jobs=n_jobs)
        record, _ = measured(rows, f"fit depth {depth}", lambda tree=tree: tree.fit(data))
        records.append(record | {"objective": f"{tree.objective_value_:.9f}"})
        print(tree.export_text())
    return records, tree


def gain_of(columns) -> np.ndarray:
    """Return the true effect of the drug."""
    return np.where((columns["x0"] > 0.3) & (columns["x5"] > 20), 1.0, -0.4) + np.where(columns["x6"] > 40, 0.3, -0.1)


def make_study(path: Path, rows: int, seed: int) -> None:
    """Write a Parquet file of an observational study: who has a larger x1 and x5 gets the drug more often."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=rows) for name in FEATURES[:5]}
    columns |= {name: rng.integers(0, 64, rows).astype(np.float64) for name in FEATURES[5:]}
    columns["gain"] = gain_of(columns)
    chance = 1 / (1 + np.exp(-0.8 * columns["x1"] - (columns["x5"] - 32) / 40))
    columns["treatment"] = np.where(rng.random(rows) < chance, "drug", "none")
    drug = columns["treatment"] == "drug"
    noise = rng.normal(size=rows)
    columns["outcome"] = columns["x1"] + 0.5 * columns["x0"] ** 2 + columns["x5"] / 32 + columns["gain"] * drug + noise
    pq.write_table(pa.table(columns), path)


def rewards_run(rows: int, folder: Path, n_jobs: int, learners: str) -> list[dict]:
    """From outcomes and treatments to a tree and its held-out value."""
    source, scored, codes = folder / "parquet", folder / "scores", folder / "codes"
    source.mkdir(parents=True)
    for k, first in enumerate(range(0, rows, FILE_ROWS)):
        make_study(source / f"part-{k:05d}.parquet", min(FILE_ROWS, rows - first), k)
    estimator = RewardEstimator(*LEARNERS[learners], cv=3, random_state=0)
    study = Study(source, treatment="treatment", outcome="outcome", covariates=FEATURES)
    ask = {"directory": scored, "n_jobs": n_jobs, "verbose": 1}
    step = f"rewards, learners: {learners}"
    record, scores = measured(rows, step, lambda: stream_rewards(estimator, study, **ask))
    files = [*scores.learning_files, *scores.held_out_files]
    records = [record | {"disk_GB": round(sum(f.stat().st_size for f in files) / 1e9, 3)}]
    fitted, tree = encode_and_fit(rows, scores.learning, codes, n_jobs)
    records += fitted
    record, values = measured(rows, "held-out value", lambda: tree.streamed_values(scores.held_out))
    found = values.set_index(["rule", "less"]).loc[("policy", "always none")]
    truth, best = true_advantage(tree, source)
    numbers = {"value": found.value, "lower": found.lower, "upper": found.upper, "truth": truth, "best_possible": best}
    return [*records, record | {name: f"{number:.5f}" for name, number in numbers.items()}]


TREATMENTS = ("none", "drug", "both")
HORIZON = 1.5


def make_times(path: Path, rows: int, seed: int) -> None:
    """Write a Parquet file of censored times; ``true_*`` are the expected times up to the horizon."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=rows) for name in FEATURES[:5]}
    columns |= {name: rng.integers(0, 64, rows).astype(np.float64) for name in FEATURES[5:]}
    logits = np.column_stack([np.zeros(rows), 0.5 * columns["x1"], (columns["x5"] - 32) / 60])
    arm = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    base = np.exp(0.3 * columns["x1"] - 0.2 * columns["x2"])
    rates = base[:, None] * np.exp(
        np.column_stack([
            np.zeros(rows), np.where(columns["x0"] > 0.3, -0.5, 0.2), np.where(columns["x5"] > 40, -0.6, 0.1),
        ])
    )  # fmt: skip
    until = rng.exponential(size=rows) / rates[np.arange(rows), arm]
    censoring = rng.exponential(size=rows) / np.exp(-1.0 + 0.5 * columns["x1"] + 0.3 * (arm == 1))
    columns["treatment"] = np.array(TREATMENTS)[arm]
    columns["time"], columns["event"] = np.minimum(until, censoring), (until <= censoring).astype(np.int64)
    for k, name in enumerate(TREATMENTS):
        columns[f"true_{name}"] = (1.0 - np.exp(-rates[:, k] * HORIZON)) / rates[:, k]
    pq.write_table(pa.table(columns), path)


def times_run(rows: int, folder: Path, n_jobs: int) -> list[dict]:
    """From censored times to a tree and its held-out value."""
    source, scored, codes = folder / "parquet", folder / "scores", folder / "codes"
    source.mkdir(parents=True)
    for k, first in enumerate(range(0, rows, FILE_ROWS)):
        make_times(source / f"part-{k:05d}.parquet", min(FILE_ROWS, rows - first), k)
    estimator = RewardEstimator(random_state=0)
    outcome = TimeToEvent("time", event="event", horizon=HORIZON)
    study = Study(source, treatment="treatment", outcome=outcome, covariates=FEATURES)
    record, scores = measured(
        rows,
        "rewards of censored times",
        lambda: stream_rewards(estimator, study, directory=scored, n_jobs=n_jobs, verbose=1),
    )
    size = sum(f.stat().st_size for f in [*scores.learning_files, *scores.held_out_files])
    records = [record | {"disk_GB": round(size / 1e9, 3)}]
    truth = ds.dataset(source).to_table(columns=[f"true_{name}" for name in TREATMENTS]).to_pandas()
    rewards = ds.dataset(scores.learning_files).to_table(columns=list(TREATMENTS)).to_pandas()
    for name in TREATMENTS:
        mean, error = rewards[name].mean(), rewards[name].std() / np.sqrt(len(rewards))
        numbers = {"value": mean, "lower": mean - 1.96 * error, "upper": mean + 1.96 * error}
        numbers["truth"] = truth[f"true_{name}"].mean()
        records.append({"rows": rows, "step": f"everybody: {name}"} | {k: f"{x:.5f}" for k, x in numbers.items()})
    fitted, tree = encode_and_fit(rows, scores.learning, codes, n_jobs)
    records += fitted
    record, values = measured(rows, "held-out value", lambda: tree.streamed_values(scores.held_out))
    found = values.set_index(["rule", "less"]).loc[("policy", "always none")]
    reached = best = 0.0
    for batch in ds.dataset(source).to_batches():
        frame = batch.to_pandas()
        means = frame[[f"true_{name}" for name in TREATMENTS]].to_numpy()
        chosen = pd.Index(TREATMENTS).get_indexer(tree.predict(frame[FEATURES]))
        reached += (means[np.arange(len(frame)), chosen] - means[:, 0]).sum()
        best += (means.max(axis=1) - means[:, 0]).sum()
    numbers = {"value": found.value, "lower": found.lower, "upper": found.upper}
    numbers |= {"truth": reached / rows, "best_possible": best / rows}
    return [*records, record | {name: f"{number:.5f}" for name, number in numbers.items()}]


def true_advantage(tree: PolicyTree, source: Path) -> tuple[float, float]:
    """Return the true gain over no drug of the tree, and of the best rule; on all rows."""
    own = best = count = 0.0
    for batch in ds.dataset(source).to_batches(columns=[*FEATURES, "gain"]):
        frame = batch.to_pandas()
        own += frame.gain[tree.predict(frame[FEATURES]) == "drug"].sum()
        best += frame.gain.clip(lower=0).sum()
        count += len(frame)
    return own / count, best / count


def plot(records: list[dict], path: Path) -> None:
    """Nanoseconds a row of every step."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for step in ("encode", "fit depth 2", "fit depth 3"):
        points = sorted((float(r["rows"]), float(r["seconds"])) for r in records if r["step"] == step)
        ax.plot([n for n, _ in points], [1e9 * s / n for n, s in points], marker="o", label=step)
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="nanoseconds a row (wall time)")
    ax.set_title("Cost per row: 10 features x 64 bins, two treatments")
    ax.grid(alpha=0.3)
    ax.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run all numbers of rows, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--directory", type=Path, default=Path("/tmp/larger_than_memory"))
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="leave the files of the last number of rows")
    parser.add_argument("--part", choices=["trees", "rewards", "times"], default="trees")
    parser.add_argument("--learners", choices=[*LEARNERS], default="sample", help="of the part rewards")
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    name = "larger_than_memory"
    if options.part == "rewards":
        name += "_rewards" if options.learners == "sample" else "_rewards_streaming"
    elif options.part == "times":
        name += "_times"
    results = options.results or RESULTS / f"{name}.csv"
    solve.FEW_ROWS = 0  # tables, however few the rows
    records: list[dict] = []
    for rows in options.rows:
        folder = options.directory / str(rows)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            if options.part == "trees":
                records += run(rows, folder, options.n_jobs)
            elif options.part == "times":
                records += times_run(rows, folder, options.n_jobs)
            else:
                records += rewards_run(rows, folder, options.n_jobs, options.learners)
        finally:
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
        with open(results, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS if options.part == "trees" else VALUE_FIELDS)
            writer.writeheader()
            writer.writerows(records)
        for record in records:
            print(record)
    if options.part == "trees":
        plot(records, results.with_suffix(".png"))


if __name__ == "__main__":
    main()
