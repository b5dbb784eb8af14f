"""Ten folds with forests grown here by the paper's recipe, beside CART and sparse optimal trees."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from born_again import data
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from policytree import BornAgainTree, OptimalTreeClassifier
from policytree.exceptions import SearchWarning

PRICE = 0.01  # of a leaf of the sparse optimal tree
SECONDS = 2.0  # for it
LIMIT = 8.0  # seconds for the born-again tree
COLUMNS = [
    "forest", "BA+P", "CART, as many leaves", "optimal", "BA+P leaves", "optimal leaves", "objective", "Theorem 4.1",
    "proved",
]  # fmt: skip


def main(study) -> None:
    """Held-out accuracy and sizes."""
    study.heading("Ten folds, forests grown here: ten trees of depth three, soft votes as scikit-learn predicts")
    study.show(
        f"Held-out accuracy, means of ten folds. 'optimal': errors plus {PRICE} a leaf are least, on the forest's"
    )
    study.show(
        f"thresholds, {SECONDS:g} s a tree. 'objective': what it reaches on training rows; 'Theorem 4.1': what the"
    )
    study.show(
        "forest's errors and the leaves of its born-again tree, pruned, prove that it does not exceed. 'proved':"
    )
    study.show(f"share of born-again trees proved smallest in {LIMIT:g} s; the others are faithful all the same.\n")
    rows, spread = [], []
    for name in data.names(study):
        study.step(f"forests grown: {name}")
        frame = pd.DataFrame(folds(study, name))
        rows.append((name, *frame[COLUMNS].mean()))
        spread.append((name, *frame[COLUMNS[:4]].std(ddof=1)))
    study.table(pd.DataFrame(rows, columns=["data", *COLUMNS]).set_index("data"), "grown", digits=3)
    study.show("Standard deviation of the accuracy over the folds:\n")
    study.table(pd.DataFrame(spread, columns=["data", *COLUMNS[:4]]).set_index("data"), "grown_spread", digits=3)


def folds(study, name: str) -> list[dict]:
    """One row for each fold."""
    X, y, _ = data.table(study, name)
    parts = StratifiedKFold(3 if study.quick else 10, shuffle=True, random_state=0).split(X, y)
    return [one_fold(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test]) for train, test in parts]


def one_fold(X, y, X_test, y_test) -> dict:
    """Grow, give birth again, prune, and compare."""
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        born_again = BornAgainTree(forest, prune=True, time_limit=LIMIT).fit(X)
    assert np.array_equal(born_again.predict(X), forest.predict(X))
    leaves = born_again.get_n_leaves()
    cart = DecisionTreeClassifier(max_leaf_nodes=max(2, leaves), random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        sparse = OptimalTreeClassifier(regularization=PRICE, guesses=born_again.as_guesses(X), time_limit=SECONDS).fit(
            X, y
        )
    models = {"forest": forest, "BA+P": born_again, "CART, as many leaves": cart, "optimal": sparse}
    return {
        **{key: float((model.predict(X_test) == y_test).mean()) for key, model in models.items()},
        "BA+P leaves": leaves,
        "optimal leaves": sparse.get_n_leaves(),
        "objective": sparse.objective_value_,
        "proved": born_again.status_.proved,
        "Theorem 4.1": sparse.solution_.guarantees["theorem_4_1"],
    }
