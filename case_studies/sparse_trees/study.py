"""Sparse trees for six objectives, and accuracy against leaves, as in a paper of 2020.

Public interface used: OptimalTreeClassifier with objectives and plot_roc. The paper is "Generalized and scalable
optimal sparse decision trees" (Lin, Zhong, Hu, Rudin and Seltzer, ICML 2020).
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from tables import read_table

from policytree import OptimalTreeClassifier
from policytree.exceptions import SearchWarning
from policytree.objectives import PartialAUC, WeightedAccuracy

PRICE, CUT_EVERY = 0.01, 50
OBJECTIVES = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "weighted accuracy, omega 5": WeightedAccuracy(omega=5.0),
    "F-score": "f_score",
    "AUC": "auc",
    "partial AUC, to 0.2": PartialAUC(max_fpr=0.2),
}
PRICES = (0.2, *(k / unit for unit, most in ((100, 10), (1000, 9), (10_000, 9)) for k in range(most, 0, -1)))
LEAVES = (2, 4, 8, 16, 64)
FOLDS, SLOW_PRICE = 5, 0.005
LIMIT, PRINTED_LIMIT, PROOF_LIMIT = 5.0, 10.0, 15.0  # seconds of a fit: sections 4, 2 and 3
TABLES = ("monk1", "monk2", "monk3", "tic_tac_toe", "car", "compas")
PUBLISHED = {"monk1": (8, 100.0, 100.0), "monk2": (7, 79.3, 73.5), "tic_tac_toe": (16, 90.9, 70.8)}
SOURCES = {
    "fourclass": "the LIBSVM data page (Ho and Kleinberg)",
    "monk1": "the UCI repository (MONK's problems)",
    "monk2": "the UCI repository (MONK's problems)",
    "monk3": "the UCI repository (MONK's problems)",
    "tic_tac_toe": "the UCI repository (tic-tac-toe endgame)",
    "car": "the UCI repository (car evaluation)",
}
BORN_AGAIN = {"compas": "COMPAS-ProPublica", "fico": "FICO"}  # as 0/1 columns
BORN_AGAIN_SOURCE = "the repository vidalt/BA-Trees on GitHub"


def table(name: str, directory: Path | None, drop: str | None = "first") -> tuple[pd.DataFrame, np.ndarray]:
    """Features as 0/1 columns (one for each value but the first, or for all), and labels.

    Of the monk tables the rows for training, as in the paper.
    """
    if name in BORN_AGAIN:
        frame = read_table(BORN_AGAIN[name], BORN_AGAIN_SOURCE, directory, "born_again")
        return frame.drop(columns=["Class", "test_fold"]).astype(int), frame["Class"].to_numpy()
    frame = read_table(name, SOURCES[name], directory)
    if "split" in frame:
        frame = frame[frame["split"] == "train"].drop(columns="split")
    features, y = frame.drop(columns="target").astype(str), frame["target"].to_numpy()
    if name == "car":  # acceptable or not
        y = (y != "unacc").astype(int)
    encoder = OneHotEncoder(drop=drop, sparse_output=False, dtype=int).set_output(transform="pandas")
    return encoder.fit_transform(features), y


def show_objectives(study) -> None:
    """FourClass with a cut every 50: one proved tree an objective, and their ROC curves."""
    frame = read_table("fourclass", SOURCES["fourclass"], study.data_dir)
    X, y = np.ceil(frame[["x1", "x2"]] / CUT_EVERY) * CUT_EVERY, frame["target"]
    study.heading(f"FourClass: {y.sum()} positives of {len(y)}, a cut every {CUT_EVERY}, price {PRICE} a leaf")
    trees = {}
    for name, objective in OBJECTIVES.items():
        trees[name] = OptimalTreeClassifier(regularization=PRICE, objective=objective).fit(X, y)
    rows = {}
    for name, tree in trees.items():
        scores = {other: score_of(tree, judge, X, y) for other, judge in trees.items()}
        proof = "yes" if tree.status_.proved else f"gap {tree.optimality_gap_:.4f}"
        rows[name] = {**scores, "leaves": tree.get_n_leaves(), "proved": proof}
    study.table(pd.DataFrame(rows).T.infer_objects(), "fourclass", digits=3)
    study.show("Rows: what the tree is best at. Columns: how it scores at everything, on the rows that chose it.")
    study.show(f"\nThe tree for the AUC\n{trees['AUC'].export_text()}\n\n{trees['AUC'].certificate()}")
    figure, axes = plt.subplots(2, 3, figsize=(13.5, 9.0), layout="constrained")
    for ax, (name, tree) in zip(axes.flat, trees.items(), strict=True):
        tree.plot_roc(X, y, name=f"{tree.get_n_leaves()} leaves", ax=ax)
        ax.set_title(name)
    study.figure(figure, "fourclass_roc")


def score_of(tree, judge, X, y) -> float:
    """The score of a tree by the objective of another."""
    leaves = tree.apply(X)
    objective, codes = judge.objective_, np.asarray(y)
    weight = objective.score_weights(codes, judge.classes_, np.ones(len(codes)))
    return objective.score(
        codes, tree.tree_.action[leaves], tree.tree_.value[leaves, 0] / tree.tree_.value[leaves].sum(axis=1), weight
    )


def show_sparsity(study) -> None:
    """Accuracy against leaves on five folds, beside CART with the same numbers of leaves."""
    names, prices = (TABLES[:2], PRICES[:3]) if study.quick else (TABLES, PRICES)
    rows = []
    for name in names:
        study.step(name)
        X, y = table(name, study.data_dir)
        for price in prices:
            rows.append(
                folded(
                    name, X, y, "ours", price, lambda p=price: OptimalTreeClassifier(regularization=p, time_limit=LIMIT)
                )
            )
        for leaves in LEAVES:
            rows.append(
                folded(
                    name,
                    X,
                    y,
                    "CART",
                    leaves,
                    lambda h=leaves: DecisionTreeClassifier(max_leaf_nodes=h, random_state=0),
                )
            )
    frame = pd.DataFrame(rows)
    study.heading(f"Accuracy in percent against leaves, {FOLDS} folds, {len(prices)} prices of a leaf")
    study.table(frame, "sparsity", index=False, show=False)
    study.table(best_of_each(frame), "sparsity_best", digits=1, index=False)
    study.figure(draw_sparsity(frame), "sparsity")


def best_of_each(frame: pd.DataFrame) -> pd.DataFrame:
    """By table and method: how many fits were proved, and the setting of the best mean test accuracy."""
    rows = []
    for (name, method), part in frame.groupby(["data", "method"], sort=False):
        best = part.sort_values(["test", "leaves"], ascending=[False, True]).iloc[0]
        proved = sum(int(text.split()[0]) for text in part["proved"] if text)
        rows.append({"data": name, "method": method, "price or leaves": f"{best['price or leaves']:g}",
                     "leaves": best["leaves"], "train": best["train"], "test": best["test"],
                     "test sd": best["test sd"],
                     "proved": f"{proved} of {FOLDS * len(part)}" if method == "ours" else ""})  # fmt: skip
    return pd.DataFrame(rows)


def folded(name: str, X, y, method: str, setting: float, make) -> dict:
    """Means over folds of accuracy (training, test) and leaves, the test one's spread, and how many were proved."""
    each = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchWarning)
            tree = make().fit(X.iloc[train], y[train])
        proved = tree.status_.proved if method == "ours" else False
        parts = [100 * tree.score(X.iloc[rows], y[rows]) for rows in (train, test)]
        each.append([*parts, tree.get_n_leaves(), proved])
    train, test, leaves, proved = np.mean(each, axis=0)
    spread = np.std([test for _, test, *_ in each], ddof=1)
    proofs = f"{round(proved * FOLDS)} of {FOLDS}" if method == "ours" else ""
    return {"data": name, "method": method, "price or leaves": setting, "leaves": leaves, "train": train, "test": test,
            "test sd": spread, "proved": proofs}  # fmt: skip


