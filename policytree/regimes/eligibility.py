"""Who is eligible at a decision, in words: the one column of the history that tells them apart, if there is one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.data.features import shown
from policytree.regimes.course import Course
from policytree.trees.text import format_threshold

MOST_VALUES = 3  # named in a text


def eligibility(course: Course, s: int) -> str:
    """Find the fact of earlier stages that tells who is eligible at stage ``s``; "" if everybody is, or none tells.

    It describes these people: it holds for every one of them whose earlier outcomes are known.
    """
    eligible = course.decisions[s].eligible
    if s == 0 or eligible.all():
        return ""
    people = ~np.isnan([each.outcome for each in course.decisions[:s]]).any(axis=0)
    history = course.history(s, np.arange(course.n)).iloc[:, course.decisions[s].X.shape[1] :]
    before = course.decisions[s - 1]
    if (found := _told_apart(history[people], eligible[people])) or before.eligible.all():
        return found
    if (eligible & ~before.eligible).any():
        return ""
    people &= before.eligible
    if eligible[people].all():
        return f"eligible at {before.name}"
    found = _told_apart(history[people], eligible[people])
    return f"eligible at {before.name} and {found}" if found else ""


def _told_apart(history: pd.DataFrame, eligible: np.ndarray) -> str:
    """The first column, outcomes and treatments before covariates, whose values differ between the two groups."""
    if not eligible.any() or eligible.all():
        return ""
    first = [name for name in history.columns if name.startswith(("outcome (", "treatment ("))]
    first.sort(key=lambda name: name.startswith("treatment ("))  # stable: of later stages before those of earlier ones
    for name in [*first, *(name for name in history.columns if name not in first)]:
        column = history[name]
        if not column.isna().any() and (text := _difference(column[eligible], column[~eligible])):
            return f"{shown(name)} {text}"
    return ""


def _difference(own: pd.Series, others: pd.Series) -> str:
    """Describe how the values of one group differ from those of another; "" if they overlap."""
    if pd.api.types.is_numeric_dtype(own) and not pd.api.types.is_bool_dtype(own):
        if own.min() == own.max() and not others.eq(own.min()).any():
            return f"= {format_threshold(float(own.min()))}"
        if own.max() < others.min():
            return f"≤ {format_threshold(float(own.max()))}"
        return f"≥ {format_threshold(float(own.min()))}" if own.min() > others.max() else ""
    here, there = sorted(map(str, own.unique())), sorted(map(str, others.unique()))
    if set(here) & set(there):
        return ""
    if len(there) == 1 and len(here) > 1:
        return f"≠ {shown(there[0])}"
    return f"= {' or '.join(map(shown, here))}" if len(here) <= MOST_VALUES else ""


def eligible_text(n: int, of: int, given: str) -> str:
    """Who is eligible at a stage: "all 240 people", or "given <what they have in common>, 132 of 240 people"."""
    counts = f"all {of:,} people" if n == of else f"{n:,} of {of:,} people"
    return f"given {given}, {counts}" if given else counts
