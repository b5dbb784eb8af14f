"""Figs. 2 and 3: accuracy against the number of leaves, and against seconds; three solvers and their rivals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier
from weighted_trees import peers
from weighted_trees.data import binary, load, reference
from weighted_trees.fitting import COLORS, SECONDS, by_kind, folds, guessed, proved, timed, weighted_accuracy

from policytree import OptimalTreeClassifier

PENALTIES = (0.02, 0.005, 0.001)  # --published: ALL_PENALTIES
ALL_PENALTIES = (0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
DEPTHS = (2, 3, 4, 5)
TIME_LIMIT, PEER_LIMIT = 10, 5  # --published: LIMIT for both
LIMIT = 3_600
FACTOR = 100  # of duplication: rows of the largest weight stand that often
AMPLIFICATION = 1.0  # of sampling
SOLVERS = {
    "direct": {},
    "duplication": {"solver": "duplication", "solver_options": {"factor": FACTOR}},
    "sampling": {"solver": "sampling", "solver_options": {"amplification": AMPLIFICATION}, "random_state": 0},
}
CART_LEAVES = (2, 3, 4, 6, 8, 12, 16, 32)
DL85_DEPTHS = (1, 2, 3, 4)  # --published: the fits that dl85_hours.py keeps, to depth 5
FOLDS = 3  # --published: 5
REFERENCE = (30, 2)  # trees, and their depth
PUBLISHED_TAKES = "five folds, six prices, at most an hour a fit: eleven minutes; goes on with a run that ended"
HOURS = Path(__file__).parent / "results" / "dl85_hours_fits.csv"  # DL8.5 at the published setting


@dataclass(frozen=True)
class Settings:
    """Settings that differ between a run of minutes and the paper's."""

    folds: int = FOLDS
    penalties: tuple[float, ...] = PENALTIES
    dl85_depths: tuple[int, ...] = DL85_DEPTHS
    limit: int = TIME_LIMIT
    peer_limit: int = PEER_LIMIT


def main(study) -> None:
    """Make these figures alone."""
    show(study, load(study))


def show(study, sets) -> None:
    """Fit everything on the same training parts, tables by data set and method, two pictures."""
    chosen = Settings(5, ALL_PENALTIES, (), LIMIT, LIMIT) if study.published else Settings()
    study.heading(f"2. Figs. 2 and 3: leaves, seconds and weighted accuracy (means of {chosen.folds} folds)")
    peer = f"with a limit of {chosen.peer_limit:,} s where the paper has an hour"
    if study.published:
        peer = "as dl85_hours.py kept its fits (all that end within minutes)"
    study.show(
        f"Our trees: depths {', '.join(map(str, DEPTHS))}, each with every price of a leaf, thresholds guessed by 30\n"
        f"boosted trees of depth 2, a limit of {chosen.limit:,} s. Duplication with p = {FACTOR}, sampling with r = "
        f"{AMPLIFICATION:g}; DL8.5 on the\nduplicated rows and the same thresholds, {peer}.\n"
        f"Seconds of one fit, without guessing. {SECONDS}"
    )
    table = all_folds(study, sets, chosen)
    if study.published:
        hours = pd.read_csv(HOURS).drop(columns="columns")
        hours["setting"] = "depth " + hours.pop("depth").astype(str)
        table = pd.concat([table, hours.assign(method="DL8.5")], ignore_index=True)
        order = {data.name: place for place, data in enumerate(sets)}
        table = table.sort_values("data", key=lambda names: names.map(order), kind="stable")
    table["proved"] = table["proved"].map({True: 1.0, False: 0.0})
    columns = ["leaves", "train", "test", "seconds", "proved"]
    mean = table.groupby(["data", "method", "setting"], sort=False)[columns].mean().reset_index()
    by = table.groupby(["data", "method", "setting"], sort=False)
    mean["folds"] = by.size().to_numpy()
    mean["test sd"] = by["test"].std(ddof=0).to_numpy()
    study.table(mean, "fig2_fig3", digits=4, index=False)
    show_best(study, mean)
    draw(study, mean, "leaves", "fig2", "leaves")
    draw(study, mean, "seconds", "fig3", "seconds of one fit")


def all_folds(study, sets, chosen: Settings) -> pd.DataFrame:
    """Every fit; the file is written after each, and a published run does not repeat the fits that it has."""
    file = study.results / "fig2_fig3_folds.csv"
    rows = pd.read_csv(file).to_dict("records") if study.published and file.is_file() else []
    for data in sets:
        for k, (train, test) in enumerate(folds(len(data.y), chosen.folds)[: 1 if study.quick else None]):
            study.step(f"Figs. 2 and 3: {data.name}, fold {k + 1}")
            done = {(row["method"], row["setting"]) for row in rows if (row["data"], row["fold"]) == (data.name, k)}
            for row in one_fold(data, train, test, chosen, done):
                rows.append({"data": data.name, "fold": k, **row})
                pd.DataFrame(rows).to_csv(file, index=False, float_format="%.8g", lineterminator="\n")
    return pd.DataFrame(rows)


