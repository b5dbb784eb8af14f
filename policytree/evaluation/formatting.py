"""Numbers with their errors as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

WORDS_OF_A_UNIT = 6  # more is a description


def decimals(errors: Iterable[float]) -> int:
    """Decimals that show two significant digits of the smallest positive standard error; at most 12."""
    positive = [error for error in errors if error > 0]
    return int(np.clip(1 - np.floor(np.log10(min(positive))), 0, 12)) if positive else 3


def p_text(p: float) -> str:
    """A p-value for a table; small ones are shown as a bound and never as 0.000."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def rows_text(n: int, held_out: bool) -> str:
    """The number of rows behind a result, and whether they are training rows."""
    return f"{n:,} {'held-out' if held_out else 'training'} rows"


def size_text(estimate) -> str:
    """The numbers of rows and clusters behind an estimate, which has ``n`` and ``n_clusters``."""
    clusters = f" in {estimate.n_clusters:,} clusters" if estimate.n_clusters != estimate.n else ""
    return f"{estimate.n:,} rows{clusters}"


def interval_text(estimate, digits: int) -> str:
    """The ends of an interval: anything with ``lower`` and ``upper``."""
    return bounds_text(estimate.lower, estimate.upper, digits)


def confidence_text(lower: float, upper: float, digits: int, level: float) -> str:
    """A confidence interval with its level, for a sentence: "95% CI 0.23 to 3.27"."""
    return f"{100 * level:g}% CI {lower:,.{digits}f} to {upper:,.{digits}f}"


def estimate_text(estimate, errors: Iterable[float]) -> str:
    """A value and its confidence interval, as exact as the least of some errors: "1.75 (95% CI 0.23 to 3.27)"."""
    if np.isnan(estimate.lower):
        return f"{estimate.value:,.6g} (no interval)"
    digits = decimals(errors)
    interval = confidence_text(estimate.lower, estimate.upper, digits, estimate.level)
    return f"{estimate.value:,.{digits}f} ({interval})"


def bounds_text(lower: float, upper: float, digits: int) -> str:
    """Two ends of bounds as text."""
    return f"[{lower:,.{digits}f}, {upper:,.{digits}f}]"


def difference_texts(difference: Any, digits: int, mark: str = "") -> tuple[str, str]:
    """A difference and its interval; "same" where the learnt rule gives everybody what the other one does.

    ``mark`` divides thousands.
    """
    if difference is None:
        return "", ""
    if difference.value == difference.standard_error == 0.0:
        return "same", ""
    return f"{difference.value:+{mark}.{digits}f}", interval_text(difference, digits)


def values_frame(
    estimates: Mapping[str, Any], differences: Mapping[str, Any], digits: int, learnt: str
) -> pd.DataFrame:
    """Held-out values as a table of texts: every rule's value, and by how much the learnt one is ahead of it.

    Parameters
    ----------
    estimates, differences : mapping of rule to Estimate
        The learnt rule, and rules that it is not compared with, have no difference.
    digits : int
    learnt : str
        Name of the learnt rule in the heading of the differences.
    """
    interval = f"{100 * next(iter(estimates.values())).level:g}% interval"
    rows = {}
    for rule, estimate in estimates.items():
        difference = differences.get(rule)
        rows[rule] = [
            f"{estimate.value:.{digits}f}",
            f"{estimate.standard_error:.{digits}f}",
            interval_text(estimate, digits),
            *difference_texts(difference, digits),
        ]
    header = ["value", "std. error", interval, f"{learnt} - rule", f"{interval} "]
    return pd.DataFrame.from_dict(rows, orient="index", columns=header)


def short_unit(text: str) -> str:
    """The unit in what an outcome measures: "dollars" of "earnings in 1978, dollars"; "" if that is long."""
    unit = text.rpartition(", ")[2]
    return unit if len(unit.split()) <= WORDS_OF_A_UNIT else ""
