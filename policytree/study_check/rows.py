"""Findings about rows and arms: rows that repeat, and arms whose mean moves when people are made comparable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr, stdtrit

from policytree.common.option_words import typed
from policytree.study_check.columns import is_text
from policytree.study_check.findings import REPEATED_IDS, Finding
from policytree.study_check.names import is_person
from policytree.weighting.cluster_robust import covariance_of_means, mean_and_influence, n_units, variance_of_mean
from policytree.weighting.study_data import StudyData

FINE = 20  # distinct values from which on a column tells rows apart
RARE, FEW = 0.01, 10  # a value of at most this share, or so many, of the rows: two such do not meet by chance
SOME_REPEATS, MANY_REPEATS = 0.001, 0.01  # of the rows
FEWEST_IDS, MOST_ROWS_AN_ID = 20, 20  # fewer ids, or more rows of each on average, are sites
JOINTLY = 0.001  # level of the test of all arms at once
CERTAIN = 4.0  # standard errors
WORTH_A_WORD = 0.1  # standard deviations of the outcome
MUCH = 0.01  # of the rows, by weight: more than a few that hardly move any mean
COLLINEAR = 1e-6  # a share of the largest eigenvalue, below which means say the same
FEW_EFFECTIVE = 0.1  # of an arm's rows


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
        how = f"Name it as the cluster (--cluster {typed(name)}, in Python groups=): otherwise intervals are too short."
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


def repeated_rows(table: pd.DataFrame, seen: StudyData) -> list[Finding]:
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


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """How far a mean moved, with its standard error (robust to clusters), its 95 % interval and its influences."""

    value: float
    standard_error: float
    lower: float
    upper: float
    influence: np.ndarray


def _moved(scores: np.ndarray, seen: StudyData) -> Moved:
    """The mean of scores (n,)."""
    value, influence = mean_and_influence(scores, seen.weight)
    units = n_units(seen.weight, seen.groups)
    error = float(np.sqrt(variance_of_mean(influence, seen.groups, units)))
    half = float(stdtrit(max(units - 1, 1), 0.975)) * error
    return Moved(value, error, value - half, value + half, influence)


@dataclass(frozen=True, slots=True)
class ArmMean:
    """The mean outcome of one treatment, as observed and by the rewards.

    Attributes
    ----------
    label : object
    n : int
        Rows that got it.
    observed : float
        Their mean outcome; weighted by one over the probability of treatment where that is known row by row.
    estimated : float
        Mean reward: what everybody's mean outcome would be.
    difference : Moved
        The second less the first, whose standard error allows for both being of the same rows.
    """

    label: Any
    n: int
    observed: float
    estimated: float
    difference: Moved

    @property
    def z(self) -> float:
        """The difference in standard errors; NaN if there are none."""
        error = self.difference.standard_error
        return self.difference.value / error if error > 0 else float("nan")


def arm_means(seen: StudyData, rewards: pd.DataFrame, propensity: np.ndarray | None = None) -> tuple[ArmMean, ...]:
    """Means by treatment, as observed and by the rewards.

    Parameters
    ----------
    seen : StudyData
    rewards : DataFrame of shape (n, K)
    propensity : ndarray of shape (n, K), optional
        Known probabilities of treatment.
    """
    found = []
    for k, label in enumerate(seen.treatments):
        own = (seen.arm == k).astype(np.float64)
        if propensity is not None:
            own = own / propensity[:, k]
        observed = float(np.average(seen.y, weights=own * seen.weight))
        share = np.average(own, weights=seen.weight)
        scores = rewards[label].to_numpy()
        moved = _moved(scores - observed - own * (seen.y - observed) / share, seen)
        found.append(ArmMean(label, int((seen.arm == k).sum()), observed, observed + moved.value, moved))
    return tuple(found)


def moved_together(seen: StudyData, means: Iterable[ArmMean]) -> float:
    """Probability, if no mean may move, that arms' means move at least as far as these do.

    Twice the smaller of two probabilities: of the chi-squared statistic of all arms with their covariance, and
    Bonferroni's of the arm that moves most. Means of two arms move nearly in opposite directions, so that the first has
    a degree of freedom more than there is evidence for.
    """
    parts = [mean.difference for mean in means if mean.difference.standard_error > 0]
    if not parts:
        return 1.0
    moved = np.array([part.value for part in parts])
    influence = np.column_stack([part.influence for part in parts])
    covariance = covariance_of_means(influence, seen.weight, seen.groups)
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > COLLINEAR * values.max()
    projected = vectors[:, kept].T @ (moved / scale)
    jointly = float(chdtrc(kept.sum(), (projected**2 / values[kept]).sum()))
    alone = len(parts) * 2.0 * float(ndtr(-np.abs(moved / scale).max()))
    return min(1.0, 2.0 * min(jointly, alone))


def moved_jointly(p: float, means: Iterable[ArmMean], by_chance: str) -> list[Finding]:
    """Arms whose means move together though treatment was given by chance; ``p`` as of :func:`moved_together`."""
    if p >= JOINTLY:
        return []
    moves = ", ".join(f"{mean.label!s} {mean.difference.value:+,.3g} (z = {mean.z:.1f})" for mean in means)
    what = (
        f"Estimated means, if everybody got a treatment, differ from the means of those who got it: {moves}; jointly "
        f"p = {p:.2g}, though {by_chance}"
    )
    remedy = "Look for covariates that were measured after treatment, and for wrong probabilities."
    return [Finding("serious", "moved means", "", what, remedy)]


def moved_means(seen: StudyData, means: Iterable[ArmMean], by_chance: str) -> list[Finding]:
    """Arms whose mean as observed is far from the mean that everybody would have under them, by the rewards.

    ``by_chance`` says how it is known that treatment was given by chance, so that no mean may move; "" if it is not.
    """
    findings, spread = [], float(seen.y.std())
    for mean in means:
        moved = mean.difference
        if abs(moved.value) <= max(CERTAIN * moved.standard_error, 0.0 if by_chance else WORTH_A_WORD * spread):
            continue
        what = (
            f"has a mean outcome of {mean.observed:,.4g} among those who got it, but an estimated "
            f"{mean.estimated:,.4g} if everybody did (difference {moved.value:+,.3g}, 95% interval "
            f"[{moved.lower:,.3g}, {moved.upper:,.3g}], z = {mean.z:.1f})"
        )
        if by_chance:
            what += f", though {by_chance}"
            remedy = "Look for covariates that were measured after treatment, and for wrong probabilities."
        else:
            remedy = (
                "In a randomised trial that should not be: look for covariates measured after treatment, and for wrong "
                "probabilities. Otherwise people differ between treatments, and all depends on having adjusted for it."
            )
        severity = "serious" if by_chance else "warning"
        findings.append(Finding(severity, "moved mean", f"Treatment {mean.label!s}", what, remedy))
    return findings


def outside_range(means: Iterable[ArmMean], limits: tuple[float, float]) -> list[Finding]:
    """Arms whose estimated mean lies outside the range of outcomes, between the least and the largest of them."""
    low, high = limits
    margin = 1e-9 * (high - low)
    return [
        Finding(
            "serious", "outside range", f"Treatment {mean.label!s}",
            f"has an estimated mean of {mean.estimated:,.4g} if everybody got it, outside the outcomes, which lie "
            f"between {low:,.4g} and {high:,.4g}",
            "Too few rows, or some that could hardly get it, decide it: leave these rows or that treatment out.",
        )
        for mean in means
        if not low - margin <= mean.estimated <= high + margin
    ]  # fmt: skip


def thin_support(seen: StudyData, propensity: np.ndarray, floor: float) -> list[Finding]:
    """Arms whose estimated chances reach the floor, or whose mean rests on a few rows with large weights.

    Parameters
    ----------
    seen : StudyData
    propensity : ndarray of shape (n, K)
        Estimated probabilities of treatment, raised to ``floor``.
    """
    findings = []
    for k, label in enumerate(seen.treatments):
        name = f"Treatment {label!s}"
        at_floor = propensity[:, k] <= floor * (1 + 1e-9)
        share = float(np.average(at_floor, weights=seen.weight))
        if at_floor.any():
            what = (
                f"is estimated to have been given to people like {at_floor.sum():,} of {seen.n:,} rows ({share:.1%}) "
                f"with a probability of less than {floor:g}"
            )
            remedy = "Its effect on them rests on the outcome model alone: leave these rows out, or treatment."
            findings.append(Finding("serious" if share >= MUCH else "note", "no overlap", name, what, remedy))
        own = seen.arm == k
        weight = (seen.weight / propensity[:, k])[own]
        if weight.sum() <= 0:
            continue
        effective, count = float(weight.sum() ** 2 / (weight**2).sum()), int(own.sum())
        if effective < FEW_EFFECTIVE * count:
            what = f"has {count:,} rows, but its estimates rest on the equivalent of {effective:,.0f} of them"
            remedy = (
                "Few people who got it are like the others: leave out rows whose probabilities are extreme, or weigh "
                "the population towards those who could get either (estimand='overlap')."
            )
            findings.append(Finding("serious", "few effective rows", name, what, remedy))
    return findings
