"""Table 3's grid of prices and depths, with the reference that the paper chose for each data set."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t
from weighted_trees.data import reference, table
from weighted_trees.fitting import SECONDS, folds, proved, timed, with_sd
from weighted_trees.guesses import FILES

from policytree import Guesses, OptimalTreeClassifier

CHOSEN = {"Spiral": (20, 3), "COMPAS": (20, 3), "Broward": (40, 1), "Restaurant": (50, 2), "Takeaway": (50, 2),
          "FICO": (40, 1)}  # fmt: skip
PRICES = (0.005, 0.002, 0.001, 0.0005)
MORE = {"COMPAS": (0.0002,), "FICO": (0.0002,)}
SPIRAL = (0.1, 0.05, 0.02, 0.01)
DEPTHS = (2, 3, 4, 5, None)
FOLDS, FEW_FOLDS = 5, 2
LIMIT, SHORT = 1_800, 10
PUBLISHED_TAKES = "all five folds and 1,800 s a fit: some hours, most of them for trees without a depth limit"


def main(study) -> None:
    """Every price and depth of the table."""
    n_folds, limit = (FOLDS, LIMIT) if study.published else (FEW_FOLDS, SHORT)
    study.heading(f"Table 3's grid: {n_folds} of {FOLDS} folds, thresholds and lower bounds guessed")
    study.show(f"At most {limit:,} s a fit. Beside it, thresholds only; lost: the objective of th+lb above that of th, "
               f"which is proved.\n{SECONDS}\n")  # fmt: skip
    rows = []
    for name, size in list(CHOSEN.items())[: 2 if study.quick else None]:
        X, y = table("spiral" if name == "Spiral" else FILES[name], study.data_dir)
        X, y = X.to_numpy()[: 300 if study.quick else None], y[: 300 if study.quick else None]
        prices = SPIRAL if name == "Spiral" else (*PRICES, *MORE.get(name, ()))
        for k, (train, test) in enumerate(folds(len(y), FOLDS)[: 1 if study.quick else n_folds]):
            study.step(f"{name}, fold {k + 1}")
            first = OptimalTreeClassifier(max_depth=1, guesses=reference(*size, lower_bounds=True))
            timed(first, X[train], y[train])
            for price in prices:
                for depth in DEPTHS:
                    row = {"data": name, "price": price, "depth": str(depth or "none"), "fold": k + 1}
                    rows.append({**row, **one_cell(X, y, train, test, price, depth, first.guesses_, limit)})
        fits = pd.DataFrame(rows)  # kept after every data set: with --published the next may take hours
        fits.to_csv(study.results / "grid_folds.csv", index=False, float_format="%.8g", lineterminator="\n")
    means = [{"data": data, "price": price, "depth": depth, "leaves": part["leaves"].mean(),
              "train": with_sd(part["train"]), "test": with_sd(part["test"]), "s": part["seconds"].mean(),
              "proved": int(part["proved"].sum()), "th: train": with_sd(part["th train"]),
              "th: test": with_sd(part["th test"]), "th: s": part["th seconds"].mean(),
              "th: proved": int(part["th proved"].sum()), "lost": part["lost"].mean()}
             for (data, price, depth), part in fits.groupby(["data", "price", "depth"], sort=False)]  # fmt: skip
    study.table(pd.DataFrame(means), "grid", digits=4, index=False)
    show_depths(study, fits)


def one_cell(X, y, train, test, price, depth, made, limit) -> dict:
    """Both guesses, and thresholds only."""
    both = OptimalTreeClassifier(depth, price, guesses=Guesses(None, made.thresholds, made.reference_losses),
                                 time_limit=limit)  # fmt: skip
    alone = OptimalTreeClassifier(depth, price, guesses=Guesses(thresholds=made.thresholds), time_limit=limit)
    row = {"seconds": timed(both, X[train], y[train]), "th seconds": timed(alone, X[train], y[train])}
    return row | {"proved": proved(both), "leaves": both.get_n_leaves(), "th proved": proved(alone),
                  "train": both.score(X[train], y[train]), "test": both.score(X[test], y[test]),
                  "th train": alone.score(X[train], y[train]), "th test": alone.score(X[test], y[test]),
                  "lost": both.objective_value_ - alone.objective_value_}  # fmt: skip


def show_depths(study, fits: pd.DataFrame) -> None:
    """What a depth limit costs: test accuracy of each depth less that of none, in pairs of equal folds and prices.

    Pairs of one data set share rows, so that each data set counts once, and the interval is over data sets. Spiral,
    a hundred points made to need depth, stands alone.
    """
    wide = fits.pivot_table(index=["data", "price", "fold"], columns="depth", values="th test", sort=False)
    seconds = fits.pivot_table(index=["data", "price", "fold"], columns="depth", values="th seconds", sort=False)
    study.show("Test accuracy less that without a limit: means and 95% intervals over data sets; seconds are medians:")
    for depth in [name for name in wide if name != "none"]:
        apart = (wide[depth] - wide["none"]).groupby("data", sort=False).mean()
        others = apart.drop("Spiral")
        half = t.ppf(0.975, len(others) - 1) * others.std(ddof=1) / np.sqrt(len(others)) if len(others) > 1 else np.nan
        study.show(f"depth {depth}: {others.mean():+.4f} [{others.mean() - half:.4f}, {others.mean() + half:.4f}] over "
                   f"{len(others)} data sets, Spiral {apart['Spiral']:+.4f}; {seconds[depth].median():.3f} s against "
                   f"{seconds['none'].median():.3f} s")  # fmt: skip
