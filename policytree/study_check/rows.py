"""Findings about rows and arms: rows that repeat, and arms whose mean moves when people are made comparable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from policytree.evaluation import mean_estimate
from policytree.study_check.columns import is_text
from policytree.study_check.findings import REPEATED_IDS, Finding
from policytree.study_check.names import is_person
from policytree.weighting.observed import Observed

FINE = 20  # distinct values from which on a column tells rows apart
RARE, FEW = 0.01, 10  # a value of at most this share, or so many, of the rows: two such do not meet by chance
SOME_REPEATS, MANY_REPEATS = 0.001, 0.01  # of the rows
FEWEST_IDS, MOST_ROWS_AN_ID = 20, 20  # fewer ids, or more rows of each on average, are sites
CERTAIN = 4.0  # standard errors
WORTH_A_WORD = 0.1  # standard deviations of the outcome


def repeated_ids(table: pd.DataFrame) -> list[Finding]:
    """Columns of ids of persons, or of what else has ids, in which many ids stand in several rows."""
    findings = []
    for name, column in table.items():
        if not is_person(name) or not _may_be_ids(column):
            continue
        counts = column.value_counts()
        n, n_ids = int(counts.sum()), len(counts)
        if n_ids < FEWEST_IDS or n > MOST_ROWS_AN_ID * n_ids or n == n_ids:
            continue
        found = f"holds {n_ids:,} ids in {n:,} rows: rows of one id are dependent, and nothing says that they are"
        how = "Name it as the cluster (--cluster, groups= in Python): otherwise intervals are too short."
        severity = "warning" if n - n_ids > MANY_REPEATS * n else "note"
        findings.append(Finding(severity, REPEATED_IDS, str(name), found, how, rows=int(counts[counts > 1].sum())))
    return findings


def _may_be_ids(column: pd.Series) -> bool:
    """Texts, or whole numbers, for most rows."""
    present = column.dropna()
    if 2 * len(present) <= len(column) or pd.api.types.is_bool_dtype(column.dtype):
        return False
    if is_text(column):
        return True
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    values = present.to_numpy(dtype=np.float64)
    return bool(np.isfinite(values).all() and (values == np.floor(values)).all())


def repeated_rows(table: pd.DataFrame, seen: Observed) -> list[Finding]:
    """Rows that agree with another in everything although they could hardly do so by chance; with clusters, none."""
    if seen.groups is not None:
        return []
    codes = [pd.factorize(column, use_na_sentinel=False)[0] for _, column in table.items()]
    remedy = "name the cluster (groups): standard errors are too small otherwise."
    whole = _repeats([*codes, pd.factorize(seen.y)[0], seen.arm])
    if whole > max(1, SOME_REPEATS * seen.n):
        what = f"{whole:,} of {seen.n:,} rows repeat another in all columns, treatment and outcome"
        how = f"If people were entered twice, keep one row of each; if they have several rows, {remedy}"
        return [Finding("warning" if whole > MANY_REPEATS * seen.n else "note", "repeated rows", "", what, how)]
    people = _repeats(codes)
    if people <= MANY_REPEATS * seen.n:
        return []
    what = f"{people:,} of {seen.n:,} rows have the covariates of another row, to the last digit"
    return [Finding("warning", "repeated rows", "", what, f"If people have several rows, {remedy}")]


def _repeats(codes: list[np.ndarray]) -> int:
    """Rows that equal an earlier one in all these columns, and hold two values at least that few other rows hold."""
    if not codes:
        return 0
    n = len(codes[0])
    telling = np.zeros(n, dtype=np.int64)
    for code in codes:
        counts = np.bincount(code)
        if len(counts) >= FINE:
            telling += counts[code] <= max(RARE * n, FEW)
    rows = np.flatnonzero(telling >= 2)
    key = np.zeros(len(rows), dtype=np.int64)
    for code in codes:
        key = np.unique(key * (int(code.max()) + 1) + code[rows], return_inverse=True)[1].astype(np.int64)
    return len(key) - (int(key.max(initial=-1)) + 1)


def moved_means(seen: Observed, rewards: pd.DataFrame) -> list[Finding]:
    """Arms whose raw mean is far from the mean that everybody would have under them, by the rewards."""
    findings, spread = [], float(seen.y.std())
    w = np.ones(seen.n) if seen.sample_weight is None else seen.sample_weight
    options: dict[str, Any] = {"groups": seen.groups, "sample_weight": seen.sample_weight}
    for k, label in enumerate(seen.treatments):
        own = seen.arm == k
        raw = float(np.average(seen.y[own], weights=w[own]))
        share = np.average(own, weights=w)
        scores = rewards[label].to_numpy()
        moved = mean_estimate(scores - raw - own * (seen.y - raw) / share, **options)
        if abs(moved.value) > max(CERTAIN * moved.standard_error, WORTH_A_WORD * spread):
            what = (
                f"has a mean outcome of {raw:,.4g} among those who got it, but an estimated {raw + moved.value:,.4g} "
                f"if everybody did (difference {moved.value:+,.3g}, 95% interval [{moved.lower:,.3g}, "
                f"{moved.upper:,.3g}])"
            )
            remedy = (
                "In a randomised trial that should not be: look for covariates measured after treatment, and for wrong "
                "probabilities. Otherwise people differ between treatments, and all depends on having adjusted for it."
            )
            findings.append(Finding("warning", "moved mean", f"Treatment {label!s}", what, remedy))
    return findings
