"""Trees as source code that others can run without policytree: an SQL expression, a Python function."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from policytree.data.features import CATEGORICAL, check_whole
from policytree.exceptions import InputError, quoted
from policytree.trees.tree import IS_KNOWN, IS_MISSING, Tree

PYTHON_LEVELS = 90  # Python refuses more than 100 levels of indentation
INDENT = "    "
# Infinity has no literal in SQL or Python; below the smallest number there is nothing else.
BELOW_ALL = "< -1.7976931348623157e+308"

Label = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a family of databases writes names and texts.

    Attributes
    ----------
    quote : str
        Quotation mark around names of columns.
    in_names, in_texts : mapping of str to str
        Replacements of characters inside names, and inside texts in single quotes.
    text_type : str
        The type that values are cast to, to be compared as texts.
    nan : bool
        Whether there are NaNs that are not NULL.
    """

    quote: str
    in_names: Mapping[str, str]
    in_texts: Mapping[str, str]
    text_type: str
    nan: bool

    def name(self, name: str) -> str:
        """The name of a column."""
        return self.quote + _escaped(name, self.in_names) + self.quote

    def literal(self, label: Label) -> str:
        """A value."""
        if label is None:
            return "NULL"
        if isinstance(label, bool):
            return "TRUE" if label else "FALSE"
        if isinstance(label, str):
            return "'" + _escaped(label, self.in_texts) + "'"
        return _sql_float(label) if isinstance(label, float) else repr(label)


