"""Findings about single columns, whatever the outcome: ids, dates, numbers stored as text, values that are rare."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable

import numpy as np
import pandas as pd

from policytree.common.number_texts import OPTIONS, WORD, unread
from policytree.common.option_words import typed
from policytree.problem.split_columns import LEVELS_TO_GROUP
from policytree.study_check.findings import AFTER_TREATMENT, ID, RARE_CATEGORIES, Finding
from policytree.study_check.names import is_id, later_words
from policytree.trees.text import counted
from policytree.weighting.study_data import StudyData

FEW_ROWS = 10  # in a category
MANY_CATEGORIES = 50
TEXT_SAMPLE = 2_000  # distinct texts looked at for their form
FORM_SHARE = 0.8  # of the distinct texts that look like dates
NUMBER_SHARE = 0.6  # of those that look like numbers: "2, 4, more" are numbers
FEW_CODES = 10
DURATIONS = "Turn it into a number, of days or hours."
MOSTLY_MISSING = 0.5
# Numbers that programs and questionnaires write for a missing value.
SENTINELS = frozenset(
    sign * value
    for sign in (-1, 1)
    for value in (66, 77, 88, *range(95, 100), 666, 777, 888, *range(995, 1000), 7777, 8888, *range(9995, 10_000),
                  77_777, 88_888, 99_999, 999_999, 9_999_999, 99_999_999, 999_999_999)
) | {-7, -8, -9}  # fmt: skip
MOST_SENTINELS = 4  # in one column, such as 96 to 99 for "refused", "does not know", ...
ISOLATED = 0.5  # of the range of all other values: the gap to the nearest of them
FAR = 10.0  # the same of any number that repeats
BELOW_ZERO, ISOLATED_BELOW = frozenset(range(-6, 0)), 0.2  # the same of the only negative number, if it repeats
MOST_DIGITS = 1e16  # below it a whole number is written without an exponent
FEWEST_OTHERS = 4  # different values beside sentinels
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([ T].*)?|"
    r"\d{1,2}[- ]?[A-Za-z]{3,9}\.?,?[- ]?\d{2,4}|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"
)


def is_text(column: pd.Series) -> bool:
    """Whether the values are labels rather than numbers or dates."""
    kind = column.dtype
    return isinstance(kind, pd.CategoricalDtype) or not (
        pd.api.types.is_numeric_dtype(kind)
        or pd.api.types.is_datetime64_any_dtype(kind)
        or pd.api.types.is_timedelta64_dtype(kind)
        or isinstance(kind, pd.PeriodDtype)
    )


def column_findings(column: pd.Series, outcome_name: str | None) -> list[Finding]:
    """All findings about one column by itself."""
    present = column.dropna()
    if present.empty:
        return [Finding("note", "constant", column.name, "has no values at all", "Leave it out.")]
    found = _after_treatment(column, outcome_name) + _missing(column)
    n_values = int(present.nunique())
    if n_values == 1 and len(present) == len(column):
        return [
            *found,
            Finding("note", "constant", column.name, f"is {present.iloc[0]!s} in all rows", "Leave it out."),
        ]
    if not is_text(column):
        if not pd.api.types.is_numeric_dtype(column.dtype):
            if pd.api.types.is_timedelta64_dtype(column.dtype):
                return [*found, Finding("warning", "durations", str(column.name), "holds durations", DURATIONS)]
            return [*found, _date_finding(str(column.name), str(present.iloc[0]))]
        return found + sentinel_findings(column) + _id_of_numbers(column, present, n_values)
    present = present.astype(str)
    return found + _unused_levels(column) + _alike(column, present, n_values) + _text(column, present, n_values)


def alike(labels: Iterable[str]) -> str:
    """Labels that differ only in case or blanks, invisible letters among them, as text; "" if there are none."""
    spellings: dict[str, list[str]] = {}
    for label in labels:
        normal = unicodedata.normalize("NFKC", label)
        seen = "".join(letter for letter in normal if unicodedata.category(letter) != "Cf")
        spellings.setdefault(" ".join(seen.split()).casefold(), []).append(label)
    groups = [" and ".join(map(repr, sorted(group))) for group in spellings.values() if len(group) > 1]
    return "; ".join(groups[:3]) + ("; ..." if len(groups) > 3 else "")


def _alike(column: pd.Series, present: pd.Series, n_values: int) -> list[Finding]:
    found = alike(present.unique()) if n_values <= MANY_CATEGORIES else ""
    if not found:
        return []
    what = f"has values that only case or blanks tell apart: {found}"
    return [Finding("warning", "alike", str(column.name), what, "They count as different; write each in one way.")]


def _after_treatment(column: pd.Series, outcome_name: str | None) -> list[Finding]:
    why = later_words(column.name, outcome_name, number=not is_text(column))
    return [after_treatment(str(column.name), f"has a name that {why}")] if why else []


def after_treatment(name: str, found: str) -> Finding:
    """A column that was probably measured after treatment began."""
    return Finding(
        "warning", AFTER_TREATMENT, name, found,
        "If it was measured after treatment began, leave it out: a rule cannot know it, and adjusting for it hides "
        "the effect.",
    )  # fmt: skip


def _missing(column: pd.Series) -> list[Finding]:
    share = float(column.isna().mean())
    if share <= MOSTLY_MISSING:
        return []
    return [
        Finding(
            "note", "mostly missing", str(column.name), f"is missing in {share:.0%} of the rows",
            "A split on it is mostly a split on who has the value; leave it out if it would be missing for other "
            "reasons when the rule is used.",
        )
    ]  # fmt: skip


def sentinel_findings(column: pd.Series) -> list[Finding]:
    """Numbers such as -999 that probably stand for a missing value: they repeat, and no other value is near them."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return []
    values = column.dropna().to_numpy(dtype=np.float64)
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    low, high = (_codes_at(distinct, end) for end in (range(len(distinct)), range(len(distinct) - 1, -1, -1)))
    tried = [(each, ISOLATED) for each in ([*low, *high], low, high)]
    tried += [([k], FAR) for k in (0, len(distinct) - 1) if len(distinct) and counts[k] > 1]
    if len(distinct) > 1 and distinct[0] in BELOW_ZERO and counts[0] > 1 and distinct[1] >= 0:
        tried.append(([0], ISOLATED_BELOW))
    codes = next((each for each, gap in tried if each and _isolated(distinct, each, gap)), [])
    lowest = np.delete(distinct, codes).min(initial=np.inf)
    found = [k for k in codes if counts[k] > 1 or (distinct[k] < -9 and lowest >= 0)]
    if not found:
        return []
    texts = [_as_written(float(distinct[k])) for k in sorted(found)]
    rows = int(counts[found].sum())
    others = np.delete(distinct, found)
    what = (
        f"is {' or '.join(texts)} in {rows:,} of {len(column):,} rows, and from {others[0]:g} to {others[-1]:g} in all "
        "others, as if that stood for a missing value"
    )
    option = shlex.quote(f"{column.name}={','.join(texts)}")
    how = f"If so, read it as one: --na-values {option} (in Python: .replace({', '.join(texts)}, np.nan))."
    if len(texts) > 1:
        how = f"If so, read them as such: --na-values {option} (in Python: .replace([{', '.join(texts)}], np.nan))."
    return [Finding("warning", "sentinel", str(column.name), what, how, rows=rows)]


