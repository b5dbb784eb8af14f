"""The paper's tables on the forests given: sizes of D, L, DL and BA+P, and what pruning costs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from born_again import data
from sklearn.metrics import accuracy_score, f1_score

from policytree import BornAgainTree
from policytree.born_again import TreeEnsemble
from policytree.born_again.pruning import prune

OBJECTIVES = {"D": "depth", "L": "leaves", "DL": "depth_then_leaves"}
SIZE_COLUMNS = [
    "D depth", "D leaves", "L depth", "L leaves", "DL depth", "DL leaves", "forest leaves", "BA+P depth", "BA+P leaves",
]  # fmt: skip
QUALITY_COLUMNS = ["forest accuracy", "forest F1", "BA+P accuracy", "BA+P F1"]


def show(study) -> None:
    """Sizes and quality, ours and the paper's."""
    study.heading("1. The paper's tables, on the forests of its ten folds")
    study.show("Hard votes, as in the paper; means of ten folds. 'forest leaves': siblings of one class are merged.\n")
    sizes, quality, changes = [], [], []
    for name in data.names(study):
        study.step(f"forests given: {name}")
        folds = [one_fold(study, name, forest) for forest in data.forests(study, name)]
        frame = pd.DataFrame(folds)
        sizes += [(name, "ours", *frame[SIZE_COLUMNS].mean()), (name, "published", *data.SIZES[name])]
        quality += [(name, "ours", *frame[QUALITY_COLUMNS].mean()), (name, "published", *data.QUALITY[name])]
        changes.append((name, *frame[["cells", "volume", "proved"]].mean()))
    index = ["data", "whose"]
    frame = pd.DataFrame(sizes, columns=[*index, *SIZE_COLUMNS])
    study.table(frame.set_index(index), "sizes")
    study.figure(picture(frame), "leaves")
    study.table(pd.DataFrame(quality, columns=[*index, *QUALITY_COLUMNS]).set_index(index), "quality", digits=3)
    study.show(agreement(sizes, quality) + "\n")
    study.show("What BA+P changes: share of the forest's cells, and of the volume that the training rows span, whose")
    study.show("class differs from the forest's; share of searches that ended with a proof.\n")
    columns = ["data", "cells", "volume", "proved"]
    study.table(pd.DataFrame(changes, columns=columns).set_index("data"), "changes", digits=3)


def agreement(sizes: list[tuple], quality: list[tuple]) -> str:
    """How many of the numbers that the forests determine are the printed ones, to the printed digit."""
    determined = ["D depth", "L leaves", "forest leaves", *QUALITY_COLUMNS[:2]]
    same, differ = 0, []
    for rows, columns, digits in ((sizes, SIZE_COLUMNS, 1), (quality, QUALITY_COLUMNS, 3)):
        for (name, _, *ours), (_, _, *published) in zip(rows[::2], rows[1::2], strict=True):
            for column, mine, printed in zip(columns, ours, published, strict=True):
                if column not in determined:
                    continue
                if abs(mine - printed) < 0.5001 * 10**-digits:
                    same += 1
                else:
                    differ.append(f"{name} {column} ({mine:.{digits + 1}f}, printed {printed})")
    found = f"Of what the forests alone determine ({', '.join(determined)}), {same} numbers are the printed ones"
    return found + (f"; not: {', '.join(differ)}." if differ else ", all of them.")


def picture(frame: pd.DataFrame):
    """Leaves of the four kinds of trees; filled: ours, open: published."""
    figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    names = list(dict.fromkeys(frame["data"]))
    for k, kind in enumerate([*OBJECTIVES, "BA+P"]):
        for whose, face in (("ours", f"C{k}"), ("published", "none")):
            leaves = frame[frame["whose"] == whose].set_index("data")[f"{kind} leaves"].reindex(names)
            x = np.arange(len(names)) + 0.15 * (k - 1.5)
            ax.scatter(x, leaves, facecolors=face, edgecolors=f"C{k}", label=kind if whose == "ours" else None)
    ax.set_yscale("log")
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel("leaves (filled: ours)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, ncols=4)
    return figure


def one_fold(study, name: str, forest: dict) -> dict:
    """One row of the tables."""
    X, y, fold = data.table(study, name)
    test = (fold == forest["fold"]).to_numpy()
    labels = np.sort(y.unique())
    ensemble = TreeEnsemble.from_arrays(
        forest["trees"], n_features=forest["n_features"], classes=labels.tolist(), feature_names=list(X.columns)
    )
    row: dict = {"forest leaves": sum(map(data.merged_leaves, forest["trees"])), "proved": 0.0}
    for key, objective in OBJECTIVES.items():
        found = BornAgainTree(ensemble, objective).fit().solution_
        if key == "D":
            pruned, report = prune(found.tree, ensemble, X[~test].to_numpy(dtype=float))
        row |= {f"{key} depth": found.depth, f"{key} leaves": found.leaves}
        row["proved"] += (found.status.value == "optimal") / len(OBJECTIVES)
    row |= {"BA+P depth": pruned.max_depth, "BA+P leaves": pruned.n_leaves}
    row |= {"cells": report.share_of_cells, "volume": report.share_of_volume}
    rows = X[test].to_numpy(dtype=float)
    predicted = {
        "forest": labels[ensemble.predict_codes(rows)],
        "BA+P": labels[pruned.action[pruned.apply(rows)]],
    }
    for model, classes in predicted.items():
        row[f"{model} accuracy"] = accuracy_score(y[test], classes)
        row[f"{model} F1"] = f1_score(y[test], classes, average="macro")
    return row
