"""Findings about treatment assignment: values of a column without an arm, and treatment of whole clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from policytree.data.combined_treatments import THIN
from policytree.study_check.columns import is_text, value_text
from policytree.study_check.findings import (
    BY_CLUSTER,
    EMPTY_COMBINATION,
    NEVER_TREATED,
    NOT_CENSORED,
    THIN_COMBINATION,
    WITHIN_CLUSTERS,
    Finding,
)
from policytree.trees.text import counted
from policytree.weighting.study_data import StudyData

FEW_VALUES = 20  # up to which numbers are looked at one by one
EXPECTED = 8.0  # units with an arm, by its share
BY_CHANCE = 1e-4  # probability that some value would lack some arm, over all that was looked at
SHOWN = 4  # values in a sentence
MUCH_LESS = 0.2  # of the clusters that would vary if their rows had been treated independently


def combination_findings(seen: StudyData) -> list[Finding]:
    """Combinations of several treatments that nobody, or hardly anybody, got; nothing of a single treatment."""
    if seen.factors is None:
        return []
    counts = dict(zip(map(str, seen.treatments), np.bincount(seen.arm, minlength=seen.n_arms).tolist(), strict=True))
    findings = []
    for label in map(str, seen.factors.index):
        n = counts.get(label, 0)
        if n == 0:
            found = f"has nobody who got {label}"
            how = (
                "No tree can recommend it, and effects of single treatments leave it out; if somebody got it, look "
                "whether these rows were lost."
            )
            findings.append(Finding("warning", EMPTY_COMBINATION, "Treatment", found, how, treatment=label))
        elif n < THIN:
            found = f"has only {counted(n, 'rows')} of {label}"
            how = "Outcome models decide what it is worth: join levels, or leave these rows out."
            findings.append(Finding("warning", THIN_COMBINATION, "Treatment", found, how, rows=n, treatment=label))
    return findings


def never_treated(table: pd.DataFrame, seen: StudyData, known: set[str], what: str = "treatment") -> list[Finding]:
    """Values of a column with which nobody got some treatment, although its share makes that improbable.

    Parameters
    ----------
    table : DataFrame of shape (n, p)
    seen : StudyData
        Where whole clusters were treated, clusters are counted instead of rows.
    known : set of str
        Columns that are known to record the treatment; they are left out.
    what : str
        Kind of the arms: "treatment" or "offer".
    """
    columns = []
    for name, column in table.items():
        codes, values = pd.factorize(column)
        if str(name) not in known and len(values) >= 2 and (is_text(column) or len(values) <= FEW_VALUES):
            columns.append((str(name), codes, values))
    if seen.groups is not None and not _given_to_clusters(seen):
        seen = replace(seen, groups=None)
    shares = _pairs(seen, np.zeros(seen.n, dtype=np.int64), 1)[0]
    shares = shares / shares.sum()
    tests = sum(len(values) for _, _, values in columns) * seen.n_arms
    findings: list[Finding] = []
    said: set[tuple[int, bytes]] = set()
    for name, codes, values in columns:
        by_arm = _pairs(seen, codes, len(values))
        units = by_arm.sum(axis=1, keepdims=True)
        chance = np.power(1.0 - shares, units)
        lacking = (by_arm == 0) & (units * shares >= EXPECTED) & (chance * tests < BY_CHANCE)
        for k in np.flatnonzero(lacking.any(axis=0)):
            rows = np.isin(codes, np.flatnonzero(lacking[:, k]))
            key = (int(k), rows.tobytes())
            if key not in said:  # a column that records the treatment under other labels
                said.add(key)
                which = [value_text(value) for value in values[np.flatnonzero(lacking[:, k])]]
                findings.append(_without(name, which, str(seen.treatments[k]), int(rows.sum()), seen.n, what))
    return findings


def uncensored_treatments(seen: StudyData) -> list[Finding]:
    """Treatments of which no time is censored, although others' are: events may mean other things.

    Parameters
    ----------
    seen : StudyData
        Nothing is found where its outcomes are no times.
    """
    if seen.times is None:
        return []
    arms = np.arange(seen.n_arms)
    rows = np.bincount(seen.arm, minlength=seen.n_arms)
    censored = np.bincount(seen.arm[seen.times.censored], minlength=seen.n_arms)
    if not censored.any():
        found = f"has no time that is censored before the {seen.times.said}: every outcome is known"
        how = "Check that event is 0 where people were only lost to follow-up."
        return [Finding("note", NOT_CENSORED, "", found, how)]
    findings = []
    for k in np.flatnonzero(censored == 0):
        others = arms != k
        share = censored[others].sum() / rows[others].sum()
        if rows[k] * share >= EXPECTED and (1.0 - share) ** rows[k] < BY_CHANCE:
            label = str(seen.treatments[k])
            found = (
                f"has no time that is censored before the {seen.times.said} in {rows[k]:,} rows, while {share:.0%} of "
                "the others' are"
            )
            how = "Check that event means the same under every treatment, and that people were followed alike."
            findings.append(Finding("warning", NOT_CENSORED, f"Treatment {label}", found, how, treatment=label))
    return findings


def _pairs(seen: StudyData, codes: np.ndarray, n_values: int) -> np.ndarray:
    """Rows, or clusters, by value and arm, shape (n_values, K); rows with code -1 are left out."""
    rows = np.flatnonzero(codes >= 0)
    cells = codes[rows].astype(np.int64) * seen.n_arms + seen.arm[rows]
    if seen.groups is not None:
        n_groups = int(seen.groups.max()) + 1
        cells = np.unique(cells * n_groups + seen.groups[rows]) // n_groups
    return np.bincount(cells, minlength=n_values * seen.n_arms).reshape(n_values, seen.n_arms)


def _without(name: str, values: list[str], arm: str, rows: int, n: int, what: str) -> Finding:
    shown = " or ".join(values[:SHOWN]) + (f" or {len(values) - SHOWN} more values" if len(values) > SHOWN else "")
    return Finding(
        "serious", NEVER_TREATED, name,
        f"is {shown} in {rows:,} rows ({rows / n:.0%}), and nobody there got {arm}",
        f"These rows do not say how {arm} would work there: leave out these rows or that {what}, or the column if "
        f"it follows from the {what}.",
        rows=rows, treatment=arm,
    )  # fmt: skip


def treatment_in_clusters(seen: StudyData) -> list[Finding]:
    """Whether clusters with several rows got one treatment each; nothing without clusters."""
    if seen.groups is None:
        return []
    n_several, varies, expected = _variation(seen)
    if not n_several:
        return []
    several_text = f"{n_several:,} clusters with several rows"
    if not varies:
        found = f"is the same for all rows of each of the {several_text}: it was given to whole clusters"
        n_clusters = len(np.unique(seen.groups))
        how = f"Folds and intervals keep clusters whole; the units that count are the {n_clusters:,} clusters."
        return [Finding("note", BY_CLUSTER, "Treatment", found, how)]
    found = f"varies within {varies:,} of the {several_text}"
    if varies < MUCH_LESS * expected and n_several - varies >= EXPECTED:
        found += ", far fewer than if rows had been treated one by one"
        how = "Look at these clusters: wrong entries, people who changed treatment, or two trials in one table."
        return [Finding("warning", WITHIN_CLUSTERS, "Treatment", found, how)]
    how = "It was given to rows, not to whole clusters; folds and intervals keep clusters whole all the same."
    return [Finding("note", WITHIN_CLUSTERS, "Treatment", found, how)]


def _variation(seen: StudyData) -> tuple[int, int, float]:
    """Clusters with several rows, those of them with several treatments, and how many these would be by chance.

    By chance: if each row had got its treatment independently of the others, by the treatments' shares.
    """
    assert seen.groups is not None, "asked for with clusters only"
    rows = np.bincount(seen.groups)
    several = rows >= 2
    arms = np.bincount(np.unique(seen.groups * seen.n_arms + seen.arm) // seen.n_arms, minlength=len(rows))
    shares = np.bincount(seen.arm, minlength=seen.n_arms) / seen.n
    expected = float((1.0 - np.power(shares, rows[several][:, None]).sum(axis=1)).sum())
    return int(several.sum()), int((arms[several] >= 2).sum()), expected


def _given_to_clusters(seen: StudyData) -> bool:
    """Whether far fewer clusters have several treatments than would by chance."""
    _, varies, expected = _variation(seen)
    return varies < MUCH_LESS * expected