def draw_sparsity(frame: pd.DataFrame):
    """Training and test accuracy against leaves."""
    names = list(dict.fromkeys(frame["data"]))
    figure, axes = plt.subplots(2, len(names), figsize=(2.9 * len(names), 5.4), layout="constrained", squeeze=False)
    for k, name in enumerate(names):
        for row, part in enumerate(("train", "test")):
            for method, color in (("ours", "#0072B2"), ("CART", "#D55E00")):
                points = frame[(frame["data"] == name) & (frame["method"] == method)].sort_values("leaves")
                axes[row, k].plot(points["leaves"], points[part], marker="o", markersize=3, color=color, label=method)
            axes[row, k].set(title=f"{name}, {part}", xlabel="leaves", ylabel="accuracy, %" if k == 0 else "")
    axes[0, 0].legend(frameon=False)
    return figure


def show_published(study) -> None:
    """Published accuracies beside ours for as many leaves: training and test, over folds of the training rows."""
    study.heading("Published trees (one fold, training and test accuracy in percent) and ours on five folds")
    rows = []
    for name, (leaves, train, test) in list(PUBLISHED.items())[: 1 if study.quick else None]:
        X, y = table(name, study.data_dir, drop=None)
        found = folded(name, X, y, "ours", leaves, lambda h=leaves: OptimalTreeClassifier(
            regularization=1e-4, max_leaf_nodes=h, time_limit=PRINTED_LIMIT))  # fmt: skip
        rows.append({"data": name, "leaves": leaves, "published train": train, "published test": test,
                     "ours train": found["train"], "ours test": found["test"], "test sd": found["test sd"],
                     "ours leaves": found["leaves"], "proved": found["proved"]})  # fmt: skip
    study.table(pd.DataFrame(rows), "published", digits=1, index=False)
    X, y = table("monk1", study.data_dir, drop=None)
    study.show(f"monk 1, all {len(y)} rows, at most 8 leaves\n"
               f"{OptimalTreeClassifier(regularization=1e-4, max_leaf_nodes=8).fit(X, y).export_text()}")  # fmt: skip


def show_times(study) -> None:
    """Seconds until the proof, on all rows."""
    study.heading(f"Time to the proof, all rows, price {SLOW_PRICE} a leaf, no depth limit, up to {PROOF_LIMIT:.0f} s")
    rows = []
    for name in TABLES[:2] if study.quick else (*TABLES, "fico"):
        X, y = table(name, study.data_dir)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SearchWarning)
            tree = OptimalTreeClassifier(regularization=SLOW_PRICE, time_limit=PROOF_LIMIT).fit(X, y)
        seconds = time.process_time() - start - tree.solution_.compile_seconds
        rows.append({"data": name, "rows": len(y), "columns": X.shape[1], "objective": tree.objective_value_,
                     "gap": tree.optimality_gap_, "leaves": tree.get_n_leaves(), "seconds": seconds})  # fmt: skip
    study.table(pd.DataFrame(rows), "times", digits=4, index=False)


def main(study) -> None:
    """Run the study."""
    show_objectives(study)
    show_published(study)
    show_times(study)
    show_sparsity(study)
