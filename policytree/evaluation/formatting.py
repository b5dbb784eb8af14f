"""Numbers with their errors as text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


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


def bounds_text(lower: float, upper: float, digits: int) -> str:
    """Two ends of bounds as text."""
    return f"[{lower:,.{digits}f}, {upper:,.{digits}f}]"
