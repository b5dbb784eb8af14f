"""Numbers with their errors as text, and columns of tables: a heading and a format each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd

WORDS_OF_A_UNIT = 6  # more is a description
NOTHING = "-"  # in a cell whose number there is not
NUMBER, ERROR = "{value:,.{digits}f}", "{standard_error:,.{digits}f}"
BOUNDS = "[{lower:,.{digits}f}, {upper:,.{digits}f}]"
INTERVAL = "[{interval_lower:,.{digits}f}, {interval_upper:,.{digits}f}]"
Form = str | tuple[str, ...] | Callable[[Mapping[str, Any]], str]
Columns = Mapping[str, Form] | Iterable[tuple[str, Form]]


class _NotThere(Exception):
    """A number that a cell is to show is missing."""


class _Writer(Formatter):
    """Formats as ``str.format`` does, but for numbers that are missing, or not finite; names may have any letters."""

    def get_field(self, field_name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        return kwargs[field_name], field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None or (isinstance(value, Real) and not math.isfinite(value)):
            raise _NotThere
        return format(value, format_spec)


_WRITER = _Writer()


def cell(form: Form, row: Mapping[str, Any], **also: Any) -> str:
    """A row's text in a column.

    Parameters
    ----------
    form : str, tuple of str, or function of the row
        A format of ``str.format`` that names numbers of the row, such as ``"{value:,.{digits}f}"``: a cell of which any
        number is missing shows nothing. Further formats are left out where their own numbers are missing.
    row : mapping
    **also
        Further values that formats name.
    """
    parts, said = list[str](), {**row, **also}
    if callable(form):
        return form(said)
    for part in (form,) if isinstance(form, str) else form:
        try:
            parts.append(_WRITER.vformat(part, (), said))
        except _NotThere:
            if not parts:
                return NOTHING
    return "".join(parts)


def of_column(key: Any, spec: str = "") -> Form:
    """The format of one number whose name may have any letters, such as a treatment's."""
    return lambda row: cell(f"{{number:{spec}}}", row, number=row[key])


def estimated(name: str, sign: str = "", digits: int | str = "{digits}") -> str:
    """The format of an estimate and its interval, whose ends are ``name_lower`` and ``name_upper``."""
    return f"{{{name}:{sign},.{digits}f}} [{{{name}_lower:,.{digits}f}}, {{{name}_upper:,.{digits}f}}]"


def share_columns(frame: pd.DataFrame) -> dict[str, Form]:
    """Columns of a frame all of whose fractions are shares."""
    return {name: of_column(name, ".0%" if dtype.kind == "f" else "") for name, dtype in frame.dtypes.items()}


def records(rows: pd.DataFrame | Iterable[Mapping[str, Any]]) -> list[dict[Any, Any]]:
    """Rows as mappings; those of a frame hold its index, where that has a name."""
    if isinstance(rows, pd.DataFrame):
        return (rows if rows.index.names == [None] else rows.reset_index()).to_dict("records")
    return list(map(dict, rows))


def text_frame(rows: pd.DataFrame, columns: Columns, **also: Any) -> pd.DataFrame:
    """A frame of texts, with the index of ``rows``."""
    pairs, found = list(columns.items() if isinstance(columns, Mapping) else columns), records(rows)
    texts = [[cell(form, row, **also) for _, form in pairs] for row in found]
    return pd.DataFrame(texts, rows.index, [heading for heading, _ in pairs])


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


def rule_columns(learnt: str, level: float) -> list[tuple[str, Form]]:
    """Columns of a frame of rules: value, error, interval, and how far the learnt rule is ahead, with its interval.

    Parameters
    ----------
    learnt : str
        Name of the learnt rule in the heading of the differences.
    level : float
    """

    def ahead(form: str, same: str) -> Form:
        def said(row: Mapping[str, Any]) -> str:
            difference, error = row["difference"], row["difference_standard_error"]
            if math.isnan(difference):  # the learnt rule's own row
                return ""
            return same if difference == error == 0.0 else cell(form, row)

        return said

    interval, ends = f"{100 * level:g}% interval", estimated("difference", "+").partition(" ")
    return [
        ("value", NUMBER), ("std. error", ERROR), (interval, BOUNDS),
        (f"{learnt} - rule", ahead(ends[0], "same")), (f"{interval} ", ahead(ends[2], "")),
    ]  # fmt: skip


def short_unit(text: str) -> str:
    """The unit in what an outcome measures: "dollars" of "earnings in 1978, dollars"; "" if that is long."""
    unit = text.rpartition(", ")[2]
    return unit if len(unit.split()) <= WORDS_OF_A_UNIT else ""
