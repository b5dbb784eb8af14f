"""Fewer trees first, then one tree: what functionally identical pruning leaves of the forests, and what that helps."""

from __future__ import annotations

import math
import warnings

import pandas as pd
from born_again import data
from sklearn.ensemble import RandomForestClassifier

from policytree import BornAgainTree
from policytree.born_again import TreeEnsemble, prune_ensemble
from policytree.exceptions import InputError, SearchWarning

LIMIT = 10.0  # seconds for pruning, and for a born-again tree
MEMORY = 2e9  # bytes
LARGE = (20, 30)  # trees of forests grown here


def main(study) -> None:
    """The forests given, and larger ones."""
    study.heading("Fewer trees that decide alike at every point: hard votes, whole weights")
    study.show(f"The authors' sixty forests of ten trees, {LIMIT:g} s each. 'proved': no fewer trees are enough (with\n"
               "weights up to 10). 'unpruned': forests that lost no tree; 'cells' and 'cells left': of the grid of\n"
               "thresholds, geometric means.\n")  # fmt: skip
    rows = []
    for name in data.names(study):
        study.step(f"forests given: {name}")
        rows += [{"data": name, **pruned(given_forest(forest))} for forest in data.forests(study, name)]
    frame = pd.DataFrame(rows)
    study.table(frame, "fewer_folds", index=False, show=False)
    study.table(of_each_data_set(frame), "fewer")
    whole = frame["trees left"] == frame["trees"]
    study.show(f"{(~whole).sum()} of {len(frame)} forests lose trees, {frame['trees left'].min()} are left at least; "
               f"{frame['proved'].sum()} are proved.\n")  # fmt: skip
    study.show("Forests of depth three grown here, first fold. The born-again tree of fewest leaves from all trees,\n"
               f"and from those left, at most {LIMIT:g} s each ('+': proved smallest):\n")  # fmt: skip
    rows = []
    for name in data.names(study):
        X, y, fold = data.table(study, name)
        for size in (10,) if study.quick else LARGE:
            study.step(f"{size} trees: {name}")
            train = (fold != 1).to_numpy()
            forest = RandomForestClassifier(size, max_depth=3, random_state=0).fit(X[train], y[train])
            rows.append({"data": name, **both(forest)})
    study.table(pd.DataFrame(rows), "fewer_large", digits=3, index=False)


def given_forest(forest: dict) -> TreeEnsemble:
    """A forest of the authors', whose classes are numbered."""
    return TreeEnsemble.from_arrays(forest["trees"], n_features=forest["n_features"])


def cells(ensemble: TreeEnsemble) -> int:
    """Cells of the grid of its thresholds."""
    return math.prod(len(each) + 1 for each in ensemble.thresholds())


def pruned(forest: TreeEnsemble) -> dict:
    """Prune one forest; return its size before and after."""
    found = prune_ensemble(forest, time_limit=LIMIT)
    return {"trees": len(forest.trees), "trees left": found.trees, "no fewer than": found.trees_bound,
            "proved": found.trees == found.trees_bound, "leaves": forest.n_leaves,
            "leaves left": found.ensemble.n_leaves, "cells": cells(forest), "cells left": cells(found.ensemble),
            "seconds": found.seconds}  # fmt: skip


def of_each_data_set(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the folds."""
    by = frame.assign(unpruned=frame["trees left"] == frame["trees"]).groupby("data", sort=False)
    table = by[["trees", "trees left", "leaves", "leaves left", "proved", "unpruned"]].mean()
    for name in ("cells", "cells left"):
        table[name] = by[name].agg(lambda some: math.exp(some.map(math.log).mean()))
    return table.assign(seconds=by["seconds"].median())


def both(forest: RandomForestClassifier) -> dict:
    """Born-again trees of a forest, and of what pruning leaves of it."""
    found = prune_ensemble(forest, time_limit=LIMIT)
    whole, part = BornAgainTree(forest, "leaves", **limits("hard")), BornAgainTree(found.ensemble, "leaves", **limits())
    row = {"trees": len(found.weights), "left": found.trees, "no fewer than": found.trees_bound, "by": found.method,
           "s": found.seconds, "cells left": cells(found.ensemble)}  # fmt: skip
    for name, tree in (("of all", whole), ("of those left", part)):
        row |= {
            f"leaves {name}": fitted(tree),
            f"s {name}": tree.solution_.seconds if hasattr(tree, "tree_") else LIMIT,
        }
    return row


def limits(voting: str = "soft") -> dict:
    """Arguments of every born-again tree; votes of a pruned forest are weighted already."""
    return {"voting": voting, "time_limit": LIMIT, "memory_limit": MEMORY}


def fitted(tree: BornAgainTree) -> str:
    """Its leaves, with a mark if they are proved to be fewest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        try:
            tree.fit()
        except InputError:  # no faithful tree in twice the time
            return "none"
    return f"{tree.get_n_leaves():,}{'+' if tree.status_.proved else ''}"
