"""The paper's figures 2, 10 to 15 and 19 to 21: the weight's trade-off, all pairs of algorithms, times, three trees."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import studentized_range
from test_costs import comparison, data

from policytree import LowCostTreeClassifier, choose_complexity_weight
from policytree.exceptions import InputError

OF_THE_PAPER = ("iris", "ilpd", "breast_w", "tic_tac_toe")  # those of its twenty tables that are among the files
WEIGHTS = (0.0, 0.1, 1.0, 10.0, 100.0, 1_000.0)
NAMES = ("EC4.5", "ECART")
TIMED = ("C4.5", "CART", "EC4.5", "ECART", "ASR", "IP", "BAL")
TIMED_TABLES = (*OF_THE_PAPER, "fico_heloc", "compas")
TIMED_ROWS, REPEATS = 1_500, 3
PRINTED = ("C4.5", "EC4.5", "ASR")
MEASURES = {"AUC": ("AUC", True), "expected cost": ("expected_cost", False), "nodes": ("nodes", False)}
KEPT = Path(__file__).with_name("results") / "tables.csv"  # of the comparison of all algorithms
COSTS = ("unit", "random")


def main(study) -> None:
    """All four."""
    trade_off(study)
    nemenyi(study)
    times(study)
    three_trees(study)


# --- Fig. 2: the weight of the impurity reduction ---


def trade_off(study) -> None:
    """Held-out AUC and cost of EC4.5 and ECART for every weight."""
    splits = 2 if study.quick else comparison.SPLITS
    study.heading(f"Fig. 2: what the weight (lambda) trades, {splits} splits, held-out rows")
    rows = []
    for name in OF_THE_PAPER[: 1 if study.quick else None]:
        study.step(f"weights: {name}")
        table = data.read("classification", name, study.data_dir)
        rows += [row for costs in COSTS for seed in range(splits) for row in one_path(table, costs, seed)]
    each = pd.DataFrame(rows)
    keys = ["table", "costs", "algorithm", "weight"]
    by = each.groupby(keys, sort=False)
    means = by[["AUC", "expected_cost", "nodes"]].mean()
    means["AUC sd"], means["cost sd"] = by["AUC"].std(), by["expected_cost"].std()
    means = means.reset_index()
    study.table(means, "weights", digits=3, index=False, show=False)
    ends = means[means["weight"].isin((WEIGHTS[0], WEIGHTS[-1])) & (means["algorithm"] == "EC4.5")]
    study.show(
        "EC4.5 with the smallest and the largest weight: means of the splits, and standard deviations over them:"
    )
    study.table(ends, "weights_ends", digits=3, index=False)
    study.figure(draw_weights(means), "weights")


def one_path(table: data.Table, costs: str, seed: int) -> list[dict]:
    """Both algorithms with every weight on one split."""
    train, _, judge = data.split(table.y, seed)
    tests = data.Tests(table.X.iloc[train])
    X, held_out = (tests(table.X.iloc[rows]).to_numpy() for rows in (train, judge))
    arguments = {"feature_costs": comparison.prices(len(tests.names), costs, seed),
                 "min_probability": comparison.smallest_leaf(len(train))}  # fmt: skip
    rows = []
    for name in NAMES:
        for weight in WEIGHTS:
            tree = LowCostTreeClassifier.named(name, **arguments, complexity_weight=weight).fit(X, table.y[train])
            rows.append({"table": table.name, "costs": costs, "seed": seed, "algorithm": name, "weight": weight,
                         **comparison.measures(tree, held_out, table.y[judge])})  # fmt: skip
    return rows


def draw_weights(means: pd.DataFrame):
    """AUC against cost; a line goes from the smallest weight (a ring) to the largest."""
    names = list(dict.fromkeys(means["table"]))
    figure, axes = plt.subplots(2, len(names), figsize=(3.1 * len(names), 5.6), layout="constrained", squeeze=False)
    for k, name in enumerate(names):
        for ax, costs in zip(axes[:, k], COSTS, strict=True):
            for algorithm, color in zip(NAMES, ("#0072B2", "#D55E00"), strict=True):
                part = means[(means["table"] == name) & (means["costs"] == costs) & (means["algorithm"] == algorithm)]
                ax.plot(part["expected_cost"], part["AUC"], marker="o", markersize=4, color=color, label=algorithm)
                ax.plot(part["expected_cost"].iloc[0], part["AUC"].iloc[0], "o", markersize=9, markerfacecolor="none",
                        color=color, label=None)  # fmt: skip
            ax.set(title=f"{name}, {costs} costs", xlabel="expected cost, held out")
        axes[0, 0].set_ylabel("ROC AUC, held out")
        axes[1, 0].set_ylabel("ROC AUC, held out")
    axes[0, 0].legend(frameon=False)
    return figure


# --- Figs. 10 to 15: all pairs, by AUC, cost and size ---


def nemenyi(study) -> None:
    """Mean ranks of the kept comparison, and which of all pairs Nemenyi's test does not tell apart."""
    if not KEPT.is_file():
        raise InputError(f"{KEPT} is not there; run the study first, which keeps it.")
    kept = pd.read_csv(KEPT)
    n_tables, algorithms = kept["table"].nunique(), list(comparison.ALGORITHMS)
    distance = critical_distance(len(algorithms), n_tables)
    study.heading(f"Figs. 10 to 15: all pairs of {len(algorithms)} algorithms on {n_tables} tables (Nemenyi)")
    study.show(f"Critical difference of mean ranks (Nemenyi, level {comparison.LEVEL}): {distance:.2f}\n")
    ranks, told = {}, []
    for costs in COSTS:
        for measure, (column, largest_first) in MEASURES.items():
            rank = comparison.ranks(kept[kept["costs"] == costs], column, largest_first=largest_first)
            ranks[costs, measure] = rank.loc[algorithms]
            apart = np.abs(rank.to_numpy()[:, None] - rank.to_numpy()[None]) > distance
            told.append(f"{costs} costs, {measure}: {int(apart.sum() / 2)} of "
                        f"{len(rank) * (len(rank) - 1) // 2} pairs are told apart; best {rank.idxmin()} "
                        f"({rank.min():.2f}), not told from it: {', '.join(near(rank, distance))}")  # fmt: skip
    table = pd.DataFrame(ranks)
    table.columns = [f"{costs}: {measure}" for costs, measure in table.columns]
    study.table(table, "nemenyi_ranks", digits=2)
    study.show("\n".join(told))
    study.figure(draw_diagrams(ranks, distance), "nemenyi")


