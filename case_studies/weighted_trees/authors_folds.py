"""Some of Tables 4 to 7 on the authors' own five folds, which their printed trees gave away: ours beside GOSDT's."""

from __future__ import annotations

import pandas as pd
from weighted_trees.data import table
from weighted_trees.fitting import AUTHORS_SEED, SECONDS, folds, with_sd
from weighted_trees.guesses import DEPTH, FILES, FOLDS, PRICES, one_fit
from weighted_trees.published import tables

REFERENCES = ((40, 1), (30, 2))
PAIRS = {"ours th": "GOSDT th", "ours th+lb": "GOSDT th+lb"}


def main(study) -> None:
    """Means and standard deviations of the folds, theirs and ours."""
    study.heading(f"Tables 4 to 7 on the authors' folds: depth {DEPTH}, KFold(5, shuffle=True, {AUTHORS_SEED})")
    study.show(f"Two of four references. {SECONDS}\n")
    rows = []
    for name in ("COMPAS",) if study.quick else FILES:
        X, y = table(FILES[name], study.data_dir)
        X = X.to_numpy()
        for k, (train, test) in enumerate(folds(len(y), FOLDS, AUTHORS_SEED)[: 2 if study.quick else None]):
            for size in REFERENCES[: 1 if study.quick else None]:
                study.step(f"{name}, fold {k}, {size}")
                _, found, _ = one_fit(X, y, train, test, size, PRICES[name])
                rows += [{"data": name, "reference": size, "fold": k, **row} for row in found]
    fits = pd.DataFrame(rows)
    printed = tables().set_index(["data", "trees", "depth", "method"])
    shown, apart = [], []
    for (name, size, method), part in fits.groupby(["data", "reference", "method"], sort=False):
        line = printed.loc[(name, *size, PAIRS[method])]
        row = {
            "data": name,
            "reference": str(size),
            "guesses": method.removeprefix("ours "),
            "proved": part["proved"].sum(),
        }
        for what in ("train", "test"):
            theirs = "" if pd.isna(line[what]) else f"{line[what]:.3f}±{line[f'{what} sd']:.3f}"
            row |= {f"their {what}": theirs or line["seconds"], what: with_sd(part[what])}
        shown.append(row)
        if theirs:
            ended = line["seconds"] != "limit"
            apart.append({"guesses": row["guesses"], "ended": ended, "train": part["train"].mean() - line["train"],
                          "test": part["test"].mean() - line["test"]})  # fmt: skip
    study.table(pd.DataFrame(shown), "authors_folds", index=False)
    gaps = pd.DataFrame(apart)
    for guesses, part in gaps[gaps["ended"]].groupby("guesses", sort=False):
        study.show(f"{guesses}, where the published search ended ({len(part)} settings): ours less theirs, training "
                   f"{spread(part['train'])}; test {spread(part['test'])}")  # fmt: skip


def spread(gaps: pd.Series) -> str:
    """The least, the most and the mean."""
    return f"{gaps.min():+.4f} to {gaps.max():+.4f}, mean {gaps.mean():+.4f}"
