"""Results printed by McTavish et al. (2022): Tables 4 to 7, trees and rules of Table 8, in two files beside this."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

# Seconds may be limit (1,800 s), mem (out of memory) or NA (could not be run); sd over five folds; th: thresholds
# guessed; lb: lower bounds guessed.
TABLES = Path(__file__).with_name("tables_4_to_7.csv")
TREES = Path(__file__).with_name("printed_trees.json")


@dataclass(frozen=True)
class Split:
    """``feature <= threshold`` takes ``yes``; a leaf is 0 or 1."""

    feature: str
    threshold: float
    yes: Split | int
    no: Split | int


@dataclass(frozen=True)
class Printed:
    """A printed tree, with what stands beside it: price of a leaf, depth limit, reference, accuracies of one fold.

    Rule sets of Table 8 have no price; their depth is that of the trees they are compared with.
    """

    name: str
    data: str
    price: float | None
    depth: int
    reference: tuple[int, int]
    train: float
    test: float
    tree: Split


def tables() -> pd.DataFrame:
    """Tables 4 to 7: one row per data set, reference and method."""
    return pd.read_csv(
        TABLES, dtype={"seconds": str}, keep_default_na=False, na_values=["", "mem", "limit", "NA"]
    ).assign(seconds=pd.read_csv(TABLES, dtype=str, keep_default_na=False)["seconds"])


def predict(tree: Split | int, X: pd.DataFrame) -> np.ndarray:
    """Labels of a table by a printed tree."""
    if isinstance(tree, int):
        return np.full(len(X), tree)
    left = (X[tree.feature] <= tree.threshold).to_numpy()
    return np.where(left, predict(tree.yes, X), predict(tree.no, X))


def leaves(tree: Split | int) -> int:
    """Number of its leaves."""
    return 1 if isinstance(tree, int) else leaves(tree.yes) + leaves(tree.no)


def split(node: list | int) -> Split | int:
    """A tree of the file: ``[column, threshold, tree at most the threshold, tree above]``, or a label."""
    return node if isinstance(node, int) else Split(node[0], node[1], split(node[2]), split(node[3]))


def printed_trees() -> list[Printed]:
    """The sixteen trees of Figs. 13 to 20, and of Table 8 two rule sets, written as trees, and a tree of depth two."""
    made = json.loads(TREES.read_text(encoding="utf-8"))
    return [Printed(**{**each, "reference": tuple(each["reference"]), "tree": split(each["tree"])}) for each in made]
