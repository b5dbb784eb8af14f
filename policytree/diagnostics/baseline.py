"""Table 1: who was studied, by treatment."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import treatment_codes, weights
from policytree.diagnostics.overlap_balance import balance_table
from policytree.exceptions import InputError
from policytree.trees.text import format_number
from policytree.weighting.covariates import Covariates

ALL, DIFFERENCE = "all", "largest difference"
DIGITS = 3  # significant ones of means


@aligns_rows
def baseline_table(T: Column, *, X: Table, sample_weight: Column | None = None) -> pd.DataFrame:
    """Describe the covariates of everybody and by treatment: the first table of a report on a study.

    Parameters
    ----------
    T : column of n labels
    X : table of shape (n, p)
        Categories have a row per value.
    sample_weight : column of n numbers, optional
        Of means, standard deviations and shares; counts stay those of rows.

    Returns
    -------
    DataFrame
        Index: "n", then the covariates. Columns: "all", the treatments and "largest difference", texts. Numbers are
        described by "mean (standard deviation)", columns of zeros and ones and values of categories by "rows (share)",
        each over the rows in which the covariate is known, and gaps by "rows (share)" in a row of their own. The last
        column is the largest standardised difference between two treatments (:func:`balance_table`).

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics import baseline_table
    >>> X = pd.DataFrame({"age": [30, 40, 50, 60], "female": [0, 1, 0, 1]})
    >>> baseline_table(["drug", "drug", "none", "none"], X=X).drop(index="n")
                    all         drug         none largest difference
    age     45.0 (12.9)  35.0 (7.07)  55.0 (7.07)               4.00
    female    2 (50.0%)    1 (50.0%)    1 (50.0%)               0.00
    """
    arm, labels = treatment_codes(T)
    if X is None:
        raise InputError("X is missing; pass the covariates to describe.")
    covariates = Covariates.fit(X)
    Z, names = covariates.matrix(X, None, len(arm)), covariates.names()
    base = weights(sample_weight, len(arm))
    base = np.ones(len(arm)) if base is None else base
    groups = [np.ones(len(arm), dtype=bool), *(arm == k for k in range(len(labels)))]
    differences = balance_table(T, X=X, sample_weight=sample_weight)["difference_before"].abs()
    largest = differences.groupby("covariate", sort=False).max().reindex(names)
    rows: dict[str, list[str]] = {"n": [*(f"{rows.sum():,}" for rows in groups), ""]}
    for name, column, difference in zip(names, Z.T, largest, strict=True):
        shown = [_described(column[rows], base[rows]) for rows in groups]
        rows[name] = [*shown, f"{difference:.2f}" if np.isfinite(difference) else ""]
        if (unknown := np.isnan(column)).any():
            rows[f"{name}, missing"] = [*(_counted(unknown[rows], base[rows]) for rows in groups), ""]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[ALL, *map(str, labels), DIFFERENCE])


def _described(column: np.ndarray, weight: np.ndarray) -> str:
    """Mean and standard deviation, or number and share of ones."""
    known = ~np.isnan(column)
    values, weight = column[known], weight[known]
    if not weight.sum() > 0.0:
        return "-"
    if np.isin(values, (0.0, 1.0)).all():
        return _counted(values == 1.0, weight)
    mean = np.average(values, weights=weight)
    # with equal weights the usual denominator, n - 1
    lost = (weight**2).sum() / weight.sum()
    variance = weight @ (values - mean) ** 2 / (weight.sum() - lost) if len(values) > 1 else 0.0
    return f"{format_number(mean, DIGITS)} ({format_number(float(np.sqrt(variance)), DIGITS)})"


def _counted(chosen: np.ndarray, weight: np.ndarray) -> str:
    return f"{chosen.sum():,} ({weight @ chosen / weight.sum():.1%})" if weight.sum() > 0.0 else "-"
