"""Appendix E: thresholds from an additive model (an explainable boosting machine) in place of boosted trees."""

from __future__ import annotations

from importlib.util import find_spec

import pandas as pd
from weighted_trees.data import reference, table
from weighted_trees.fitting import SECONDS, by_kind, folds, guessed, proved, timed, with_sd
from weighted_trees.grid import CHOSEN
from weighted_trees.guesses import FILES, PRICES

from policytree import OptimalTreeClassifier
from policytree.exceptions import InputError

NAMES = ("COMPAS", "FICO")
TOLERANCES = (0.1, 0.08)  # the paper's
DEPTH, FOLDS, LIMIT = 5, 5, 120


def main(study) -> None:
    """Both data sets with both tolerances, beside the boosted reference that the paper chose."""
    if find_spec("interpret") is None:
        raise InputError("Additive models need the package interpret: pip install interpret-core.")
    study.heading(f"Appendix E: thresholds of additive and of boosted references, depth {DEPTH}, {FOLDS} folds")
    study.show(f"The same price of a leaf, the same folds. {SECONDS}\n")
    rows = []
    for name in NAMES[: 1 if study.quick else None]:
        X, y = table(FILES[name], study.data_dir)
        X, y = X.to_numpy()[: 500 if study.quick else None], y[: 500 if study.quick else None]
        for k, (train, test) in enumerate(folds(len(y), FOLDS)[: 2 if study.quick else None]):
            study.step(f"{name}, fold {k + 1}")
            kinds = {f"boosted {CHOSEN[name]}": reference(*CHOSEN[name])}
            for tolerance in TOLERANCES:
                kinds[f"additive, {tolerance:g}"] = reference(*CHOSEN[name], model="additive", jump_tolerance=tolerance)
            for kind, guesses in kinds.items():
                row = {"data": name, "reference": kind, "fold": k + 1}
                rows.append({**row, **one_fit(X, y, train, test, PRICES[name], guesses)})
    fits = pd.DataFrame(rows)
    study.table(fits, "additive_folds", index=False, show=False)
    means = [{"data": data, "reference": kind, "columns": part["columns"].mean(), "guessing s": part["guessing"].mean(),
              "s": part["seconds"].mean(), "proved": int(part["proved"].sum()), "leaves": part["leaves"].mean(),
              "objective": part["objective"].mean(), "train": with_sd(part["train"], 4),
              "test": with_sd(part["test"], 4)}
             for (data, kind), part in fits.groupby(["data", "reference"], sort=False)]  # fmt: skip
    study.table(pd.DataFrame(means), "additive", digits=4, index=False)
    wide = fits.pivot_table(index=["data", "fold"], columns="reference", values="train", sort=False)
    for name, part in wide.groupby("data", sort=False):
        boosted = part[f"boosted {CHOSEN[name]}"]
        for kind in [column for column in part if column.startswith("additive")]:
            apart = (boosted - part[kind]).dropna()
            study.show(f"{name}: boosted less {kind}: {apart.mean():+.4f} training accuracy, above in "
                       f"{int((apart > 0).sum())} of {len(apart)} folds")  # fmt: skip


def one_fit(X, y, train, test, price, guesses) -> dict:
    """Thresholds from the reference, then the tree that is proved on them."""
    made, guessing = guessed(guesses, X[train], y[train])
    model = OptimalTreeClassifier(DEPTH, price, guesses=by_kind(made)["th"], time_limit=LIMIT)
    seconds = timed(model, X[train], y[train])
    return {"columns": sum(map(len, made.thresholds)), "guessing": guessing, "seconds": seconds,
            "proved": proved(model), "leaves": model.get_n_leaves(), "objective": model.objective_value_,
            "train": model.score(X[train], y[train]), "test": model.score(X[test], y[test])}  # fmt: skip