def one_fold(data, train, test, chosen: Settings, done: set[tuple[str, str]]) -> Iterator[dict]:
    """Every method at every setting, but for those that are done."""
    X, y, w = data.X[train], data.y[train], data.weight[train]
    made, guessing = guessed(reference(*REFERENCE), X, y, w)
    guesses = by_kind(made)["th"]
    first = {"method": "guessing thresholds", "setting": "30 x depth 2", "seconds": guessing}
    if (first["method"], first["setting"]) not in done:
        yield {**first, "leaves": float(sum(map(len, guesses.thresholds)))}
    models: list = [
        (name, f"depth {depth}, {penalty:g}", OptimalTreeClassifier(
            depth, penalty, guesses=guesses, time_limit=chosen.limit, **SOLVERS[name]))
        for depth, penalty, name in product(DEPTHS, chosen.penalties, SOLVERS)
    ]  # fmt: skip
    models += [("CART", f"{n} leaves", DecisionTreeClassifier(max_leaf_nodes=n, random_state=0)) for n in CART_LEAVES]
    models.append(("GBDT", "100 trees", GradientBoostingClassifier(random_state=0)))
    for method, setting, model in models:
        if (method, setting) in done:
            continue
        seconds = timed(model, X, y, sample_weight=w)
        accuracy = [weighted_accuracy(model.predict(data.X[i]), data.y[i], data.weight[i]) for i in (train, test)]
        trees = model.estimators_.ravel() if method == "GBDT" else [model]
        yield {
            "method": method, "setting": setting, "seconds": seconds,
            "leaves": float(sum(tree.get_n_leaves() for tree in trees)),
            "train": accuracy[0], "test": accuracy[1], "proved": proved(model) if method == "direct" else None,
        }  # fmt: skip
    yield from dl85(data, train, test, guesses, chosen)


def dl85(data, train, test, guesses, chosen: Settings) -> list[dict]:
    """DL8.5 on physically duplicated rows (Algorithm 1, by the largest weight)."""
    if not (chosen.dl85_depths and peers.installed("DL8.5")):
        return []
    w = data.weight[train]
    copies = np.repeat(np.arange(len(train)), np.floor(FACTOR * w / w.max() + 0.5).astype(int))
    X = binary(data.X, guesses.thresholds)
    answers = peers.run([
        peers.Fit("DL8.5", X[train], data.y[train], depth, chosen.peer_limit, rows=copies, X_test=X[test])
        for depth in chosen.dl85_depths
    ])  # fmt: skip
    rows = []
    for depth, answer in zip(chosen.dl85_depths, answers, strict=True):
        row = {"method": "DL8.5", "setting": f"depth {depth}", "seconds": answer.seconds, "proved": answer.proved}
        if answer.predicted is not None:
            row |= {"leaves": float(answer.n_leaves), "train": weighted_accuracy(answer.predicted, data.y[train], w),
                    "test": weighted_accuracy(answer.held_out, data.y[test], data.weight[test])}  # fmt: skip
        rows.append(row)
    return rows


def show_best(study, mean: pd.DataFrame) -> None:
    """Of every method, the setting with the best held-out accuracy."""
    study.show("Every method at the setting of its best held-out accuracy (chosen with hindsight, alike for all):")
    with_trees = mean[mean["test"].notna()]
    best = with_trees.loc[with_trees.groupby(["data", "method"], sort=False)["test"].idxmax()]
    study.table(best.drop(columns=["proved", "folds"]), "best_held_out", digits=4, index=False)
    direct = mean[mean["method"] == "direct"].set_index(["data", "setting"])
    rows = []
    for name in ("duplication", "sampling"):
        other = mean[mean["method"] == name].set_index(["data", "setting"])
        both = direct.join(other.add_suffix("_other"))
        for data, part in both.groupby("data", sort=False):
            rows.append({"data": data, "solver": name, "seconds / direct": (part.seconds_other / part.seconds).median(),
                         "lost training accuracy, mean": (part.train - part.train_other).mean(),
                         "most": (part.train - part.train_other).max(),
                         "lost held-out accuracy, mean": (part.test - part.test_other).mean()})  # fmt: skip
    study.show("Duplication and sampling against direct, at equal prices of a leaf:")
    study.table(pd.DataFrame(rows), "against_direct", digits=4, index=False)
    share = direct["proved"].astype(float).mean()
    study.show(f"Direct: {share:.1%} of the fits proved within their limit (given the guessed thresholds)\n")


def draw(study, mean: pd.DataFrame, x: str, name: str, label: str) -> None:
    """Training accuracy above, held-out accuracy below, one column per data set."""
    sets = list(dict.fromkeys(mean["data"]))
    figure, axes = plt.subplots(2, len(sets), figsize=(3.0 * len(sets), 5.6), layout="constrained", squeeze=False)
    markers = {"direct": "o", "duplication": "s", "sampling": "^", "CART": "x", "DL8.5": "D", "GBDT": "*"}
    for column, data in enumerate(sets):
        for ax, what in zip(axes[:, column], ("train", "test"), strict=True):
            for method, marker in markers.items():
                part = mean[(mean["data"] == data) & (mean["method"] == method)].sort_values(x)
                if method == "GBDT" and x == "leaves":
                    ax.axhline(part[what].iloc[0], color=COLORS[method], linestyle=":", label="GBDT (hundreds)")
                    continue
                if method in SOLVERS and x == "leaves":  # of all depths and prices, what fits best at its size
                    part = part[part["train"] >= part["train"].cummax() - 1e-9]
                # Duplication often finds the direct solver's tree: that one's marker is larger and hollow.
                size, face = (9, "none") if method == "direct" else (5, None)
                ax.plot(part[x], part[what], linestyle="none" if x == "seconds" else "-", marker=marker,
                        markersize=size, markerfacecolor=face, color=COLORS[method], label=method)  # fmt: skip
            ax.set_xscale("log", base=2 if x == "leaves" else 10)
            if x == "leaves":
                ax.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
            else:
                ax.xaxis.set_major_formatter("{x:g}")
        axes[0, column].set_title(data)
        axes[1, column].set_xlabel(label)
    axes[0, 0].set_ylabel("weighted accuracy, training")
    axes[1, 0].set_ylabel("weighted accuracy, held out")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    study.figure(figure, name)