def critical_distance(algorithms: int, tables: int) -> float:
    """Nemenyi: mean ranks of any two algorithms further apart than this differ at the level (Demšar 2006)."""
    q = studentized_range.ppf(1 - comparison.LEVEL, algorithms, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(algorithms * (algorithms + 1) / (6 * tables)))


def near(rank: pd.Series, distance: float) -> list[str]:
    """The others that are not told from the best one, best first."""
    others = rank.drop(rank.idxmin()).sort_values()
    return list(others[others - rank.min() <= distance].index) or ["none"]


def draw_diagrams(ranks: dict, distance: float):
    """One line of ranks a measure; bars join algorithms that are not told apart."""
    figure, axes = plt.subplots(len(MEASURES), 2, figsize=(12.5, 9.0), layout="constrained")
    for (costs, measure), rank in ranks.items():
        ax = axes[list(MEASURES).index(measure), COSTS.index(costs)]
        ordered = rank.sort_values()
        height = 1.0 + 0.5 * np.arange(len(ordered) - len(ordered) // 2)
        ax.axhline(0, color="black", linewidth=0.8)
        for k, (name, value) in enumerate(ordered.items()):
            left = k < len(ordered) / 2
            y = -height[k if left else len(ordered) - 1 - k]
            end = 0.2 if left else len(ordered) + 0.8
            color = "#D55E00" if name in comparison.REGULARIZED else "#444444"
            ax.plot([value, value, end], [0, y, y], color=color, linewidth=0.8)
            ax.annotate(f"{name} {value:.1f}", (end, y), ha="right" if left else "left", va="center", fontsize=8,
                        color=color, xytext=(-3 if left else 3, 0), textcoords="offset points")  # fmt: skip
        for k, (low, high) in enumerate(cliques(ordered.to_numpy(), distance)):
            ax.plot([low - 0.05, high + 0.05], [-0.22 - 0.13 * (k % 5)] * 2, color="black", linewidth=2.4)
        ax.plot([1, 1 + distance], [0.75, 0.75], color="black", linewidth=1.5)
        ax.text(1 + distance / 2, 0.85, f"critical difference {distance:.2f}", ha="center", fontsize=8)
        ax.set(xlim=(-1.6, len(ordered) + 2.6), ylim=(-height[-1] - 0.4, 1.3), title=f"{measure}, {costs} costs")
        ax.set_yticks([])
        ax.set_xticks(range(1, len(ordered) + 1))
        for side in ("left", "right", "top", "bottom"):
            ax.spines[side].set_visible(False)
    return figure


def cliques(ordered: np.ndarray, distance: float) -> list[tuple[float, float]]:
    """First and last rank of every largest run of neighbours within the distance, two at least."""
    runs = []
    for k, low in enumerate(ordered):
        last = int(np.searchsorted(ordered, low + distance, side="right")) - 1
        if last > k and (not runs or last > runs[-1][1]):
            runs.append((k, last))
    return [(float(ordered[a]), float(ordered[b])) for a, b in runs]


# --- running time ---


def times(study) -> None:
    """Processor seconds of one fit beside C4.5's."""
    study.heading(f"Seconds of one fit, at most {TIMED_ROWS:,} rows, the best of {REPEATS}, random costs, no pruning")
    rows = []
    for name in TIMED_TABLES[: 1 if study.quick else None]:
        study.step(f"times: {name}")
        table = data.read("classification", name, study.data_dir, TIMED_ROWS)
        X = data.Tests(table.X)(table.X).to_numpy()
        costs = comparison.prices(X.shape[1], "random", 0)
        row = {"table": table.name, "rows": len(X), "tests": X.shape[1]}
        for algorithm in TIMED:
            tree = LowCostTreeClassifier.named(algorithm, feature_costs=costs,
                                                min_probability=comparison.smallest_leaf(len(X)))  # fmt: skip
            tree.fit(X, table.y)  # compiles
            row[algorithm] = min(seconds(tree, X, table.y) for _ in range(REPEATS))
        rows.append(row)
    frame = pd.DataFrame(rows)
    study.table(frame, "fit_seconds", digits=4, index=False)
    ratio = frame["EC4.5"] / frame["C4.5"]
    study.show(f"EC4.5 takes {ratio.min():.1f} to {ratio.max():.1f} times C4.5's time, {ratio.median():.1f} in the "
               "median (the paper: 3 to 4 times)")  # fmt: skip


def seconds(tree, X, y) -> float:
    """Processor seconds of one fit."""
    start = time.process_time()
    tree.fit(X, y)
    return time.process_time() - start


# --- Figs. 19 to 21: three trees of breast-w ---


def three_trees(study) -> None:
    """C4.5, EC4.5 and ASR on breast-w, leaves of at least 1 %, unit costs: their questions, AUC and expected height."""
    study.heading("Figs. 19 to 21: three trees of breast-w, nodes of 1 % of the rows are leaves, unit costs")
    table = data.read("classification", "breast_w", study.data_dir)
    rows, words = [], []
    for name in PRINTED:
        found = []
        for seed in range(2 if study.quick else comparison.SPLITS):
            train, choose, judge = data.split(table.y, seed)
            tests = data.Tests(table.X.iloc[train])
            X = [tests(table.X.iloc[part]) for part in (train, choose, judge)]
            tree = LowCostTreeClassifier.named(name, min_probability=0.01)
            if name == "EC4.5":
                weight = choose_complexity_weight(
                    tree, X[0], table.y[train], X[1], table.y[choose], weights=comparison.WEIGHTS
                ).estimator.complexity_weight
                tree = LowCostTreeClassifier.named(name, min_probability=0.01, complexity_weight=weight)
            tree.fit(X[0], table.y[train])
            found.append(list(comparison.measures(tree, X[2], table.y[judge]).values()))
            if seed == 0:
                words.append(f"{name}, first split\n{tree.export_text()}")
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        rows.append({"tree": name, "AUC": mean[0], "AUC sd": spread[0], "expected height": mean[1],
                     "height sd": spread[1], "nodes": mean[2]})  # fmt: skip
    study.table(pd.DataFrame(rows), "breast_w_trees", digits=3, index=False)
    study.show("\n\n".join(words))
