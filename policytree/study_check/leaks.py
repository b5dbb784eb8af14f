"""Findings about leaks: columns that reveal the outcome or the treatment, or repeat another column."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.study_check.columns import is_text
from policytree.study_check.findings import DETERMINES_OUTCOME, DETERMINES_TREATMENT, Finding
from policytree.weighting.study_data import StudyData

MOST_BINS = 100
ROWS_A_VALUE, ROWS_A_BIN = 5, 10  # on average, for values to be bins of their own; in a bin otherwise
DETERMINES, EXPLAINS = 0.95, 0.75  # of the outcome's variance, by one covariate
TREATMENT_KNOWN = 0.9  # of the variation of who got some treatment, by one covariate
TOGETHER = 0.98  # of the outcome's variance, by all numbers in a linear model
FEWEST_ROWS = 30
MISSING_GAP, MISSING_CERTAIN = 0.1, 5.0  # difference of shares between treatments, and in standard errors
_DIGITS = re.compile(r"[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?")


def numbers_of(column: pd.Series) -> np.ndarray:
    """A column as float64 with NaN for missing; texts by the first number in them, NaN without one."""
    if not is_text(column):
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.where(np.isinf(values), np.nan, values)  # refused elsewhere
        ranks = pd.factorize(column, sort=True)[0].astype(np.float64)  # dates and durations: only their order counts
        return np.where(ranks < 0, np.nan, ranks)
    codes, values = pd.factorize(column)
    found = [_DIGITS.search(str(value)) for value in values]
    each = np.array([float(hit[0]) if hit else np.nan for hit in found] + [np.nan])
    return each[codes]


def bins_of(values: np.ndarray) -> np.ndarray:
    """Codes 0, 1, ... of at most 100 bins of nearly equal size, equal values together, missing ones apart; (n,)."""
    missing = np.isnan(values)
    known = values[~missing]
    codes = np.full(len(values), 0, dtype=np.int64)
    if len(known):
        distinct = np.unique(known)
        if len(distinct) > min(MOST_BINS, len(known) // ROWS_A_VALUE):
            most = min(MOST_BINS, max(2, len(known) // ROWS_A_BIN))
            distinct = np.unique(np.quantile(known, np.arange(1, most + 1) / most, method="inverted_cdf"))
        codes[~missing] = 1 + np.minimum(np.searchsorted(distinct, known), len(distinct) - 1)
    return np.unique(codes, return_inverse=True)[1]


def explained(codes: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Share of each target's variance between the groups of ``codes``, less what chance explains; (n_targets,).

    Parameters
    ----------
    codes : ndarray of shape (n,), int
        0, 1, ...
    targets : ndarray of shape (n, n_targets), each with mean zero
    """
    n, n_groups = len(codes), int(codes.max()) + 1
    if n - n_groups < max(FEWEST_ROWS, n_groups):
        return np.zeros(targets.shape[1])
    counts = np.bincount(codes, minlength=n_groups)
    sums = np.column_stack([np.bincount(codes, weights=target, minlength=n_groups) for target in targets.T])
    total = (targets**2).sum(axis=0)
    within = total - (sums**2 / counts[:, None]).sum(axis=0)
    shares = 1.0 - (within / (n - n_groups)) / np.maximum(total / (n - 1), np.finfo(float).tiny)
    return np.where(total > 0, shares, 0.0)  # a constant is explained by nothing


def leak_findings(table: pd.DataFrame, y: np.ndarray, arm: np.ndarray, labels: np.ndarray) -> list[Finding]:
    """Columns that nearly determine the outcome or the treatment, each alone; then all numbers together."""
    if len(y) < FEWEST_ROWS:
        return []
    # Heavy tails hide a copy from the variance, but not from the variance of ranks.
    centred = y - y.mean()
    centred = centred / max(float(np.abs(centred).max()), np.finfo(float).smallest_subnormal)  # squares must not vanish
    outcome = np.column_stack([centred, pd.Series(y).rank().to_numpy() - (len(y) + 1) / 2])
    treatment = (arm[:, None] == np.arange(len(labels))).astype(np.float64)
    treatment = treatment - treatment.mean(axis=0)
    findings, numeric, alone = [], [], 0.0
    for name, column in table.items():
        values = numbers_of(column)
        groupings = _groupings(column, values)
        if not is_text(column):
            numeric.append(values)
        of_outcome = max((float(explained(codes, outcome).max()) for codes in groupings), default=0.0)
        each = np.array([explained(codes, treatment) for codes in groupings]).reshape(-1, treatment.shape[1])
        alone = max(alone, of_outcome)
        findings += _about_outcome(str(name), of_outcome) + _about_treatment(
            str(name), each.max(axis=0, initial=0.0), labels
        )
    return findings + (_together(numeric, centred) if alone < EXPLAINS and centred.any() else [])


def _about_outcome(name: str, share: float) -> list[Finding]:
    if share < EXPLAINS:
        return []
    severity = "serious" if share >= DETERMINES else "warning"
    what = f"explains {share:.1%} of the outcome's variance"
    if severity == "serious":
        what = f"nearly determines the outcome: it explains {share:.1%} of its variance"
    remedy = (
        "If it is the outcome in another form, or was measured after treatment began, leave it out: with it, every "
        "effect disappears and intervals are far too short."
    )
    return [Finding(severity, DETERMINES_OUTCOME, name, what, remedy)]