DIALECTS = {
    "standard": Dialect('"', {'"': '""'}, {"'": "''"}, "VARCHAR", nan=True),
    "mysql": Dialect("`", {"`": "``"}, {"'": "''", "\\": "\\\\"}, "CHAR", nan=False),
    "bigquery": Dialect(
        "`",
        {"`": "\\`", "\\": "\\\\", "\n": "\\n", "\r": "\\r"},
        {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r"},
        "STRING",
        nan=True,
    ),
}


def export_sql(
    tree: Tree, *, column: str | None = "policy", dialect: Literal["standard", "mysql", "bigquery"] = "standard"
) -> str:
    """Write the tree as an SQL expression (``CASE``), in the words that all SQL databases share.

    Missing values are NULL, and NaN in databases that have both (DuckDB, PostgreSQL, BigQuery); texts that no training
    row had are treated as missing, as the tree itself does. Numbers are compared as 64-bit floats.

    Parameters
    ----------
    tree : Tree
    column : str or None, default "policy"
        Name of the result, ``CASE ... END AS "policy"``; None leaves it out.
    dialect : {"standard", "mysql", "bigquery"}, default "standard"
        How names and texts are written. Standard SQL (SQLite, DuckDB, PostgreSQL and others) has names in double quotes
        and takes a backslash as it is; MySQL and MariaDB, and BigQuery, have names in backticks and backslashes that
        escape (in MySQL unless its mode NO_BACKSLASH_ESCAPES is set).

    Returns
    -------
    str
        To be put behind SELECT.

    Raises
    ------
    InputError
        If a label or category is neither text, a number, a boolean nor None; if a text holds a null character; if
        labels (or categories of one feature) of several types, which are all written as texts, would be the same text;
        if truth values stand among categories of other types.

    Notes
    -----
    A result has one type in SQL: where some labels are text and others numbers, all are given as text, as Python's
    ``str`` writes them. A column whose categories are text and numbers is compared as text.

    Whether texts are equal is up to the database: by the usual collations of MySQL, "a" is "A". Truth values that the
    tree knows as numbers must be numbers, 0 and 1: ``CAST`` columns that the database has as BOOLEAN.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree import PolicyTree
    >>> from policytree.trees.source_code import export_sql
    >>> X = pd.DataFrame({"sex": ["f", "f", "m", "m"]})
    >>> rewards = pd.DataFrame({"drug": [1, 1, 0, 0], "none": [0, 0, 2, 2]})
    >>> print(export_sql(PolicyTree(max_depth=1).fit(X, rewards).tree_))
    CASE WHEN "sex" = 'f' THEN
      'drug'
    ELSE
      'none'
    END AS "policy"
    """
    if dialect not in DIALECTS:
        raise InputError(f"dialect must be one of {', '.join(map(repr, DIALECTS))}; got {dialect!r}.")
    words = DIALECTS[dialect]
    leaves = np.flatnonzero(tree.is_leaf)
    given = sorted(set(tree.action[leaves].tolist()))
    results = dict(zip(given, _of_one_type([tree.actions[k] for k in given], "treatments")[0], strict=True))
    conditions = {int(j): _sql_conditions(tree, int(j), words) for j in tree.used_features}
    lines, waiting = [], [(0, "", "")]  # nodes (-1: none), their indent, and the word before them
    while waiting:
        node, indent, before = waiting.pop()
        if before:
            lines.append(indent + before)
            indent += "  "
        if node < 0:
            continue
        if tree.is_leaf[node]:
            lines.append(indent + words.literal(results[int(tree.action[node])]))
            continue
        lines.append(f"{indent}CASE WHEN {conditions[int(tree.feature[node])](node)} THEN")
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        waiting += [(-1, indent, "END"), (right, indent, "ELSE"), (left, indent + "  ", "")]
    return "\n".join(lines) + ("" if column is None else f" AS {words.name(column)}")


def _sql_conditions(tree: Tree, j: int, words: Dialect) -> Callable[[int], str]:
    """Write the SQL condition of going left at nodes that ask about feature ``j``; unknown (NULL) counts as false."""
    feature = tree.features[j]
    x = words.name(feature.name)
    if feature.kind == CATEGORICAL:
        categories, as_text = _of_one_type(feature.categories, f"categories of feature {feature.name!r}", column=True)
        value = f"CAST({x} AS {words.text_type})" if as_text else x
        texts = [words.literal(category) for category in categories]
        missing = f"{x} IS NULL OR {value} NOT IN ({', '.join(texts)})" if texts else "1 = 1"
    else:
        # NaN is above all numbers in some databases and not comparable in others: neither it nor its opposite is <= 0.
        missing = f"{x} IS NULL" + (f" OR NOT ({x} <= 0 OR {x} * -1e0 <= 0)" if words.nan else "")

    def condition(node: int) -> str:
        threshold, asked = float(tree.threshold[node]), tree.asks_for_missing(node)
        if feature.kind == CATEGORICAL:
            chosen = [texts[k] for k in feature.levels_at(threshold)]
            known = f"{value} = {chosen[0]}" if len(chosen) == 1 else f"{value} IN ({', '.join(chosen)})"
        elif asked == IS_KNOWN:
            return f"NOT ({missing})" if words.nan else f"{x} IS NOT NULL"
        else:
            known = f"{x} {BELOW_ALL}" if np.isneginf(threshold) else f"{x} <= {_sql_float(threshold)}"
        if asked == IS_MISSING and feature.kind == CATEGORICAL:
            return missing
        return f"{known} OR {missing}" if tree.missing_go_to_left[node] else known

    return condition


def _sql_float(value: float) -> str:
    """A 64-bit float: without an exponent it would be a decimal, to which some databases round 32-bit columns."""
    text = repr(value)
    return text if "e" in text else text + "e0"


def _escaped(text: str, characters: Mapping[str, str]) -> str:
    """A text or name as it stands within an SQL statement."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{text!a} holds half a letter (a lone surrogate), which SQL cannot; rename it.") from error
    if "\0" in text:
        raise InputError(f"{text!a} holds a null character, which SQL cannot; rename it.")
    return "".join(characters.get(character, character) for character in text)


def _of_one_type(labels: Sequence[Any], what: str, *, column: bool = False) -> tuple[list[Label], bool]:
    """Labels as values of one SQL type, and whether they had to become texts; ``column``: of a column."""
    values = [_plain(label, "SQL") for label in labels]
    kinds = {_sql_kind(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values, False
    if column and "truth value" in kinds:
        raise InputError(
            f"The {what} are truth values and others, which databases write in different ways; turn all into text "
            "before the fit."
        )
    texts = [None if value is None else str(value) for value in values]
    if len(set(texts)) < len(texts):
        raise InputError(f"The {what} have several types, and two are the same text in SQL; rename one before the fit.")
    return list(texts), True


def _sql_kind(value: Label) -> str:
    return "truth value" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def export_python(tree: Tree, *, name: str = "policy") -> str:
    """Write the tree as a Python function of one row, which needs nothing but Python.

    The function takes a mapping from column to value, such as a dictionary or a row of a DataFrame. None, NaN, and the
    NA and NaT of pandas are missing values; texts that no training row had are treated as missing, as the tree itself
    does. Numbers are compared as 64-bit floats.

    Parameters
    ----------
    tree : Tree
    name : str, default "policy"
        Name of the function.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If the name is no name of a function, the tree has more than 90 levels, or a label or category is neither text,
        a number, a boolean nor None.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.trees.source_code import export_python
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    >>> source, program = export_python(tree, name="treat"), {}
    >>> exec(source, program)
    >>> program["treat"]({"x0": 1.7}), program["treat"]({"x0": 3.5})
    (0, 1)
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"name must be the name of a Python function, such as 'policy'; got {quoted(name)}.")
    if tree.max_depth > PYTHON_LEVELS:
        raise InputError(f"The tree has {tree.max_depth} levels, more than the {PYTHON_LEVELS} of a Python function.")

    def lines(node: int, indent: str) -> list[str]:
        if tree.is_leaf[node]:
            return [f"{indent}return {_plain(tree.actions[tree.action[node]], 'Python')!r}"]
        return [
            f"{indent}if {_python_condition(tree, node)}:",
            *lines(int(tree.children_left[node]), indent + INDENT),
            f"{indent}else:",
            *lines(int(tree.children_right[node]), indent + INDENT),
        ]

    used = tree.used_features.tolist()
    kinds = {tree.features[j].kind == CATEGORICAL for j in used}
    return "\n".join(
        [
            f"def {name}(row):",
            f'{INDENT}"""Say what a row gets, given a mapping from column to value."""',
            "",
            *(_PYTHON_MISSING if kinds else []),
            *(_PYTHON_NUMBER if False in kinds else []),
            *(_PYTHON_CATEGORY if True in kinds else []),
            *(f"{INDENT}{_variable(j)} = {_python_value(tree, j)}" for j in used),
            *lines(0, INDENT),
            "",
        ]
    )


