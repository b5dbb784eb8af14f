"""Tables 4 to 7 of GOSDT-with-guesses, as there: five folds, four references, depth five, a price by data set."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from weighted_trees import peers
from weighted_trees.data import binary, reference, table
from weighted_trees.fitting import SECONDS, by_kind, folds, guessed, proved, timed, with_sd
from weighted_trees.published import tables

from policytree import OptimalTreeClassifier
from policytree.guesses import Guesses

FILES = {
    "COMPAS": "compas",
    "Broward": "broward",
    "Restaurant": "coupon_rest20_onehot",
    "Takeaway": "coupon_carryout_onehot",
    "FICO": "fico_heloc",
}
PRICES = {"COMPAS": 0.001, "Broward": 0.005, "Restaurant": 0.001, "Takeaway": 0.001, "FICO": 0.0005}
REFERENCES = ((40, 1), (30, 2), (50, 2), (20, 3))
DEPTH, FOLDS = 5, 5
PUBLISHED_TAKES = "gosdt and DL8.5 get 1,800 s in all five folds: up to two days; without them ten minutes"
LIMIT = 1_800  # seconds, the paper's
# Seconds for each fit of a peer, in so many folds (three take 12.3 minutes in all); --published: LIMIT, in all folds.
PEER_LIMIT, PEER_FOLDS = 10, 1
PEERS_AT_ONCE = 2
METHODS = ("ours th", "ours th+lb", "gosdt th+lb", "DL8.5 th")


def main(study) -> None:
    """Every data set with every reference model in every fold, then beside the published tables."""
    limit, peer_folds = (LIMIT, FOLDS) if study.published else (PEER_LIMIT, PEER_FOLDS)
    study.heading(f"Tables 4 to 7: depth {DEPTH}, {FOLDS} folds, four references; mean and standard deviation")
    study.show(
        "th: thresholds guessed by column elimination; lb: lower bounds guessed, too. All get the same columns.\n"
        f"Ours may take {LIMIT:,} s a fit, as in the paper; gosdt and DL8.5 {limit:,} s, in {peer_folds} of the folds. "
        f"DL8.5 has\nno price of a leaf but a least leaf, the price times the rows. {SECONDS}\n"
    )
    rows = []
    for name in ("COMPAS",) if study.quick else FILES:
        X, y = table(FILES[name], study.data_dir)
        X, y = (X.to_numpy()[:400], y[:400]) if study.quick else (X.to_numpy(), y)
        asked = []
        for k, (train, test) in enumerate(folds(len(y), FOLDS)[: 2 if study.quick else FOLDS]):
            for size in REFERENCES[: 1 if study.quick else None]:
                study.step(f"{name}, fold {k + 1}, {size}")
                common, found, made = one_fit(X, y, train, test, size, PRICES[name])
                common = {"data": name, "reference": str(size), "fold": k + 1, **common}
                rows += [{**common, **row} for row in found]
                if k < peer_folds:
                    seconds = 2 if study.quick else limit
                    asked += [(common, fit) for fit in peer_fits(X, y, train, test, size, PRICES[name], seconds, made)]
        study.step(f"{name}, {len(asked)} fits of peers")
        with ThreadPoolExecutor(PEERS_AT_ONCE) as pool:  # each in a process of its own
            rows += pool.map(peer_row, *zip(*asked, strict=True)) if asked else []
        rows.sort(key=place)
        fits = pd.DataFrame(rows)  # kept after every data set: with --published the next may take hours
        fits.to_csv(study.results / "guesses_folds.csv", index=False, float_format="%.8g", lineterminator="\n")
    show_tables(study, fits)
    show_proofs(study, fits)
    show_published(study, fits)


def place(row: dict) -> tuple[int, int, int]:
    """Order of the tables: data sets, folds and references as they are listed above."""
    return list(FILES).index(row["data"]), row["fold"], list(map(str, REFERENCES)).index(row["reference"])


def one_fit(X, y, train, test, size, price) -> tuple[dict, list[dict], Guesses]:
    """Our methods on one training part and one reference: what they share, their rows, and the guesses."""
    made, guessing = guessed(reference(*size, lower_bounds=True), X[train], y[train])
    common = {"columns": sum(map(len, made.thresholds)), "guessing": guessing}
    rows = []
    for kind, guesses in by_kind(made).items():
        model = OptimalTreeClassifier(DEPTH, price, guesses=guesses, time_limit=LIMIT)
        seconds = timed(model, X[train], y[train])
        rows.append({"method": f"ours {kind}", "seconds": seconds, "proved": proved(model),
                     "leaves": model.get_n_leaves(), "objective": model.objective_value_,
                     "train": model.score(X[train], y[train]), "test": model.score(X[test], y[test])})  # fmt: skip
    return common, rows, made


def peer_fits(X, y, train, test, size, price, limit, made) -> list[tuple[peers.Fit, np.ndarray]]:
    """Fits of gosdt and DL8.5 on the same columns, each with the labels of the test rows."""
    columns = binary(X, made.thresholds)
    model = GradientBoostingClassifier(n_estimators=size[0], max_depth=size[1], random_state=0)
    labels = model.fit(X[train], y[train]).predict(X[train])
    least = math.ceil(price * len(train))
    asked = {"gosdt": {"penalty": price, "reference": labels}, "DL8.5": {"least_leaf": least}}
    return [
        (peers.Fit(name, columns[train], y[train], DEPTH, limit, X_test=columns[test], **options), y[test])
        for name, options in asked.items()
        if peers.installed(name)
    ]


def peer_row(common: dict, asked: tuple[peers.Fit, np.ndarray]) -> dict:
    """Run one fit of a peer; its tree is scored here, gosdt's with its price of a leaf, DL8.5's with the same."""
    fit, y_test = asked
    [answer] = peers.run([fit])
    method = "gosdt th+lb" if fit.peer == "gosdt" else "DL8.5 th"
    row = {**common, "method": method, "seconds": answer.seconds, "proved": answer.proved}
    if answer.predicted is not None:
        errors = float(np.mean(answer.predicted != fit.y))
        row |= {"leaves": answer.n_leaves, "train": 1 - errors, "test": float(np.mean(answer.held_out == y_test))}
        row["objective"] = errors + PRICES[common["data"]] * answer.n_leaves
    return row


def show_tables(study, fits: pd.DataFrame) -> None:
    """Mean and standard deviation over folds of every method."""
    by = fits.groupby(["data", "reference", "method"], sort=False)
    rows = []
    for (data, size, method), part in by:
        trees = part.dropna(subset=["train"])
        rows.append({"data": data, "reference": size, "method": method, "folds": len(part),
                     "columns": part["columns"].mean(), "guessing s": part["guessing"].mean(),
                     "s": with_sd(part["seconds"].dropna()), "proved": int(part["proved"].sum()),
                     "leaves": trees["leaves"].mean(), "train": with_sd(trees["train"]),
                     "test": with_sd(trees["test"])})  # fmt: skip
    study.table(pd.DataFrame(rows), "guesses", digits=1, index=False)


def show_proofs(study, fits: pd.DataFrame) -> None:
    """How many searches ended, and what lower bounds and the peers lose against the proved objective."""
    for method, part in fits.groupby("method", sort=False):
        study.show(f"{method}: {int(part['proved'].sum())} of {len(part)} fits ended with a proof; seconds: median "
                   f"{part['seconds'].median():.3f}, most {part['seconds'].max():.1f}")  # fmt: skip
    study.show(f"Guessing: median {fits['guessing'].median():.2f} s, most {fits['guessing'].max():.2f}\n")
    wide = fits.pivot_table(index=["data", "reference", "fold"], columns="method", values="objective", sort=False)
    lost = wide.sub(wide["ours th"], axis=0)
    for method in [name for name in METHODS[1:3] if name in lost]:
        part = lost[method].dropna()
        study.show(f"Objective of {method} above ours th: mean {part.mean():.4f}, most {part.max():.4f}; none in "
                   f"{int((part <= 1e-9).sum())} of {len(part)}; below in {int((part < -1e-9).sum())}")  # fmt: skip
    study.show()


def show_published(study, fits: pd.DataFrame) -> None:
    """Published means and standard deviations beside ours."""
    printed = tables()
    printed["reference"] = [f"({t}, {d})" for t, d in zip(printed["trees"], printed["depth"], strict=True)]
    rows, apart = [], []
    for (data, size), part in fits.groupby(["data", "reference"], sort=False):
        for method, theirs in (("ours th", "GOSDT th"), ("ours th+lb", "GOSDT th+lb"), ("DL8.5 th", "DL8.5 th")):
            here = part[part["method"] == method].dropna(subset=["train"])
            same = (printed[["data", "reference", "method"]] == [data, size, theirs]).all(axis=1)
            line = printed[same].to_dict("records")[0]
            cell = {what: f"{line[what]:.3f}±{line[f'{what} sd']:.3f}" for what in ("train", "test")}
            if np.isnan(line["train"]):
                cell = dict.fromkeys(cell, line["seconds"])
            elif method == "ours th" and len(here):
                apart.append([here["train"].mean() - line["train"], here["test"].mean() - line["test"],
                              line["train sd"], line["test sd"]])  # fmt: skip
            rows.append({"data": data, "reference": size, "published": theirs, "their s": line["seconds"],
                         "their train": cell["train"], "their test": cell["test"], "here": method,
                         "s": with_sd(here["seconds"]), "train": with_sd(here["train"]),
                         "test": with_sd(here["test"])})  # fmt: skip
    study.show("Published (other folds, another machine, seconds of wall time) beside ours:")
    study.table(pd.DataFrame(rows), "published", index=False)
    apart = np.array(apart)
    for k, what in enumerate(("training", "test")):
        low, high = apart[:, k].min(), apart[:, k].max()
        study.show(f"ours th less GOSDT th, mean {what} accuracy: from {low:+.3f} to {high:+.3f}"
                   f" in {len(apart)} settings; within two of the published standard deviations in "
                   f"{int((np.abs(apart[:, k]) <= 2 * apart[:, k + 2]).sum())}")  # fmt: skip
