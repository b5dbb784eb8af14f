"""What McTavish et al. (2022) print: Tables 4 to 7 (the file beside this one), single trees, and rules of Table 8."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

# Seconds may be limit (1,800 s), mem (out of memory) or NA (could not be run); sd over five folds; th: thresholds
# guessed; lb: lower bounds guessed.
TABLES = Path(__file__).with_name("tables_4_to_7.csv")


@dataclass(frozen=True)
class Split:
    """``feature <= threshold`` takes ``yes``; a leaf is 0 or 1."""

    feature: str
    threshold: float
    yes: Split | int
    no: Split | int


@dataclass(frozen=True)
class Printed:
    """A printed tree, with what stands beside it: price of a leaf, depth limit, reference, accuracies of one fold."""

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


AGE, PRIORS, FEMALE = "age", "priors_count", "sex=female"
ERE, MRI = "ExternalRiskEstimate", "MSinceMostRecentInqexcl7days"
NFRB, PTB, AMF = "NetFractionRevolvingBurden", "PercentTradesWBalance", "AverageMInFile"
OLD = Split(AGE, 36.5, Split(PRIORS, 2.5, 0, 1), Split(PRIORS, 7.5, 0, 1))
FEW_PRIORS = Split(PRIORS, 1.5, 0, 1)
MEN = Split(FEMALE, 0.5, 1, 0)
RISK = Split(ERE, 67.5, 1, 0)
BOOSTED, STUMPS = (20, 3), (40, 1)

# Trees of GOSDT with guessed thresholds and lower bounds, but for those of DL8.5; COMPAS in fold 2, FICO in fold 4.
TREES = [
    Printed("COMPAS, .001, depth 3", "COMPAS", 0.001, 3, BOOSTED, 0.683, 0.689,
            Split(AGE, 27.5, Split(AGE, 21.5, 1, FEW_PRIORS), OLD)),
    Printed("COMPAS, .001, depth 5", "COMPAS", 0.001, 5, BOOSTED, 0.685, 0.696,
            Split(AGE, 19.5, 1, Split(PRIORS, 2.5, Split(AGE, 22.5, MEN, Split(AGE, 27.5, FEW_PRIORS, 0)),
                                      Split(AGE, 36.5, 1, Split(PRIORS, 7.5, 0, 1))))),
    Printed("COMPAS, .005, depth 3 and 5", "COMPAS", 0.005, 5, BOOSTED, 0.678, 0.687,
            Split(AGE, 21.5, 1, Split(AGE, 33.5, FEW_PRIORS, Split(PRIORS, 6.5, 0, 1)))),
    Printed("COMPAS, DL8.5, depth 3", "COMPAS", None, 3, BOOSTED, 0.683, 0.695,
            Split(AGE, 27.5, Split(AGE, 22.5, MEN, FEW_PRIORS), OLD)),
    Printed("FICO, .0005, depth 3", "FICO", 0.0005, 3, STUMPS, 0.714, 0.710,
            Split(MRI, 0.5, Split(MRI, -7.5, RISK, Split(ERE, 76.5, 1, 0)),
                  Split(ERE, 67.5, 1, Split(NFRB, 62.5, 0, 1)))),
    Printed("FICO, DL8.5, depth 3", "FICO", None, 3, STUMPS, 0.714, 0.709,
            Split(MRI, 0.5, Split(MRI, -7.5, RISK, Split(ERE, 76.5, 1, 0)),
                  Split(ERE, 67.5, 1, Split(NFRB, 59.5, 0, 1)))),
    Printed("FICO, .001, depth 3", "FICO", 0.001, 3, STUMPS, 0.713, 0.711,
            Split(MRI, -7.5, RISK, Split(MRI, 0.5, Split(ERE, 76.5, 1, 0), RISK))),
    Printed("FICO, .001, depth 5", "FICO", 0.001, 5, STUMPS, 0.717, 0.719,
            Split(ERE, 70.5, 1, Split(ERE, 78.5, Split(MRI, 0.5, Split(PTB, 73.5, Split(AMF, 63.5, 1, 0),
                                                                       Split(MRI, -7.5, 0, 1)), 0), 0))),
    Printed("FICO, CG rules, default (Table 8)", "FICO", None, 2, STUMPS, 0.701, 0.709,
            Split(ERE, 71.5, 1, Split(AMF, 47.5, 1, 0))),
    Printed("FICO, .001, depth 2 (Table 8)", "FICO", 0.001, 2, STUMPS, 0.708, 0.707,
            Split(AMF, 59.5, Split(ERE, 78.5, 1, 0), Split(ERE, 70.5, 1, 0))),
]  # fmt: skip