def offer_leaks(table: pd.DataFrame, arm: np.ndarray, labels: np.ndarray) -> list[Finding]:
    """Columns that nearly determine the offer, each alone; ``arm`` (n,) is the position of each row's offer."""
    if len(arm) < FEWEST_ROWS:
        return []
    offers = (arm[:, None] == np.arange(len(labels))).astype(np.float64)
    offers, findings = offers - offers.mean(axis=0), []
    for name, column in table.items():
        shares = [explained(codes, offers) for codes in _groupings(column, numbers_of(column))]
        findings += _about_treatment(str(name), np.max(shares, axis=0, initial=0.0), labels, "offer") if shares else []
    return findings


def _groupings(column: pd.Series, values: np.ndarray) -> list[np.ndarray]:
    """Codes (n,) by which a column may group rows: bins of its numbers, its texts."""
    groupings = [bins_of(values)] if not np.isnan(values).all() else []
    return [*groupings, *([pd.factorize(column, use_na_sentinel=False)[0].astype(np.int64)] if is_text(column) else [])]


def _about_treatment(name: str, shares: np.ndarray, labels: np.ndarray, what: str = "treatment") -> list[Finding]:
    k = int(shares.argmax())
    if shares[k] < TREATMENT_KNOWN:
        return []
    found = f"nearly determines the {what}: it explains {shares[k]:.1%} of who got {labels[k]!s}"
    remedy = (
        f"If it records the {what}, leave it out. If {'treatment' if what == 'treatment' else 'the offer'} was given "
        f"by it, people with its other values cannot show what the {what} would do for these: no method can tell both "
        "apart."
    )
    return [Finding("serious", DETERMINES_TREATMENT, name, found, remedy)]


def _together(numeric: list[np.ndarray], y: np.ndarray) -> list[Finding]:
    """A sum or difference of columns that is the outcome, such as baseline and change."""
    columns = [np.where(np.isnan(v), np.nanmean(v), v) for v in numeric if not np.isnan(v).all()]
    if len(columns) < 2 or len(y) < 5 * len(columns) + FEWEST_ROWS:
        return []
    A = np.column_stack([v / max(float(np.abs(v).max()), np.finfo(float).tiny) for v in columns])  # squares overflow
    A = A - A.mean(axis=0)
    scale = A.std(axis=0)
    A = A[:, scale > 0] / scale[scale > 0]
    values, vectors = np.linalg.eigh(A.T @ A / len(y))
    kept = values > 1e-10 * max(values.max(initial=0.0), 1e-300)
    projected = (A @ vectors[:, kept]).T @ y
    share = float((projected**2 / values[kept]).sum() / len(y) / max((y**2).sum(), np.finfo(float).tiny))
    share = 1.0 - (1.0 - share) * (len(y) - 1) / (len(y) - 1 - kept.sum())
    if share < TOGETHER:
        return []
    what = f"The covariates together determine the outcome: a sum of them explains {share:.1%} of its variance"
    remedy = "Look for its parts among them, such as a change since baseline or a total, and leave them out."
    return [Finding("serious", "determine outcome together", "", what, remedy)]


def missing_by_treatment(table: pd.DataFrame, arm: np.ndarray, labels: np.ndarray) -> list[Finding]:
    """Columns that are missing much more often under one treatment than under another."""
    findings, sizes = [], np.bincount(arm, minlength=len(labels))
    for name, column in table.items():
        missing = column.isna().to_numpy()
        if not missing.any():
            continue
        share = np.bincount(arm, weights=missing, minlength=len(labels)) / np.maximum(sizes, 1)
        high, low = int(share.argmax()), int(share.argmin())
        pooled = missing.mean() * (1.0 - missing.mean())
        error = np.sqrt(pooled * (1.0 / max(sizes[high], 1) + 1.0 / max(sizes[low], 1)))
        if share[high] - share[low] > max(MISSING_GAP, MISSING_CERTAIN * error):
            what = (
                f"is missing in {share[high]:.0%} of the rows of {labels[high]!s} and {share[low]:.0%} of those of "
                f"{labels[low]!s}"
            )
            remedy = (
                "If treatment decides who has a value, it was measured afterwards, or by another study: leave it out."
            )
            findings.append(Finding("warning", "missing by treatment", str(name), what, remedy))
    return findings


def missing_outcomes(seen: StudyData, name: str | None) -> list[Finding]:
    """The outcome, where it is missing much more often under one treatment than under another."""
    if seen.seen is None:
        return []
    table = pd.DataFrame({name or "outcome": np.where(seen.seen, 0.0, np.nan)})
    remedy = (
        "Weights make up for it only if nothing but the covariates and the treatment decides who is lost: find out why "
        "they were."
    )
    return [replace(found, remedy=remedy) for found in missing_by_treatment(table, seen.arm, seen.treatments)]


def repeated_columns(table: pd.DataFrame) -> list[Finding]:
    """Columns that repeat another column: equal values, or a one-to-one mapping of few values."""
    seen: dict[Any, str] = {}
    findings = []
    for name, column in table.items():
        codes, values = pd.factorize(column, use_na_sentinel=False)
        if len(values) < 2:
            continue
        exact = len(values) > len(column) // 10  # columns of many values map one to one by chance
        key: Any = (exact, numbers_of(column).tobytes() if exact and not is_text(column) else codes.tobytes())
        if exact and is_text(column):
            key = (exact, tuple(map(str, values[:1000])), *key[1:])
        if key in seen:
            remedy = "Leave one of them out; a rule may show either."
            findings.append(Finding("note", "repeated column", str(name), f"says the same as {seen[key]}", remedy))
        else:
            seen[key] = str(name)
    return findings
