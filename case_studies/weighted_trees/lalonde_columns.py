"""Lalonde has 474 columns by the rule that gives the published numbers of other tables, and 447 in the paper: why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from tables import read_table
from weighted_trees.data import SOURCES, lalonde_labels

PUBLISHED = 447
RULE = {"coupon_rest20_onehot": 87, "broward": 588, "compas": 134, "fico_heloc": 1_917}  # columns as published
SOURCE = "R. Dehejia's page on the National Supported Work data"
LATER = ("treat", "re78")  # no covariates
DRAWS = 1_000
SHARES = (0.8, 0.9, 0.95)


def columns(frame: pd.DataFrame) -> int:
    """Distinct values less one, over the features."""
    return int(sum(frame[name].nunique() - 1 for name in frame))


def main(study) -> None:
    """The rule on the other tables, then everything that was tried on Lalonde."""
    study.heading("0/1 columns of Lalonde: distinct values less one, over the features")
    for name, published in RULE.items():
        found = columns(read_table(name, SOURCES[name], study.data_dir).iloc[:, :-1])
        study.show(f"{name}: {found:,}, published {published:,}")
    men = read_table("nsw_lalonde", SOURCE, study.data_dir, "trials")
    subset = read_table("nsw_dw", SOURCE, study.data_dir, "trials")
    _, labels = lalonde_labels()
    rows = [{"counted": what, "men": len(frame), "columns": columns(frame)} for what, frame in readings(men, subset)]
    rows += [{"counted": what, "men": len(men), "columns": number} for what, number in by_class(men, labels)]
    study.show(f"\nLalonde, of which {PUBLISHED} columns are published:")
    study.table(pd.DataFrame(rows), "lalonde_columns", index=False)
    same = [row["counted"] for row in rows if row["columns"] == PUBLISHED]
    study.show(f"Of {len(rows)} ways, {len(same)} give {PUBLISHED}{': ' if same else ''}{'; '.join(same)}.")
    draws = 20 if study.quick else DRAWS
    for share in SHARES:
        found = np.array([columns(covariates(men.sample(frac=share, random_state=seed))) for seed in range(draws)])
        study.show(f"{share:.0%} of the men, {draws:,} draws: {found.min()} to {found.max()} columns, mean "
                   f"{found.mean():.0f}; {PUBLISHED} in {np.mean(found == PUBLISHED):.1%}")  # fmt: skip


def covariates(frame: pd.DataFrame) -> pd.DataFrame:
    """Drop the columns that were not known before the training."""
    return frame.drop(columns=list(LATER))


def readings(men: pd.DataFrame, subset: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Other rows, other features, and earnings that were rounded: all tables of which columns can be counted."""
    X, known = covariates(men), covariates(subset)
    yield "as the file is (LaLonde's men)", X
    yield "with the treatment", men.drop(columns="re78")
    yield "with earnings of 1978 for those of 1975", men.drop(columns=["treat", "re75"])
    yield "Dehejia and Wahba's men, without re74", known.drop(columns="re74")
    yield "Dehejia and Wahba's men, with re74", known
    for arm, name in ((1, "trained"), (0, "control")):
        yield f"{name} only", X[men["treat"] == arm]
    yield "earned something in 1975", X[X["re75"] > 0]
    yield "earned something in 1978", X[men["re78"] > 0]
    yield "no row that occurs twice", X[~X.duplicated(keep=False)]
    for digits in (0, 1, 2):
        yield f"earnings with {digits} decimals", X.assign(re75=X["re75"].round(digits))
    yield "earnings cut to whole dollars", X.assign(re75=np.floor(X["re75"]))
    for digits in (2, 3, 4, 5, 6):
        shown = [float(f"{value:.{digits}g}") for value in X["re75"]]
        yield f"earnings with {digits} significant digits", X.assign(re75=shown)
    for dollars in (2, 5, 10, 50, 100):
        yield f"earnings in steps of {dollars} dollars", X.assign(re75=(X["re75"] / dollars).round())
    for kind in ("float32", "float16"):
        yield f"earnings as {kind}", X.assign(re75=X["re75"].astype(kind))


def by_class(men: pd.DataFrame, labels: np.ndarray) -> Iterator[tuple[str, int]]:
    """Only splits between neighbouring values that do not all have one class (buckets); and both arms on their own."""
    X = covariates(men)
    classes = {
        "treatments": men["treat"].to_numpy(),
        "employment in 1978": (men["re78"] > 0).to_numpy(),
        "our labels": labels,
    }
    for name, of in classes.items():
        yield f"splits that part {name} only", sum(buckets(X[column], of) for column in X)
    yield "splits of either arm, added up", sum(columns(X[men["treat"] == arm]) for arm in (0, 1))


def buckets(values: pd.Series, classes: np.ndarray) -> int:
    """Splits of a feature whose two neighbouring values hold more than one class."""
    least, most = (pd.Series(classes).groupby(values.to_numpy()).agg(kind).to_numpy() for kind in ("min", "max"))
    return int(np.count_nonzero(np.minimum(least[1:], least[:-1]) != np.maximum(most[1:], most[:-1])))
