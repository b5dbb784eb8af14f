"""The six data sets of the paper, and the forests that its authors grew on its ten folds."""

from __future__ import annotations

import json

import pandas as pd
from tables import find_file, read_table

SOURCE = "the repository vidalt/BA-Trees on GitHub (MIT)"
NAMES = {
    "BC": "Breast-Cancer-Wisconsin",
    "CP": "COMPAS-ProPublica",
    "FI": "FICO",
    "HT": "HTRU2",
    "PD": "Pima-Diabetes",
    "SE": "Seeds",
}
QUICK = ("HT", "SE")
# Vidal and Schiffer (2020), means of ten folds: depth and leaves of D, L and DL, leaves of the forest, depth and leaves
# of BA+P.
SIZES = {
    "BC": (12.5, 2279.4, 18.0, 890.1, 12.5, 1042.3, 61.1, 9.1, 35.9),
    "CP": (8.9, 119.9, 8.9, 37.1, 8.9, 37.1, 46.7, 7.0, 31.2),
    "FI": (8.6, 71.3, 8.6, 39.2, 8.6, 39.2, 47.3, 6.5, 15.8),
    "HT": (6.0, 20.2, 6.3, 11.9, 6.0, 12.0, 42.6, 5.1, 13.2),
    "PD": (9.6, 460.1, 15.0, 169.7, 9.6, 206.7, 53.7, 9.4, 79.0),
    "SE": (10.2, 450.9, 13.8, 214.6, 10.2, 261.0, 55.7, 7.5, 21.5),
}
# Accuracy and F1 of the forest, and of BA+P.
QUALITY = {
    "BC": (0.953, 0.949, 0.946, 0.941),
    "CP": (0.660, 0.650, 0.660, 0.650),
    "FI": (0.697, 0.690, 0.697, 0.690),
    "HT": (0.977, 0.909, 0.977, 0.909),
    "PD": (0.746, 0.692, 0.750, 0.700),
    "SE": (0.790, 0.479, 0.790, 0.481),
}


def names(study) -> list[str]:
    """Return the data sets of this run."""
    return [name for name in NAMES if not study.quick or name in QUICK]


def table(study, name: str) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Features, classes, and in which test fold a row is."""
    frame = read_table(NAMES[name], SOURCE, study.data_dir, "born_again")
    return frame.drop(columns=["Class", "test_fold"]), frame["Class"], frame["test_fold"]


def forests(study, name: str) -> list[dict]:
    """Forests of ten trees of depth three, one for each of the ten folds."""
    found = []
    for file in ("born_again.json", "born_again_more.json"):  # folds 1 to 5, and 6 to 10
        reference = json.loads(find_file(file, SOURCE, study.data_dir, "reference").read_text(encoding="utf-8"))
        found += [forest for forest in reference["forests"] if forest["dataset"] == NAMES[name]]
    return found[: 2 if study.quick else None]


def merged_leaves(tree: dict) -> int:
    """Leaves of a tree of a forest once siblings of one class are merged, as the paper counts them."""

    def count(node: int) -> tuple[int, int]:
        """Leaves below a node, and their class if they have one only."""
        if tree["left"][node] < 0:
            return 1, tree["class"][node]
        (left, first), (right, second) = count(tree["left"][node]), count(tree["right"][node])
        return (1, first) if first == second >= 0 else (left + right, -1)

    return count(0)[0]
