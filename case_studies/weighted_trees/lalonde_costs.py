"""The costs of the Lalonde study under every reading of their scaling, and what that changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from weighted_trees.data import LALONDE_SCALINGS, lalonde_costs, lalonde_labels
from weighted_trees.fitting import SECONDS, folds, proved, timed, weighted_accuracy, with_sd

from policytree import OptimalTreeClassifier

DEPTHS = (2, 3)
FOLDS, LIMIT = 5, 60


def main(study) -> None:
    """Weights by label, the best trees under each reading, and each tree judged by the others' weights."""
    study.heading("Lalonde: wrong labels cost 200 + 3 age, 100 + 3 age or 300, 'scaled linearly to 1..100'")
    X, y = lalonde_labels()
    weights = {name: lalonde_costs(X, y, name) for name in LALONDE_SCALINGS}
    rows = [{"scaling": name, "label": label, "men": int((y == label).sum()), "least": w[y == label].min(),
             "mean": w[y == label].mean(), "most": w[y == label].max(),
             "share of all weight": w[y == label].sum() / w.sum()}
            for name, w in weights.items() for label in np.unique(y)]  # fmt: skip
    for name, text in LALONDE_SCALINGS.items():
        study.show(f"{name}: {text}")
    study.show("\nWeights of the men by label:")
    study.table(pd.DataFrame(rows), "lalonde_weights", digits=3, index=False)
    codes = X.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes).astype(float)
    rows, trees = [], []
    for depth in DEPTHS[:1] if study.quick else DEPTHS:
        found = {}
        for name, w in weights.items():
            study.step(f"depth {depth}, {name}")
            for rounded in (False, True):
                given = np.floor(w + 0.5) if rounded else w
                row, model = one_tree(study, codes, y, given, depth)
                rows.append({"depth": depth, "scaling": name, "rounded": rounded, **row})
                found[name, rounded] = model.predict(codes)
                if not rounded:
                    trees.append((depth, name, model.export_text()))
        show_agreement(study, y, weights, found, depth)
    study.show(f"Weighted accuracy of the best tree, at each reading's own weights; {FOLDS} folds: mean and standard\n"
               f"deviation. {SECONDS}")  # fmt: skip
    study.table(pd.DataFrame(rows), "lalonde_trees", digits=4, index=False)
    for depth, name, text in trees:
        study.show(f"Depth {depth}, {name}\n{text}\n")


def one_tree(study, X, y, w, depth) -> tuple[dict, OptimalTreeClassifier]:
    """The best tree on all men, and its accuracy on folds."""
    model = OptimalTreeClassifier(depth, 0.0, time_limit=LIMIT)
    seconds = timed(model, X, y, sample_weight=w)
    scores = []
    for train, test in folds(len(y), FOLDS)[: 1 if study.quick else FOLDS]:
        part = OptimalTreeClassifier(depth, 0.0, time_limit=LIMIT)
        timed(part, X.iloc[train], y[train], sample_weight=w[train])
        predicted = part.predict(X)
        scores.append([weighted_accuracy(predicted[i], y[i], w[i]) for i in (train, test)])
    train, test = np.array(scores).T
    row = {"leaves": model.get_n_leaves(), "proved": proved(model), "s": seconds,
           "training": 1 - model.objective_value_, "folds, training": with_sd(train),
           "folds, held out": with_sd(test), "root": root_of(model)}  # fmt: skip
    return row, model


def root_of(model) -> str:
    """The first question."""
    return model.export_text().splitlines()[0].rstrip("?")


def show_agreement(study, y, weights, found, depth) -> None:
    """Show the accuracy of a tree found under one reading by another, and how often their predictions agree."""
    rows = []
    for (name, rounded), predicted in found.items():
        if not rounded:
            row = {"depth": depth, "tree of": name}
            row |= {f"accuracy by {other}": weighted_accuracy(predicted, y, w) for other, w in weights.items()}
            row |= {f"same label as {other}": np.mean(predicted == found[other, False]) for other in weights}
            row["same when rounded"] = np.mean(predicted == found[name, True])
            rows.append(row)
    study.show(f"Depth {depth}: each reading's tree by the others' weights, and the share of men with the same label:")
    study.table(pd.DataFrame(rows), f"lalonde_agreement_{depth}", digits=3, index=False)
