"""Look at a study before anything is fitted: leaks, ids, dates, numbers as text, repeats; each with what to do."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

from policytree.annotations import Column, Table
from policytree.checks import as_series
from policytree.exceptions import InputError
from policytree.feature_encoder import as_pandas, object_numbers
from policytree.study_check.columns import alike, column_findings
from policytree.study_check.findings import Finding, StudyCheck, by_severity
from policytree.study_check.leaks import leak_findings, missing_by_treatment, repeated_columns
from policytree.study_check.rows import moved_means, repeated_rows
from policytree.weighting.observed import observe

__all__ = ["Finding", "StudyCheck", "check_rewards", "check_study"]


def check_study(
    X: Table,
    T: Column,
    Y: Column,
    *,
    W: Table | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
) -> StudyCheck:
    """Look for what makes results wrong without any error: before anything is fitted, in seconds.

    Looked for: a covariate, or a sum of them, that nearly determines the outcome or the treatment (copies with noise,
    in other units, cut into classes or hidden in text too); names that suggest a measurement after treatment; values
    missing under one treatment; ids, dates, numbers stored as text; constant, repeated and mostly missing columns; rare
    categories, unused levels; labels that only case or blanks tell apart; rows that repeat. :func:`check_rewards` adds
    what can be seen after a fit.

    Parameters
    ----------
    X : table of shape (n, p)
        What a rule may look at: pandas or polars frame, or array.
    T : column of n labels
    Y : column of n numbers
    W : table of shape (n, q), optional
        Further confounders.
    groups, sample_weight : columns of shape (n,), optional
        As in :meth:`policytree.DRPolicyTree.fit`.

    Returns
    -------
    StudyCheck

    Raises
    ------
    InputError
        If ``Y``, ``T``, ``groups`` or ``sample_weight`` cannot be used at all, or lengths differ.

    Notes
    -----
    A covariate's share of the outcome's variance is the adjusted R2 of the means of at most 100 bins (or of the
    categories), the larger of that of the outcome and of its ranks: a monotone or other transformation does not hide a
    copy. From .95 on a finding is serious, from .75 on a warning: a baseline measurement of the outcome may honestly
    explain that much.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import check_study
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> X = pd.DataFrame({"age": rng.integers(20, 80, size=500), "score": np.exp(y)})
    >>> [(f.severity, f.column) for f in check_study(X, rng.integers(2, size=500), y).findings]
    [('serious', 'score')]
    """
    seen = observe(Y, T, groups=groups, sample_weight=sample_weight)
    tables = [_table(X, "X", seen.n)] + ([] if W is None else [_table(W, "W", seen.n)])
    table = pd.concat(tables, axis=1)
    table = table.loc[:, ~table.columns.duplicated()]
    name = _name(Y)
    findings: list[Finding] = []
    for _, column in table.items():
        findings += column_findings(column, name)
    findings += _unused_treatments(T)
    findings += _alike_treatments(seen.treatments)
    findings += leak_findings(table, seen.y, seen.arm, seen.treatments)
    findings += missing_by_treatment(table, seen.arm, seen.treatments)
    findings += repeated_columns(table)
    findings += repeated_rows(table, seen)
    return StudyCheck(by_severity(findings), seen.n, table.shape[1])


def check_rewards(
    Y: Column, T: Column, rewards: Table, *, groups: Column | None = None, sample_weight: Column | None = None
) -> StudyCheck:
    """What can be seen once rewards are there: treatments whose raw mean is far from its estimated value.

    Parameters
    ----------
    Y, T, groups, sample_weight
        As for :func:`check_study`.
    rewards : DataFrame of shape (n, K)
        ``RewardEstimator.rewards_`` for these rows.

    Returns
    -------
    StudyCheck

    Raises
    ------
    InputError
        If an argument cannot be used, or the rewards are of other rows.
    """
    seen = observe(Y, T, groups=groups, sample_weight=sample_weight)
    frame = as_pandas(rewards)
    if frame is None or len(frame) != seen.n or not set(seen.treatments) <= set(frame.columns):
        raise InputError("rewards must be a frame with a row per row of Y and a column per treatment of T.")
    return StudyCheck(tuple(moved_means(seen, frame)), seen.n, 0)


def _table(X, argument: str, n: int) -> pd.DataFrame:
    """A pandas frame with text names, its index 0 .. n - 1."""
    frame = as_pandas(X)
    if frame is None:
        array = np.asarray(X)
        if array.ndim != 2:
            raise InputError(f"{argument} must be a table with rows and columns; got {array.ndim} dimension(s).")
        frame = pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])
    if len(frame) != n:
        raise InputError(f"{argument} has {len(frame)} rows, but Y has {n}; give one row per row of Y.")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)
    return frame.apply(_as_after_a_file)


def _hashable(value) -> bool:
    return isinstance(value, Hashable)


def _as_after_a_file(column: pd.Series) -> pd.Series:
    """Python objects that are numbers as numbers, as the encoder of covariates sees them."""
    if column.dtype == object and not column.map(_hashable).all():
        raise InputError(
            f"Column {column.name!r} holds lists or tables; turn it into numbers or text, or leave it out."
        )
    numbers = object_numbers(column.tolist()) if column.dtype == object else None
    return column if numbers is None else pd.Series(numbers, name=column.name)


def _name(Y) -> str | None:
    name = getattr(Y, "name", None)
    return None if name is None else str(name)


def _alike_treatments(treatments: np.ndarray) -> list[Finding]:
    found = alike(map(str, treatments))
    if not found:
        return []
    what = f"has labels that only case or blanks tell apart: {found}"
    return [
        Finding("serious", "alike", "Treatment", what, "They count as different treatments; write each in one way.")
    ]


def _unused_treatments(T) -> list[Finding]:
    dtype = getattr(T, "dtype", None)
    if not isinstance(dtype, pd.CategoricalDtype):
        return []
    unused = [str(level) for level in dtype.categories if level not in set(as_series(T, "T"))]
    if not unused:
        return []
    what = f"has level(s) that nobody got: {', '.join(unused)}"
    return [Finding("note", "unused levels", "Treatment", what, "Nothing will be said about them.")]