def _as_written(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < MOST_DIGITS else str(number)


def _codes_at(distinct: np.ndarray, end: range) -> list[int]:
    """Positions of sentinels at one end of sorted values, from outside in."""
    found: list[int] = []
    for k in end[:MOST_SENTINELS]:
        if distinct[k] not in SENTINELS:
            break
        found.append(k)
    return found


def _isolated(distinct: np.ndarray, codes: list[int], apart: float) -> bool:
    """Whether extreme values lie apart from all others by that part of the range of these."""
    others, ends = np.delete(distinct, codes), distinct[codes]
    if len(others) < FEWEST_OTHERS:
        return False
    gap = np.minimum(np.abs(ends - others[0]), np.abs(ends - others[-1])).min()
    return bool(gap >= apart * (others[-1] - others[0]))


def _id_of_numbers(column: pd.Series, present: pd.Series, n_values: int) -> list[Finding]:
    """Whole numbers that are all different, and count the rows or are called an id."""
    if n_values < len(present) or len(present) < 20 or pd.api.types.is_bool_dtype(column.dtype):
        return []
    values = present.to_numpy(dtype=np.float64)
    if (values != np.floor(values)).any():
        return []
    if np.isinf(values).any():
        return []
    steps = np.diff(values)
    counts = bool((steps > 0).all() or (steps < 0).all()) or np.ptp(values) == len(values) - 1
    if not (counts or is_id(column.name)):
        return []
    how = "numbers the rows" if counts else "is called an id and differs in all rows"
    return [_id_finding(str(column.name), how)]


def _id_finding(name: str, how: str) -> Finding:
    return Finding(
        "warning", ID, name, how,
        "Leave it out; if it stands for persons or sites with several rows, name it as the cluster.",
    )  # fmt: skip


def _unused_levels(column: pd.Series) -> list[Finding]:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return []
    unused = [str(level) for level in column.cat.categories if level not in set(column.dropna().unique())]
    if not unused:
        return []
    what = f"has {len(unused)} level(s) that no row has ({_some(unused)})"
    remedy = "The rule will say nothing about them; remove them, or check how the data were selected."
    return [Finding("note", "unused levels", str(column.name), what, remedy)]


def _text(column: pd.Series, present: pd.Series, n_values: int) -> list[Finding]:
    """Numbers and dates stored as text, ids, rare and many categories: the first that applies."""
    name, counts = str(column.name), present.value_counts()
    texts = [str(value).strip() for value in counts.index[:TEXT_SAMPLE]]
    numeric = [bool(_NUMBER.fullmatch(text)) for text in texts]
    chosen = isinstance(column.dtype, pd.CategoricalDtype) and n_values <= FEW_CODES  # declared: codes, not amounts
    if sum(numeric) >= 2 and np.mean(numeric) >= NUMBER_SHARE and not chosen:
        others = [text for text, ok in zip(texts, numeric, strict=True) if not ok]
        what = "holds numbers stored as text" + (f", because of values such as {_some(others)}" if others else "")
        why = unread(present.iloc[:TEXT_SAMPLE])
        how = (
            "Turn it into numbers (a detection limit into half of it, 'n/a' into a missing value): as text it is a "
            "category, and no rule can ask whether it is high or low."
        )
        if why is not None and why.cause == WORD:
            option = typed(f"{name}={','.join(why.words)}")
            how += f" If it stands for a missing value, say --na-values {option} (in Python: pd.to_numeric)."
        elif why is not None and why.cause in OPTIONS:
            how += f" It is read as numbers by {OPTIONS[why.cause]} (in Python: pd.read_csv has such arguments)."
        return [Finding("warning", "numbers as text", name, what, how)]
    if np.mean([bool(_DATE.fullmatch(text)) for text in texts]) >= FORM_SHARE:
        return [_date_finding(name, texts[0])]
    if n_values > 0.9 * len(present) and len(present) >= 20:
        return [_id_finding(name, f"has {n_values:,} different texts in {len(present):,} rows")]
    rare = counts[counts < FEW_ROWS]
    if n_values > MANY_CATEGORIES:
        what = f"has {n_values:,} categories, {len(rare):,} of them with fewer than {FEW_ROWS} rows"
        how = "Group them: a rule asks about one at a time, and models pool all but the 31 most frequent."
        return [Finding("warning", RARE_CATEGORIES, name, what, how)]
    if len(rare) and n_values > 2:
        what = f"has {len(rare)} of {n_values} categories with fewer than {FEW_ROWS} rows ({_some(list(rare.index))})"
        how = "Group them with others, if they mean something together: so few rows show no effect."
        return [Finding("note", RARE_CATEGORIES, name, what, how)]
    return []


def rare_levels(column: pd.Series, seen: StudyData, min_leaf: int, min_per_arm: int) -> list[Finding]:
    """Levels of which groups are made although they are too small to judge: their place in the ordering is noise.

    Parameters
    ----------
    column : Series of shape (n,)
    seen : StudyData
    min_leaf, min_per_arm : int
        Fewest rows of a leaf, and of every treatment in it; without the latter, ten rows of a level are enough.
    """
    codes, values = pd.factorize(column)
    if not is_text(column) or len(values) < LEVELS_TO_GROUP:
        return []
    known = codes >= 0
    by_arm = np.zeros((len(values), seen.n_arms), dtype=np.int64)
    np.add.at(by_arm, (codes[known], seen.arm[known]), 1)
    rows = by_arm.sum(axis=1)
    rare = np.flatnonzero((rows < max(min_leaf, FEW_ROWS)) | (by_arm.min(axis=1) < min_per_arm))
    if not len(rare):
        return []
    rare = rare[np.argsort(rows[rare], kind="stable")]
    shown = ", ".join(f"{str(values[k])!r} with {counted(int(rows[k]), 'rows')}" for k in rare[:3])
    needed = f"{max(min_leaf, FEW_ROWS):,} rows" + (f", {min_per_arm:,} of every treatment" if min_per_arm else "")
    found = (
        f"has {len(rare)} of {len(values)} levels too rare to be placed in a group "
        f"({shown}{', ...' if len(rare) > 3 else ''}; {needed} would be enough)"
    )
    how = (
        "On which side of a question they stand is chance: join each with a level that means something alike, or ask "
        "about one level at a time, --categories levels (in Python: categories='levels')."
    )
    return [Finding("warning", RARE_CATEGORIES, str(column.name), found, how, rows=int(rows[rare].sum()))]


def _date_finding(name: str, example: str) -> Finding:
    return Finding(
        "warning", "dates", name, f"holds dates (such as {example})",
        "Leave it out, or turn it into a number that a rule can use, such as an age or the days since enrolment began; "
        "a date after treatment began must not be used.",
    )  # fmt: skip


def _some(values: list, most: int = 3) -> str:
    shown = ", ".join(repr(str(value)) for value in values[:most])
    return shown + (", ..." if len(values) > most else "")


def value_text(value: object) -> str:
    """A value of a column as a reader would write it: whole numbers without a point."""
    return f"{value:g}" if isinstance(value, float) else str(value)
