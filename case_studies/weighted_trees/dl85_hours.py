"""DL8.5 at the paper's hour (Figs. 2 and 3): which of its fits end within minutes, and how long the others may take."""

from __future__ import annotations

import pandas as pd
from weighted_trees import data, peers
from weighted_trees.data import reference
from weighted_trees.fitting import SECONDS, by_kind, folds, guessed
from weighted_trees.sparsity import DL85_DEPTHS, LIMIT, REFERENCE, Settings, dl85

from policytree.exceptions import InputError

DEPTHS = (*DL85_DEPTHS, 5)
FOLDS = 5
PATIENCE = 180  # seconds of a fit of the first fold
SOON = 20.0  # seconds; what ends so soon in the first fold is run in the others


def main(study) -> None:
    """One table: fits of the published setting, those run, those that ended, and hours of those that were not run."""
    if not peers.installed("DL8.5"):
        raise InputError(f"This part is about DL8.5: `pip install {peers.PACKAGES['DL8.5']}`.")
    study.heading(f"DL8.5 on rows that are repeated, guessed thresholds: {FOLDS} folds, depths to {DEPTHS[-1]}")
    study.show(f"The first fold with {PATIENCE} s a fit; the others where that ended within {SOON:g} s. {SECONDS}\n")
    rows = []
    for each in data.load(study):
        soon = DEPTHS[:2] if study.quick else DEPTHS
        for k, (train, test) in enumerate(folds(len(each.y), FOLDS)[: 2 if study.quick else None]):
            study.step(f"{each.name}, fold {k + 1}, depths {', '.join(map(str, soon))}")
            made, _ = guessed(reference(*REFERENCE), each.X[train], each.y[train], each.weight[train])
            guesses = by_kind(made)["th"]
            found = dl85(each, train, test, guesses, Settings(dl85_depths=tuple(soon), peer_limit=PATIENCE))
            rows += [{"data": each.name, "depth": depth, "fold": k, "columns": sum(map(len, guesses.thresholds)), **row}
                     for depth, row in zip(soon, found, strict=True)]  # fmt: skip
            if k == 0:
                soon = [r["depth"] for r in rows if r["data"] == each.name and r["proved"] and r["seconds"] < SOON]
    fits = pd.DataFrame(rows).drop(columns=["method", "setting"])
    study.table(fits, "dl85_hours_fits", index=False, show=False)
    by = fits.groupby(["data", "depth"], sort=False)
    table = by.agg(columns=("columns", "median"), run=("fold", "size"), ended=("proved", "sum"),
                   seconds=("seconds", "median"), most=("seconds", "max"), train=("train", "mean"),
                   test=("test", "mean")).reset_index()  # fmt: skip
    table.insert(3, "published", FOLDS)
    table["hours left, at most"] = (FOLDS - table["ended"]) * LIMIT / 3600
    study.table(table, "dl85_hours", digits=3, index=False)
    study.show(f"{table['ended'].sum()} of {table['published'].sum()} fits ended; the others would take at most "
               f"{table['hours left, at most'].sum():.0f} hours at an hour each, and were not run.")  # fmt: skip
