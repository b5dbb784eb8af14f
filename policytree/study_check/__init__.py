"""Checks of a study before anything is fitted: leaks, ids, dates, numbers as text, repeats; each with a remedy."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike
from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import arm_column, columns_by_label
from policytree.data.feature_encoder import as_pandas, object_numbers
from policytree.exceptions import InputError
from policytree.study_check.arms import (
    combination_findings,
    never_treated,
    treatment_in_clusters,
    uncensored_treatments,
)
from policytree.study_check.columns import after_treatment, alike, column_findings, sentinel_findings
from policytree.study_check.directions import name_of
from policytree.study_check.events import event_findings
from policytree.study_check.findings import (
    AFTER_TREATMENT,
    DETERMINES_OUTCOME,
    DETERMINES_TREATMENT,
    ID,
    KNOWS_EVENT,
    LOOKS_RANDOMISED,
    NEVER_TREATED,
    RARE_CATEGORIES,
    REPEATED_IDS,
    Finding,
    StudyCheck,
    by_severity,
)
from policytree.study_check.leaks import (
    leak_findings,
    missing_by_treatment,
    missing_outcomes,
    offer_leaks,
    repeated_columns,
)
from policytree.study_check.names import later_than_baseline
from policytree.study_check.offers import about_offers, offer_findings
from policytree.study_check.randomised import randomisation_test
from policytree.study_check.rows import (
    ArmMean,
    arm_means,
    moved_jointly,
    moved_means,
    moved_together,
    outside_range,
    repeated_ids,
    repeated_rows,
    thin_support,
)
from policytree.weighting.completion import unadjusted
from policytree.weighting.study_data import StudyData

__all__ = [
    "KNOWN",
    "LOOKS_RANDOMISED",
    "NEVER_TREATED",
    "ArmMean",
    "Finding",
    "StudyCheck",
    "about_offers",
    "arm_means",
    "check_rewards",
    "check_study",
]

KNOWN = "the probabilities of treatment are known"  # the value of by_chance in check_rewards


def check_study(
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
) -> StudyCheck:
    """Check a study for errors in the data that no later step would report; takes seconds and fits nothing.

    The check finds: a covariate, or a sum of them, that nearly determines the outcome or the treatment (also copies
    with noise, in other units, cut into classes or hidden in text); a time beside the record of its event, where
    nobody said by ``event`` that the outcome is censored; names that suggest a measurement after treatment; values of a
    column with which nobody got some treatment; values missing under one treatment; ids, dates, numbers stored as text;
    numbers such as -999 that stand for a missing value; constant, repeated and mostly missing columns; rare categories,
    unused levels; labels that only case or blanks tell apart; rows and ids that repeat; whether clusters or rows were
    treated. :func:`policytree.diagnostics.check_rewards` adds checks of the fitted rewards.

    Parameters
    ----------
    Y : column of n numbers; or a :class:`policytree.Study`, which stands for all arguments that say what was observed
    T : column of n labels, or DataFrame of several treatments
    X : table of shape (n, p)
        The covariates of the rule: pandas or polars frame, or array.
    W : table of shape (n, q), optional
        Further confounders.
    groups, sample_weight : columns of shape (n,), optional
        Clusters, such as persons with several rows; weights >= 0.

    Returns
    -------
    StudyCheck

    Raises
    ------
    InputError
        If ``Y``, ``T``, ``groups``, ``sample_weight`` or an argument of ``outcome`` cannot be used at all, or lengths
        differ.

    Notes
    -----
    A covariate's share of the outcome's variance is the adjusted R2 of the means of at most 100 bins (or of the
    categories), the larger of that of the outcome and of its ranks: a monotone or other transformation does not hide a
    copy. From .95 on a finding is serious, from .75 on a warning: a baseline measurement of the outcome may well
    explain that much.

    A value of a column lacks a treatment if at least eight rows with it should have got that, by its share of all rows,
    and nobody did, which must be less likely than one in ten thousand over everything that was looked at. Where whole
    clusters were treated, clusters are counted.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.study_check import check_study
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> X = pd.DataFrame({"age": rng.integers(20, 80, size=500), "score": np.exp(y)})
    >>> [(f.severity, f.column) for f in check_study(y, rng.integers(2, size=500), X=X).findings]
    [('serious', 'score'), ('note', 'Treatment')]
    """
    whole = StudyData.read("check_study", Y, T=T, X=X, W=W, groups=groups, sample_weight=sample_weight)
    whole.with_covariates()
    X, W, T = whole.X, whole.W, whole.T
    tables = [_table(X, "X", whole.n)] + ([] if W is None else [_table(W, "W", whole.n)])
    table, seen = pd.concat(tables, axis=1), whole.of_study()
    if whole.study is not None:
        table, T = table[whole.study].reset_index(drop=True), arm_column(T)[whole.study]
    table = table.loc[:, ~table.columns.duplicated()]
    name = name_of(whole)
    findings: list[Finding] = []
    for _, column in table.items():
        findings += column_findings(column, name)
    findings += _later_than_baseline(table, name)
    findings += event_findings(table, seen.y, name, event=None if seen.times is None else seen.times.code)
    findings += uncensored_treatments(seen)
    findings += missing_outcomes(seen, name)
    if seen.times is None:
        outcome_values = seen.y if seen.seen is None else seen.y[seen.seen]
        findings += _constant_outcome(outcome_values, name)
        findings += sentinel_findings(pd.Series(outcome_values, name="Outcome" if name is None else name))
    findings += _unused_treatments(T)
    findings += _alike_treatments(seen.treatments)
    findings += combination_findings(seen)
    assigned, what = (seen, "treatment") if seen.instrument is None else (seen.by_offer(), "offer")
    if seen.instrument is not None:
        findings += [*about_offers(_alike_treatments(assigned.treatments)), *offer_findings(assigned)]
    known = np.ones(seen.n, dtype=bool) if seen.seen is None else seen.seen
    leaks = leak_findings(table[known], seen.y[known], seen.arm[known], seen.treatments)
    findings += leaks
    recorded = leaks
    if seen.instrument is not None:
        recorded = offer_leaks(table, assigned.arm, assigned.treatments)
        findings += recorded
    findings += never_treated(table, assigned, {f.column for f in recorded if f.kind == DETERMINES_TREATMENT}, what)
    findings += missing_by_treatment(table, seen.arm, seen.treatments)
    findings += repeated_columns(table)
    ids = [] if seen.groups is not None else repeated_ids(table)
    findings += ids or repeated_rows(table, seen)
    in_clusters = treatment_in_clusters(assigned)
    findings += in_clusters if seen.instrument is None else about_offers(in_clusters)
    known_propensity = whole.known_propensity or whole.propensity is not None
    if not known_propensity and (tested := randomisation_test(table, assigned)) is not None:
        findings += tested.findings(what)
    return StudyCheck(by_severity(_once(findings)), seen.n, table.shape[1])


def findings_beside(
    others: pd.DataFrame, y: np.ndarray, name: str | None, *, clustered: bool, event: np.ndarray | None = None
) -> tuple[Finding, ...]:
    """Findings from columns that no model uses: persons with several rows, and the event that belongs to a time.

    Parameters
    ----------
    others : DataFrame of shape (n, q)
        Columns that are neither covariates nor confounders and have no other role.
    y : ndarray of shape (n,)
        Outcome.
    name : str or None
        Its name.
    clustered : bool
        Whether rows are known to be dependent.
    event : ndarray of shape (n,), optional
        How the times ``y`` ended, where that is known.
    """
    table = _table(others, "others", len(y))
    found = event_findings(table, y, name, covariates=False, event=event)
    return (*found, *([] if clustered else repeated_ids(table)))


# A finding of the first kind replaces the findings of the other kinds about the same column.
_INSTEAD = {
    KNOWS_EVENT: {AFTER_TREATMENT},
    REPEATED_IDS: {ID, RARE_CATEGORIES, DETERMINES_OUTCOME, DETERMINES_TREATMENT},
}


def _once(findings: list[Finding]) -> list[Finding]:
    """Remove findings that another one covers, and keep one reason why a column was measured after treatment."""
    said = {(f.column, kind) for f in findings for kind in _INSTEAD.get(f.kind, ())}
    kept = []
    for finding in findings:
        about = (finding.column, finding.kind)
        if about not in said:
            kept.append(finding)
        if finding.kind == AFTER_TREATMENT:
            said.add(about)
    return kept


def _later_than_baseline(table: pd.DataFrame, outcome: str | None) -> list[Finding]:
    """Later measurements, by the numbers in their names."""
    names = [*table.columns, *([] if outcome is None else [outcome])]
    return [
        after_treatment(name, f"has a name that counts on from that of {baseline}")
        for name, baseline in later_than_baseline(names).items()
        if name in table.columns
    ]


@aligns_rows
@shares_documentation(check_study)
def check_rewards(
    rewards: Table,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    propensity: Table | None = None,
    min_propensity: float = 0.01,
    by_chance: str = "",
) -> StudyCheck:
    """Check estimated rewards; a serious finding is a reason to conclude nothing from them.

    The check finds: a treatment whose mean reward is far from the mean of those who got it; a mean reward outside all
    outcomes that were observed; estimated probabilities that reach the floor, or that give a few rows most of the
    weight.

    Parameters
    ----------
    rewards : DataFrame of shape (n, K)
        ``RewardEstimator.rewards_`` for these rows, before what treatments cost.
    propensity : DataFrame of shape (n, K), optional
        ``RewardEstimator.propensity_``.
    min_propensity : float
        The floor to which estimated probabilities were raised.
    by_chance : str
        Why treatment counts as randomised ("its probabilities are known"): a mean that moves is then
        serious, and known probabilities are not checked. "" if treatment does not count as randomised.

    Returns
    -------
    StudyCheck

    Raises
    ------
    InputError
        If an argument cannot be used, or the rewards are of other rows.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.diagnostics import check_rewards
    >>> rng = np.random.default_rng(0)
    >>> Y, T = rng.normal(size=200), rng.integers(2, size=200)
    >>> rewards = pd.DataFrame({arm: np.where(T == arm, 2 * Y, 0.0) for arm in (0, 1)})
    >>> check_rewards(rewards, Y, T).findings
    ()
    """
    observed = StudyData.read("check_rewards", Y, T=T, X=None, groups=groups, sample_weight=sample_weight).arrays()
    if observed.instrument is not None:
        raise InputError(
            "check_rewards knows no instrument, with which people choose treatments for reasons that are not seen; "
            "judge the offers themselves by passing the instrument as T."
        )
    if observed.study is not None:
        raise InputError(
            "Rewards of a target cannot be held against what the study's own people brought; leave study out."
        )
    seen = unadjusted(observed)
    frame = as_pandas(rewards)
    if frame is None or len(frame) != seen.n or not set(seen.treatments) <= set(frame.columns):
        raise InputError("rewards must be a frame with a row per row of Y and a column per treatment of T.")
    chances = None if propensity is None else as_pandas(propensity)
    if propensity is not None and (chances is None or chances.shape != (seen.n, seen.n_arms)):
        raise InputError("propensity must be a frame with a row per row of Y and a column per treatment of T.")
    matrix = None if chances is None else columns_by_label(chances, seen.treatments).to_numpy(dtype=np.float64)
    means = arm_means(seen, frame, matrix if by_chance == KNOWN else None)
    findings = outside_range(means, observed.limits) + moved_means(seen, means, by_chance)
    if by_chance and not any(finding.severity == "serious" for finding in findings):
        findings += moved_jointly(moved_together(seen, means), means, by_chance)
    if matrix is not None and by_chance != KNOWN:
        findings += thin_support(seen, matrix, min_propensity)
    return StudyCheck(by_severity(findings), seen.n, 0)


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


def _constant_outcome(y: np.ndarray, name: str | None) -> list[Finding]:
    if len(y) < 2 or np.ptp(y) > 0:
        return []
    how = "By it no treatment is better than another: name another outcome."
    return [
        Finding("serious", "constant outcome", "Outcome" if name is None else name, f"is {y[0]:g} in all rows", how)
    ]


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
    unused = [str(level) for level in dtype.categories if level not in set(arm_column(T))]
    if not unused:
        return []
    what = f"has level(s) that nobody got: {', '.join(unused)}"
    return [Finding("note", "unused levels", "Treatment", what, "Nothing will be said about them.")]
