"""Figs. 19 to 21: printed trees on GOSDT's own 0/1 columns, fold by fold in the order of the file."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold
from sklearn.preprocessing import OneHotEncoder
from sparse_trees.study import PUBLISHED, SOURCES
from tables import read_table
from weighted_trees.data import GUESSES_REPOSITORY

from policytree import OptimalTreeClassifier
from policytree.exceptions import SearchWarning

FOLDS, LIMIT = 5, 30.0
ROUNDING = 0.05  # printed accuracies have one digit
MONK_PRICE = 0.01  # of a leaf; for tic-tac-toe those of PRICES are tried in turn
LEVELS = {"b": "blank", "o": "nought", "x": "cross"}  # of a square; 18 columns leave one of them out
PRICES = (0.02, 0.015, 0.012, 0.01, 0.009, 0.008, 0.007, 0.006, 0.005, 0.004)


def main(study) -> None:
    """The best tree of as many leaves in every fold, beside the printed accuracies."""
    study.heading(f"Figs. 19 to 21: {FOLDS} folds of consecutive rows, GOSDT's columns, accuracy in percent")
    rows = []
    for name in ("monk1", "monk2"):
        study.step(name)
        frame = read_table(f"{name}_train_onehot", GUESSES_REPOSITORY, study.data_dir)
        rows += folded(name, frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy(), PUBLISHED[name], (MONK_PRICE,))
    frame = read_table("tic_tac_toe", SOURCES["tic_tac_toe"], study.data_dir)
    for level in list(LEVELS)[: 1 if study.quick else None]:
        study.step(f"tic-tac-toe without {LEVELS[level]}")
        encoder = OneHotEncoder(drop=[level] * 9, sparse_output=False, dtype=int).set_output(transform="pandas")
        X = encoder.fit_transform(frame.drop(columns="target").astype(str))
        y, prices = frame["target"].to_numpy(), PRICES[: 2 if study.quick else None]
        rows += folded(f"tic-tac-toe, no {LEVELS[level]}", X, y, PUBLISHED["tic_tac_toe"], prices)
    table = pd.DataFrame(rows)
    study.show(
        "ours: the tree of least objective at the smallest price of a leaf whose best tree is no larger than the\n"
        "printed one; where proved, no tree with as many leaves as it has is more accurate on its rows.\n"
    )
    study.table(table, "encodings", digits=1, index=False)
    for name, part in table.groupby("data", sort=False):
        apart = part[["train", "test"]].to_numpy() - part[["printed train", "printed test"]].to_numpy()
        same = part.loc[(np.abs(apart) < ROUNDING).all(axis=1), "fold"]
        found = f"both in fold {' and '.join(map(str, same))}" if len(same) else "in no fold both"
        train, test = part[["printed train", "printed test"]].iloc[0]
        study.show(f"{name}: printed {train:.1f} and {test:.1f}; {found}; ours fits the training rows better than "
                   f"printed in {int((apart[:, 0] > ROUNDING).sum())} of {len(part)} folds")  # fmt: skip


def folded(name: str, X: pd.DataFrame, y, printed: tuple[int, float, float], prices: tuple[float, ...]) -> list[dict]:
    """Our tree in every fold; the last price whose best tree is no larger than the printed one."""
    leaves, train_printed, test_printed = printed
    rows = []
    for k, (train, test) in enumerate(KFold(FOLDS).split(X)):
        kept = None
        for price in prices:
            limits = {"max_leaf_nodes": leaves} if len(prices) == 1 else {}
            tree = OptimalTreeClassifier(regularization=price, time_limit=LIMIT, **limits)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SearchWarning)
                tree.fit(X.iloc[train], y[train])
            if tree.get_n_leaves() > leaves:
                break
            kept = tree
        assert kept is not None, "the first price gives a small tree"
        rows.append({"data": name, "fold": k + 1, "leaves": leaves, "printed train": train_printed,
                     "printed test": test_printed, "ours leaves": kept.get_n_leaves(),
                     "train": 100 * kept.score(X.iloc[train], y[train]),
                     "test": 100 * kept.score(X.iloc[test], y[test]), "proved": kept.status_.proved})  # fmt: skip
    return rows
