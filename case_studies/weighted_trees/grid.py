"""Table 3's grid of prices and depths, with the reference that the paper chose, as a table and as Figs. 1 to 5."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier
from weighted_trees.data import reference, table
from weighted_trees.fitting import SECONDS, by_kind, folds, guessed, proved, timed, with_sd
from weighted_trees.guesses import FILES

from policytree import OptimalTreeClassifier

CHOSEN = {"Spiral": (20, 3), "COMPAS": (20, 3), "Broward": (40, 1), "Restaurant": (50, 2), "Takeaway": (50, 2),
          "FICO": (40, 1)}  # fmt: skip
PRICES = (0.005, 0.002, 0.001, 0.0005)
MORE = {"COMPAS": (0.0002,), "FICO": (0.0002,)}
SPIRAL = (0.1, 0.05, 0.02, 0.01)
DEPTHS = (2, 3, 4, 5, None)
FOLDS = 5
LIMIT, SHORT = 1_800, 5
ALL_THRESHOLDS = (2, 3)  # depths that are proved in seconds without guesses
BOOSTED = (100, 3)  # the paper's black-box line: trees, and their depth
PUBLISHED_TAKES = "1,800 s a fit: some hours, most of them for trees without a depth limit"
LINES = {"thresholds guessed": ("#0072B2", "o"), "thresholds and bounds guessed": ("#009E73", "s"),
         "no guesses, depth 2 and 3": ("#E69F00", "^"), "CART": ("#999999", "x")}  # fmt: skip


def main(study) -> None:
    """Every price and depth of the table; then pictures."""
    limit = LIMIT if study.published else SHORT
    study.heading(f"Table 3's grid: {FOLDS} folds, thresholds and lower bounds guessed")
    study.show(f"At most {limit:,} s a fit. Beside it, thresholds only; lost: the objective of th+lb above that of th, "
               f"which is proved.\n{SECONDS}\n")  # fmt: skip
    rows, others = [], []
    for name, size in list(CHOSEN.items())[: 2 if study.quick else None]:
        X, y = table("spiral" if name == "Spiral" else FILES[name], study.data_dir)
        X, y = X.to_numpy()[: 300 if study.quick else None], y[: 300 if study.quick else None]
        prices = SPIRAL if name == "Spiral" else (*PRICES, *MORE.get(name, ()))
        for k, (train, test) in enumerate(folds(len(y), FOLDS)[: 2 if study.quick else None]):
            study.step(f"{name}, fold {k + 1}")
            made, _ = guessed(reference(*size, lower_bounds=True), X[train], y[train])
            for price in prices:
                for depth in DEPTHS:
                    row = {"data": name, "price": price, "depth": str(depth or "none"), "fold": k + 1}
                    rows.append({**row, **one_cell(X, y, train, test, price, depth, made, limit)})
            others += [{"data": name, "fold": k + 1, **row} for row in rivals(X, y, train, test, prices, limit)]
        fits = pd.DataFrame(rows)  # kept after every data set: with --published the next may take hours
        fits.to_csv(study.results / "grid_folds.csv", index=False, float_format="%.8g", lineterminator="\n")
    beside = pd.DataFrame(others)
    study.table(beside, "grid_rivals", index=False, show=False)
    means = [{"data": data, "price": price, "depth": depth, "leaves": part["leaves"].mean(),
              "train": with_sd(part["train"]), "test": with_sd(part["test"]), "s": part["seconds"].mean(),
              "proved": int(part["proved"].sum()), "th: train": with_sd(part["th train"]),
              "th: test": with_sd(part["th test"]), "th: s": part["th seconds"].mean(),
              "th: proved": int(part["th proved"].sum()), "lost": part["lost"].mean()}
             for (data, price, depth), part in fits.groupby(["data", "price", "depth"], sort=False)]  # fmt: skip
    study.table(pd.DataFrame(means), "grid", digits=4, index=False)
    show_depths(study, fits)
    long = long_form(fits, beside)
    show_rivals(study, long)
    draw(study, long, "seconds", "grid_seconds", "seconds of one fit")
    draw(study, long, "leaves", "grid_leaves", "leaves")


def rivals(X, y, train, test, prices, limit) -> list[dict]:
    """CART with the price as a least leaf, our trees on all thresholds, and the boosted line."""
    models: list = [
        ("CART", price, depth, DecisionTreeClassifier(
            max_depth=depth, min_samples_leaf=math.ceil(price * len(train)), random_state=0))
        for price in prices for depth in DEPTHS
    ]  # fmt: skip
    models += [
        ("no guesses, depth 2 and 3", price, depth, OptimalTreeClassifier(depth, price, time_limit=limit))
        for price in prices for depth in ALL_THRESHOLDS
    ]  # fmt: skip
    models.append(("boosted", None, BOOSTED[1], GradientBoostingClassifier(
        n_estimators=BOOSTED[0], max_depth=BOOSTED[1], random_state=0)))  # fmt: skip
    rows = []
    for method, price, depth, model in models:
        seconds = timed(model, X[train], y[train])
        rows.append({"method": method, "price": price, "depth": str(depth or "none"), "seconds": seconds,
                     "leaves": np.nan if method == "boosted" else model.get_n_leaves(),
                     "proved": proved(model) if isinstance(model, OptimalTreeClassifier) else None,
                     "train": model.score(X[train], y[train]), "test": model.score(X[test], y[test])})  # fmt: skip
    return rows


def long_form(fits: pd.DataFrame, beside: pd.DataFrame) -> pd.DataFrame:
    """One row for each fit of any method."""
    common = ["data", "price", "depth", "fold"]
    alone, both, *_ = LINES
    of = ["seconds", "leaves", "train", "test"]
    parts = [fits[[*common, *(f"th {what}" for what in of)]].set_axis([*common, *of], axis=1).assign(method=alone),
             fits[[*common, *of]].assign(method=both), beside[[*common, *of, "method"]]]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def show_rivals(study, long: pd.DataFrame) -> None:
    """Of every method at every setting the median over the folds; then the best of these, chosen with hindsight."""
    keys = ["data", "method", "price", "depth"]
    columns = ["seconds", "leaves", "train", "test"]
    middle = long.groupby(keys, sort=False, dropna=False)[columns].median().reset_index()
    best = middle.loc[middle.groupby(["data", "method"], sort=False)["test"].idxmax()]
    study.show("\nOf every method the setting of the best median test accuracy (with hindsight, alike for all):")
    study.table(best, "grid_best", digits=4, index=False)


def draw(study, long: pd.DataFrame, x: str, name: str, label: str) -> None:
    """Figs. 1 to 5 and 10 to 12: medians of the folds with quartiles, training above, test below."""
    sets = list(dict.fromkeys(long["data"]))
    figure, axes = plt.subplots(2, len(sets), figsize=(3.0 * len(sets), 5.8), layout="constrained", squeeze=False)
    for column, data in enumerate(sets):
        here = long[long["data"] == data]
        for ax, what in zip(axes[:, column], ("train", "test"), strict=True):
            for method, (color, marker) in LINES.items():
                by = here[here["method"] == method].groupby(["price", "depth"], sort=False)
                middle, low, high = (by[[x, what]].quantile(q) for q in (0.5, 0.25, 0.75))
                spread = {axis: np.abs([middle[c] - low[c], high[c] - middle[c]])
                          for axis, c in (("xerr", x), ("yerr", what))}  # fmt: skip
                ax.errorbar(middle[x], middle[what], **spread, fmt=marker, markersize=4, color=color, alpha=0.75,
                            elinewidth=0.7, markerfacecolor="none", label=method)  # fmt: skip
            line = here.loc[here["method"] == "boosted", what]
            ax.axhline(line.median(), color="black", linestyle=":", label="100 boosted trees of depth 3")
            ax.axhspan(line.quantile(0.25), line.quantile(0.75), color="black", alpha=0.07, linewidth=0)
            ax.set_xscale("log", base=2 if x == "leaves" else 10)
            ax.xaxis.set_major_formatter("{x:g}")
        axes[0, column].set_title(data)
        axes[1, column].set_xlabel(label)
    axes[0, 0].set_ylabel("accuracy, training")
    axes[1, 0].set_ylabel("accuracy, test")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    study.figure(figure, name)


def one_cell(X, y, train, test, price, depth, made, limit) -> dict:
    """Both guesses, and thresholds only."""
    kinds = by_kind(made)
    both = OptimalTreeClassifier(depth, price, guesses=kinds["th+lb"], time_limit=limit)
    alone = OptimalTreeClassifier(depth, price, guesses=kinds["th"], time_limit=limit)
    row = {"seconds": timed(both, X[train], y[train]), "th seconds": timed(alone, X[train], y[train])}
    return row | {"proved": proved(both), "leaves": both.get_n_leaves(), "th proved": proved(alone),
                  "th leaves": alone.get_n_leaves(),
                  "train": both.score(X[train], y[train]), "test": both.score(X[test], y[test]),
                  "th train": alone.score(X[train], y[train]), "th test": alone.score(X[test], y[test]),
                  "lost": both.objective_value_ - alone.objective_value_}  # fmt: skip


def show_depths(study, fits: pd.DataFrame) -> None:
    """Show the cost of depth limits: test accuracy of each less that of none, in pairs of equal folds and prices.

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
