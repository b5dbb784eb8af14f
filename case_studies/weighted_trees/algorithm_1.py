"""Algorithm 1 as printed: what its sum leaves of the rows, and whether ours ends with the tree of the repeated rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from weighted_trees import data
from weighted_trees.data import reference
from weighted_trees.fitting import by_kind, folds, guessed, timed
from weighted_trees.sparsity import DEPTHS, FACTOR, FOLDS, PENALTIES, REFERENCE

from policytree import OptimalTreeClassifier
from policytree.exceptions import InputError
from policytree.solvers.approximate.duplication import integer_counts

AS_PRINTED = 99  # the largest factor that the paper allows: p < 100
LIMIT = 20


def main(study) -> None:
    """Rows that are left, then trees of all data sets, folds, depths and prices of Figs. 2 and 3."""
    study.heading("Algorithm 1: weights divided by their sum, as printed, or by the largest, as the prose has it")
    sets = data.load(study)
    rows = [{"data": each.name, "rows": len(each.y), **left(each.weight)} for each in sets]
    study.show(f"Rows with at least one copy, factor {AS_PRINTED} (printed: p < 100) and {FACTOR} x rows:")
    study.table(pd.DataFrame(rows), "algorithm_1_rows", index=False)
    study.show(
        "Leaves of the tree of the repeated rows that the real weights take back, over all fits of Figs. 2 and 3:"
    )
    rows = []
    for each in sets:
        for k, (train, _) in enumerate(folds(len(each.y), FOLDS)[: 1 if study.quick else None]):
            study.step(f"{each.name}, fold {k + 1}")
            rows += fits(each, train)
    frame = pd.DataFrame(rows)
    by = frame.groupby(["data", "divided by"], sort=False)["taken back"]
    counted = by.agg(fits="size", differ=np.count_nonzero, most="max").reset_index()
    study.table(counted, "algorithm_1_trees", index=False)
    for name, part in frame.groupby("divided by", sort=False):
        differ = np.count_nonzero(part["taken back"])
        study.show(f"Divided by the {name}: {differ} of {len(part)} trees have fewer leaves than the optimal tree of "
                   f"the repeated rows, by {part['taken back'].max():.0f} at most.")  # fmt: skip


def left(weight: np.ndarray) -> dict[str, int]:
    """How many rows are left under either division."""
    found = {}
    for name, factor, by in ((f"sum, {AS_PRINTED}", AS_PRINTED, "sum"),
                             (f"sum, {FACTOR} x rows", FACTOR * len(weight), "sum"),
                             (f"largest, {FACTOR}", FACTOR, "largest")):  # fmt: skip
        try:
            found[name] = int(np.count_nonzero(integer_counts(weight, factor, divide_by=by).counts))
        except InputError:  # no row is left, which it refuses
            found[name] = 0
    return found


def fits(each: data.Data, train: np.ndarray) -> list[dict]:
    """Every depth and price on one training part."""
    X, y, w = each.X[train], each.y[train], each.weight[train]
    made, _ = guessed(reference(*REFERENCE), X, y, w)
    guesses = by_kind(made)["th"]
    rows = []
    for name, factor in (("largest", FACTOR), ("sum", FACTOR * len(y))):
        options = {"factor": factor, "divide_by": name}
        for depth in DEPTHS:
            for price in PENALTIES:
                model = OptimalTreeClassifier(
                    depth, price, guesses=guesses, solver="duplication", solver_options=options, time_limit=LIMIT
                )
                timed(model, X, y, sample_weight=w)
                back = model.solution_.guarantees["leaves_taken_back"]
                rows.append({"data": each.name, "divided by": name, "taken back": back})
    return rows
