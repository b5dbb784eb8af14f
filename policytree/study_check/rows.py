"""Findings about rows and arms: rows that repeat, and arms whose mean moves when people are made comparable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from policytree.evaluation import mean_estimate
from policytree.study_check.findings import Finding
from policytree.weighting.observed import Observed

FINE = 20  # distinct values from which on a column tells rows apart
REPEATS = 0.01  # of the rows
CERTAIN = 4.0  # standard errors
WORTH_A_WORD = 0.1  # standard deviations of the outcome


def repeated_rows(table: pd.DataFrame, seen: Observed) -> list[Finding]:
    """Rows that agree with another in everything although they could hardly do so by chance."""
    codes = [pd.factorize(column, use_na_sentinel=False)[0] for _, column in table.items()]
    every = [*codes, pd.factorize(seen.y)[0], seen.arm]
    groups = [] if seen.groups is None else [seen.groups]
    whole, people = _same(every + groups), _same([*codes, *groups])
    alike = _alike(every)
    if alike < 1e-6 and whole:
        what = f"{whole:,} of {seen.n:,} rows repeat another in all columns, treatment and outcome"
        remedy = "If people were entered twice, keep one row of each; if rows are counts, use weights."
        if seen.groups is None:
            remedy += " If a person has several rows, name the cluster: standard errors are too small otherwise."
        severity = "warning" if whole > REPEATS * seen.n else "note"
        return [Finding(severity, "repeated rows", "", what, remedy)] if seen.groups is None else []
    if seen.groups is None and _alike(codes) < 1e-6 and people > REPEATS * seen.n:
        what = f"{people:,} of {seen.n:,} rows have the covariates of another row, to the last digit"
        remedy = "If people have several rows, name the cluster (groups): standard errors are too small otherwise."
        return [Finding("warning", "repeated rows", "", what, remedy)]
    return []


def _same(codes: list[np.ndarray]) -> int:
    """Rows that equal an earlier one in all these columns."""
    key = np.zeros(len(codes[0]), dtype=np.int64) if codes else np.zeros(0, dtype=np.int64)
    for code in codes:
        key = np.unique(key * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1].astype(np.int64)
    return len(key) - (int(key.max(initial=-1)) + 1)


def _alike(codes: list[np.ndarray]) -> float:
    """Chance that two rows agree in all columns with many values, if these were independent; 1 without two of them."""
    chances = []
    for code in codes:
        counts = np.bincount(code)
        if len(counts) >= FINE:
            chances.append(float(((counts / len(code)) ** 2).sum()))
    return float(np.prod(chances)) if len(chances) >= 2 else 1.0


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
