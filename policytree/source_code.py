"""Trees as source code that others can run without policytree: an SQL expression, a Python function."""

from __future__ import annotations

import keyword
import math
from typing import Any

import numpy as np

from policytree.exceptions import InputError, quoted
from policytree.features import CATEGORICAL
from policytree.tree import Tree

PYTHON_LEVELS = 90  # Python refuses more than 100 levels of indentation
INDENT = "    "


def export_sql(tree: Tree, *, column: str | None = "policy") -> str:
    """Write the tree as an SQL expression (``CASE``), in the words that all SQL databases share.

    Missing values are NULL; texts that no training row had are treated as missing, as the tree itself does.

    Parameters
    ----------
    tree : Tree
    column : str or None, default "policy"
        Name of the result, ``CASE ... END AS "policy"``; None leaves it out.

    Returns
    -------
    str
        To be put behind SELECT; names of columns stand in double quotes.

    Raises
    ------
    InputError
        If a label or category is neither text, a number, a boolean nor None.
    """

    def lines(node: int, indent: str) -> list[str]:
        if tree.is_leaf[node]:
            return [indent + _sql_literal(tree.actions[tree.action[node]])]
        inner = indent + "  "
        return [
            f"{indent}CASE WHEN {_sql_condition(tree, node)} THEN",
            *lines(int(tree.children_left[node]), inner),
            f"{indent}ELSE",
            *lines(int(tree.children_right[node]), inner),
            f"{indent}END",
        ]

    name = "" if column is None else f" AS {_sql_name(column)}"
    return "\n".join(lines(0, "")) + name


def _sql_condition(tree: Tree, node: int) -> str:
    """What is true of the rows that go left; unknown (NULL) counts as false."""
    feature = tree.features[tree.feature[node]]
    name, threshold = _sql_name(feature.name), float(tree.threshold[node])
    if feature.kind != CATEGORICAL:
        if np.isposinf(threshold):
            return f"{name} IS NOT NULL"
        known, missing = f"{name} <= {threshold!r}", f"{name} IS NULL"
    else:
        categories = ", ".join(_sql_literal(category) for category in feature.categories)
        missing = f"{name} IS NULL" + (f" OR {name} NOT IN ({categories})" if categories else "")
        if threshold < 0:
            return missing
        known = f"{name} = {_sql_literal(feature.categories[int(threshold)])}"
    return f"{known} OR {missing}" if tree.missing_go_to_left[node] else known


def _sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_literal(label: Any) -> str:
    value = _plain(label, "SQL")
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def export_python(tree: Tree, *, name: str = "policy") -> str:
    """Write the tree as a Python function of one row, which needs nothing but Python.

    The function takes a mapping from column to value, such as a dictionary or a row of a DataFrame. None and NaN are
    missing values; texts that no training row had are treated as missing, as the tree itself does.

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

    return "\n".join(
        [
            f"def {name}(row):",
            f'{INDENT}"""Say what a row gets, given a mapping from column to value."""',
            *(f"{INDENT}{_variable(j)} = {_python_value(tree, j)}" for j in tree.used_features.tolist()),
            *lines(0, INDENT),
            "",
        ]
    )


def _variable(j: int) -> str:
    return f"x{j}"


def _python_value(tree: Tree, j: int) -> str:
    """The value of a column, None where it is missing."""
    feature = tree.features[j]
    value = f"row[{feature.name!r}]"
    if feature.kind == CATEGORICAL:
        categories = [_plain(category, "Python") for category in feature.categories]
        return f"{value} if {value} in {tuple(categories)!r} else None"
    return f"None if {value} is None or {value} != {value} else {value}"


def _python_condition(tree: Tree, node: int) -> str:
    j, threshold = int(tree.feature[node]), float(tree.threshold[node])
    x, feature = _variable(j), tree.features[j]
    if np.isposinf(threshold):
        return f"{x} is not None"
    if feature.kind == CATEGORICAL:
        if threshold < 0:
            return f"{x} is None"
        known = f"{x} == {_plain(feature.categories[int(threshold)], 'Python')!r}"
        return f"{x} is None or {known}" if tree.missing_go_to_left[node] else known
    known = f"{x} <= {threshold!r}"
    return f"{x} is None or {known}" if tree.missing_go_to_left[node] else f"{x} is not None and {known}"


def _plain(label: Any, language: str) -> str | int | float | bool | None:
    """A label as one of the values that source code can state."""
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(
        f"The label {label!r} of type {type(label).__name__} cannot be written in {language}; rename it to text or a "
        "number before the fit."
    )