# No builtin names: the function may have one. Texts have no __float__, so that they are an error and no numbers.
_PYTHON_MISSING = [
    "    def missing(value):",
    '        return value is None or value.__class__.__name__ in ("NAType", "NaTType") or value != value',
    "",
]
_PYTHON_NUMBER = [
    "    def number(value):",
    "        return None if missing(value) else value.__float__()",
    "",
]
_PYTHON_CATEGORY = [
    "    def category(value, known):",
    "        return value if not missing(value) and value in known else None",
    "",
]


def _variable(j: int) -> str:
    return f"x{j}"


def _python_value(tree: Tree, j: int) -> str:
    """The value of a column, None where it is missing."""
    feature = tree.features[j]
    value = f"row[{feature.name!r}]"
    if feature.kind != CATEGORICAL:
        return f"number({value})"
    categories = tuple(_plain(category, "Python") for category in feature.categories)
    return f"category({value}, {categories!r})"


def _python_condition(tree: Tree, node: int) -> str:
    j, threshold, asked = int(tree.feature[node]), float(tree.threshold[node]), tree.asks_for_missing(node)
    x, feature = _variable(j), tree.features[j]
    if asked == IS_KNOWN:
        return f"{x} is not None"
    if feature.kind == CATEGORICAL:
        if asked == IS_MISSING:
            return f"{x} is None"
        chosen = tuple(_plain(feature.categories[k], "Python") for k in feature.levels_at(threshold))
        known = f"{x} == {chosen[0]!r}" if len(chosen) == 1 else f"{x} in {chosen!r}"
        return f"{x} is None or {known}" if tree.missing_go_to_left[node] else known
    known = f"{x} {BELOW_ALL}" if np.isneginf(threshold) else f"{x} <= {threshold!r}"
    return f"{x} is None or {known}" if tree.missing_go_to_left[node] else f"{x} is not None and {known}"


def _plain(label: Any, language: str) -> Label:
    """A label as one of the values that source code can state, of Python's own types (an Enum's text is a text)."""
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return check_whole(int.__int__(value))
    if isinstance(value, float) and math.isfinite(value):
        return float.__float__(value)
    raise InputError(
        f"The label {label!r} of type {type(label).__name__} cannot be written in {language}; rename it to text or a "
        "number before the fit."
    )
