"""Figs. 6 and 14 to 17: seconds against columns and against rows, ours beside gosdt."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from tables import read_table
from weighted_trees import peers
from weighted_trees.data import SOURCES

from policytree import OptimalTreeClassifier
from policytree.exceptions import SearchWarning

DEPTH, PRICE, LIMIT = 5, 1 / 32, 20  # the paper's depth and price; its limit was 30 minutes
DRAWS = 3  # of columns, or of rows
COMPAS_2016 = 5_020  # people, the first of ProPublica's table
COLUMNS = {"compas": (4, 8, 16, 32, 64, 134), "fico_heloc": (4, 8, 16, 32, 64, 128, 512, 1917)}
ROWS = {"compas": (100, 300, 1_000, 3_000, 6_907), "fico_heloc": (100, 300, 1_000, 3_000, 10_459)}
COLUMNS_OF_ROWS = 32  # drawn, so that both end
COLORS = {"ours": "#0072B2", "gosdt": "#D55E00"}


def binary_columns(name: str, directory) -> tuple[np.ndarray, np.ndarray]:
    """All split points of all features as 0/1 columns, ``x > t``; (n, sum of distinct values less one) and labels."""
    frame = compas_2016(directory) if name == "compas_2016" else read_table(name, SOURCES[name], directory)
    columns = [frame[c].to_numpy() > t for c in frame.columns[:-1] for t in np.unique(frame[c])[:-1]]
    return np.column_stack(columns), frame.iloc[:, -1].to_numpy()


def compas_2016(directory) -> pd.DataFrame:
    """The paper's COMPAS-2016: age, juvenile offences of all kinds, priors in four groups, label.

    It is the first 5,020 rows of ProPublica's table of two years, in its order: 101 consecutive rows near the end of
    the authors' file were compared one by one. Its distinct values add up to 85, the paper's number of binary features.
    """
    table = read_table("compas_two_years", "the repository propublica/compas-analysis on GitHub", directory)
    people = table.iloc[:COMPAS_2016]
    priors = people["priors_count"]
    return pd.DataFrame({
        "age": people["age"],
        "juvenile": people[["juv_fel_count", "juv_misd_count", "juv_other_count"]].sum(axis=1),
        "priors: 0": priors == 0,
        "priors: 1": priors == 1,
        "priors: 2 to 3": priors.between(2, 3),
        "priors: 4 or more": priors >= 4,
        "two_year_recid": people["two_year_recid"],
    }).astype(int)  # fmt: skip


def main(study) -> None:
    """The two tables that are large."""
    study.heading(f"Seconds to the proof, depth {DEPTH}, price 1/32 of a leaf, at most {LIMIT} s")
    show(study, "scaling", COLUMNS, ROWS)


def show(study, kept: str, columns: dict[str, tuple[int, ...]], sizes_of_rows: dict[str, tuple[int, ...]]) -> None:
    """Both tables and the picture, kept under a name."""
    methods = ["ours", *(["gosdt"] if peers.installed("gosdt") else [])]
    if len(methods) == 1:
        study.show("gosdt is not installed, so not in the tables.")
    rows = []
    for name in list(columns)[: 1 if study.quick else None]:
        X, y = binary_columns(name, study.data_dir)
        study.show(f"{name}: {len(y):,} rows, {X.shape[1]:,} columns; {DRAWS} draws of columns or of rows.")
        for what, sizes in (("columns", columns[name]), ("rows", sizes_of_rows[name])):
            gone: set[str] = set()  # who met the limit in every draw is not asked again
            for size in sizes[:2] if study.quick else sizes:
                study.step(f"{name}: {size:,} {what}")
                for method in [each for each in methods if each not in gone]:
                    each = [one(method, *drawn(X, y, what, size, seed)) for seed in draws(what, size, X)]
                    rows += [{"data": name, "grows": what, "size": size, "method": method, **row} for row in each]
                    if not any(row["proved"] for row in each):
                        gone.add(method)
    fits = pd.DataFrame(rows)
    study.table(fits, f"{kept}_draws", index=False, show=False)
    by = fits.groupby(["data", "grows", "size", "method"], sort=False)
    median = by.agg(seconds=("seconds", "median"), objective=("objective", "mean"), proved=("proved", "sum"),
                    draws=("proved", "size")).reset_index()  # fmt: skip
    study.show("\nMedians of the draws; who met the limit in every draw is not asked for more:")
    study.table(median, kept, digits=3, index=False)
    say_whether_equal(study, fits)
    study.figure(draw(median), kept)


def draws(what: str, size: int, X: np.ndarray) -> range:
    """Seeds: one where everything is taken."""
    return range(1 if what == "columns" and size >= X.shape[1] else DRAWS)


def drawn(X: np.ndarray, y: np.ndarray, what: str, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """So many random columns with all rows, or so many random rows with a few random columns."""
    rng = np.random.default_rng(seed)
    columns = rng.permutation(X.shape[1])[: size if what == "columns" else COLUMNS_OF_ROWS]
    rows = rng.permutation(len(y))[: size if what == "rows" else None]
    return X[np.ix_(rows, columns)], y[rows]


def one(method: str, X: np.ndarray, y: np.ndarray) -> dict:
    """Seconds of the search, objective (error rate + price x leaves), and whether it is proved."""
    if method == "gosdt":
        [answer] = peers.run([peers.Fit("gosdt", X, y, DEPTH, LIMIT, penalty=PRICE)])
        objective = np.nan
        if answer.predicted is not None:
            objective = float(np.mean(answer.predicted != y)) + PRICE * answer.n_leaves
        return {"seconds": answer.seconds, "objective": objective, "proved": answer.proved}
    tree = OptimalTreeClassifier(DEPTH, PRICE, time_limit=LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        if tree.fit(X.astype(float), y).solution_.compile_seconds:  # whoever compiles is asked again
            tree.fit(X.astype(float), y)
    return {"seconds": tree.solution_.seconds, "objective": tree.objective_value_, "proved": tree.status_.proved}


def say_whether_equal(study, fits: pd.DataFrame) -> None:
    """Where both proved their trees, the objectives are the same number."""
    numbered = fits.assign(draw=fits.groupby(["data", "grows", "size", "method"]).cumcount())
    proved = numbered[numbered["proved"]]
    wide = proved.pivot_table(index=["data", "grows", "size", "draw"], columns="method", values="objective").dropna()
    if "gosdt" in wide:
        apart = (wide["ours"] - wide["gosdt"]).abs().max()
        study.show(f"Both proved {len(wide)} trees; their objectives differ by at most {apart:.1e}.")


def draw(median: pd.DataFrame):
    """Seconds on logarithmic axes; hollow where not every draw was proved."""
    names = list(dict.fromkeys(median["data"]))
    figure, axes = plt.subplots(
        1, 2 * len(names), figsize=(3.4 * 2 * len(names), 3.4), layout="constrained", sharey=True
    )
    for k, name in enumerate(names):
        for ax, what in zip(axes[2 * k : 2 * k + 2], ("columns", "rows"), strict=True):
            for method, color in COLORS.items():
                part = median[(median["data"] == name) & (median["grows"] == what) & (median["method"] == method)]
                ax.plot(part["size"], part["seconds"], color=color, label=method)
                for all_proved, face in ((True, color), (False, "white")):
                    some = part[(part["proved"] == part["draws"]) == all_proved]
                    ax.plot(some["size"], some["seconds"], "o", markersize=5, color=color, markerfacecolor=face)
            ax.axhline(LIMIT, color="black", linestyle=":", linewidth=0.8)
            ax.set(xscale="log", yscale="log", xlabel=what, title=name)
            ax.xaxis.set_major_formatter("{x:,.0f}")
            ax.xaxis.set_minor_formatter("")  # of less than two decades it would number every tick
    axes[0].set_ylabel("seconds")
    axes[0].legend(frameon=False)
    return figure
