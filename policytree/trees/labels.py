"""Names that people read in place of those of columns: "age_at_entry_yrs" is shown as "Age at entry (years)"."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from policytree.data.features import CATEGORICAL, Feature
from policytree.exceptions import InputError, quoted
from policytree.trees.tree import Tree

HUMANIZE = "humanize"
COLUMNS = ("name", "label", "unit", "values")
UNITS = {  # at the end of a name, and as they are written
    "years": "years", "yrs": "years", "yr": "years", "months": "months", "weeks": "weeks", "days": "days",
    "hours": "hours", "hrs": "hours", "kg": "kg", "mg": "mg", "ug": "µg", "cm": "cm", "mm": "mm", "km": "km",
    "ml": "ml", "dl": "dl", "mmol": "mmol", "mol": "mol", "mmhg": "mmHg", "bpm": "bpm", "pct": "%", "percent": "%",
    "usd": "US$", "eur": "€", "gbp": "£",
}  # fmt: skip
PER = {"min": "min", "sec": "s", "m": "m", "l": "l", "g": "g"}  # alone they may mean anything
_PARTS = re.compile(r"[_\s]+|(?<=[A-Za-z])\.(?=[A-Za-z])|(?<=[a-z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Label:
    """Name of a column, its unit and names of its values.

    Attributes
    ----------
    text : str
        "" for the column's name, made readable.
    unit : str
        Of its numbers.
    values : mapping of str to str
        By the text of a value, what it means.

    Examples
    --------
    >>> from policytree.trees.labels import Label
    >>> str(Label("Body weight", "kg"))
    'Body weight (kg)'
    """

    text: str = ""
    unit: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.text} ({self.unit})" if self.unit else self.text

    def of(self, value: Any) -> Any:
        """Name a value, a whole number with or without its decimals; return the value itself where it has no name."""
        return next((self.values[text] for text in _texts(value) if text in self.values), value)


def humanized(name: str) -> Label:
    """A column's name as words, with a unit that stands at its end.

    Examples
    --------
    >>> from policytree.trees.labels import humanized
    >>> [str(humanized(name)) for name in ("prior_admissions", "weight_kg", "glucose_mg_per_dl", "BMI")]
    ['Prior admissions', 'Weight (kg)', 'Glucose (mg/dl)', 'BMI']
    """
    words = [word for word in _PARTS.split(name) if word]
    unit = ""
    lowered = [word.lower() for word in words]
    if len(words) > 3 and lowered[-2] == "per" and lowered[-1] in UNITS | PER and lowered[-3] in UNITS:
        unit, words = f"{UNITS[lowered[-3]]}/{(UNITS | PER)[lowered[-1]]}", words[:-3]
    elif len(words) > 1 and lowered[-1] in UNITS and lowered[-2] != "per":
        unit, words = UNITS[lowered[-1]], words[:-1]
    if not words:
        return Label(name)
    first = words[0][:1].upper() + words[0][1:] if words[0].islower() else words[0]
    rest = [word.lower() if word.istitle() else word for word in words[1:]]
    return Label(" ".join([first, *rest]), unit)


def as_labels(labels: Any) -> dict[str, Label]:
    """Labels as somebody gave them: "humanize", a file (:func:`read_labels`), or texts or labels by column.

    Raises
    ------
    InputError
        If they are nothing of it.
    """
    if isinstance(labels, str) and labels == HUMANIZE:
        return {}
    if isinstance(labels, str) and not labels.strip():
        raise InputError("labels is empty; give the path of a file, or 'humanize', or leave it out.")
    if isinstance(labels, str | os.PathLike):
        return read_labels(labels)
    if not isinstance(labels, Mapping) or not all(isinstance(value, str | Label) for value in labels.values()):
        raise InputError("labels must be 'humanize', the path of a file, or a mapping of columns to texts or Labels.")
    return {str(name): Label(value) if isinstance(value, str) else value for name, value in labels.items()}


def read_labels(path: str | os.PathLike[str]) -> dict[str, Label]:
    """Read labels from a CSV file with a row per column.

    Parameters
    ----------
    path : path
        Its columns are ``name``, and as many of ``label``, ``unit`` and ``values`` ("0=female; 1=male") as there are.

    Returns
    -------
    dict of str to Label

    Raises
    ------
    InputError
        If the file cannot be read as that: the sentence names the row.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"The labels {quoted(str(path))} cannot be read ({error}); give a CSV file in UTF-8."
        ) from None
    rows = csv.DictReader(io.StringIO(text))
    names = [name.strip() for name in rows.fieldnames or ()]
    if "name" not in names or not set(names) <= set(COLUMNS):
        raise InputError(
            f"The labels {quoted(str(path))} must have a column 'name', and of 'label', 'unit' and 'values' those that "
            f"say something; they have {', '.join(map(quoted, names)) or 'none'}."
        )
    rows.fieldnames = names
    found: dict[str, Label] = {}
    for number, row in enumerate(rows, 2):
        said = {column: (row.get(column) or "").strip() for column in COLUMNS}
        if not said["name"] or said["name"] in found or None in row:
            wrong = f"names {quoted(said['name'])} again" if said["name"] in found else "has no name, or too many cells"
            raise InputError(f"Line {number} of the labels {quoted(str(path))} {wrong}; give every column one row.")
        found[said["name"]] = Label(said["label"], said["unit"], _values(said["values"], number))
    return found


def _values(text: str, line: int) -> dict[str, str]:
    """Parse names of values: "0=female; 1=male"."""
    pairs = [part.partition("=") for part in text.split(";") if part.strip()]
    if not all(sign and value.strip() and meaning.strip() for value, sign, meaning in pairs):
        raise InputError(f"Line {line} of the labels has values {quoted(text)}; write them as in 0=female; 1=male.")
    found = {value.strip(): meaning.strip() for value, _, meaning in pairs}
    if len(set(found.values())) < len(pairs):
        raise InputError(
            f"Line {line} of the labels has values {quoted(text)}, of which one is named twice or two mean the same; "
            "give every value a meaning of its own."
        )
    return found


def _called(values: Sequence[Any], label: Label, column: str) -> tuple[Any, ...]:
    """Name the values of a column; refuse two values of one name, since rules must tell them apart."""
    called = tuple(label.of(value) for value in values)
    for k, meaning in enumerate(called):
        if label.values and str(meaning) in map(str, called[:k]):
            raise InputError(
                f"labels call two values of column {quoted(column)} {quoted(str(meaning))}; give every value a meaning "
                "of its own."
            )
    return called


def complete(labels: Any, table: pd.DataFrame, others: Collection[str] = ()) -> dict[str, Label]:
    """A label for every column of a table, as somebody gave them (:func:`as_labels`) or made of its name.

    Two columns that would be called the same keep their names.

    Raises
    ------
    InputError
        If labels are of columns that are neither in the table nor among the others, or of values that could not be
        shown: numbers are, where all of a column have a name.
    """
    labels = as_labels(labels)
    for name in labels:
        if name not in table and name not in others:
            raise InputError(
                f"labels name {quoted(name)}, which is no column; the covariates are "
                f"{', '.join(map(quoted, [*table][:5]))}{', ...' * (table.shape[1] > 5)}."
            )
    for name in table:
        _check_values(table[name], labels.get(name, Label()))
    return _of_all(labels, [*table])


def _check_values(column: pd.Series, label: Label) -> None:
    """Refuse names of some numbers of a column, and of texts that it does not have while others have no name."""
    values = column.dropna().unique() if label.values else []
    unnamed = [value for value in values if not label.values.keys() & _texts(value)]
    unused = label.values.keys() - {text for value in values for text in _texts(value)}
    if unnamed and (unused or pd.api.types.is_numeric_dtype(column)):
        what = f"{quoted(min(unused))}, which no row has" if unused else "some values"
        raise InputError(
            f"labels name {what}, in column {quoted(column.name)}, and do not name {quoted(str(unnamed[0]))}, which it "
            "holds; name all its values, or none."
        )


def _texts(value: Any) -> list[str]:
    """How somebody may write a value: a whole number with or without its decimals, a truth as a number, too."""
    text = str(value)
    return [text, text.removesuffix(".0"), *([str(int(value))] if isinstance(value, bool | np.bool_) else [])]


def _of_all(labels: Mapping[str, Label], columns: Sequence[str]) -> dict[str, Label]:
    """A label for every column."""
    called = [_complete(name, labels.get(name, Label())) for name in columns]
    texts = [str(label) for label in called]
    return {
        name: replace(label, text=name, unit="") if texts.count(str(label)) > 1 else label
        for name, label in zip(columns, called, strict=True)
    }


def labelled(tree: Tree, labels: Any, treatment: str = "") -> Tree:
    """The same tree in words that people read. It is for pictures and texts: tables have other names.

    Parameters
    ----------
    tree : Tree
    labels : "humanize", path, mapping of str to str or Label, or None
        By column, others of the study among them; None leaves the tree as it is.
    treatment : str
        The column of treatments, whose values may have labels, too.

    Raises
    ------
    InputError
        If labels are given, and none is of a column of the tree or of the treatment, or two values are called the same.
    """
    if labels is None:
        return tree
    labels = as_labels(labels)
    columns = [feature.name for feature in tree.features]
    if labels and not set(labels) & {*columns, treatment}:
        raise InputError(
            f"labels name {', '.join(map(quoted, sorted(labels)[:3]))}, and none of the columns, which are "
            f"{', '.join(map(quoted, columns[:5]))}."
        )
    called = _of_all(labels, columns)
    features = tuple(_shown(feature, called[feature.name]) for feature in tree.features)
    actions = _called(tree.actions, labels.get(treatment, Label()), treatment)
    return replace(tree, features=features, actions=actions)


def labelled_table(table: pd.DataFrame, labels: Mapping[str, Label]) -> pd.DataFrame:
    """The same table in words that people read: the names of its columns, and values all of which have a name."""
    out = {}
    for name in table.columns:
        label = labels.get(name, Label(name))
        out[str(label)] = _in_words(table[name], label)
    return pd.DataFrame(out, index=table.index)


def named_values(table: pd.DataFrame, labels: Mapping[str, Label], columns: Collection[str]) -> pd.DataFrame:
    """The same table with names for the values of some columns, which keep their own: of treatments, before a study.

    Raises
    ------
    InputError
        If some values would have a name and others none, or two the same one.
    """
    for name in columns:
        _check_values(table[name], labels.get(name, Label()))
    return table.assign(**{name: _in_words(table[name], labels.get(name, Label())) for name in columns})


def _in_words(column: pd.Series, label: Label) -> pd.Series:
    """A column with names for its values: numbers where all of them have one."""
    values = column.dropna().unique()
    told = dict(zip(values, _called(values, label, str(column.name)), strict=True))
    every = label.values and all(label.values.keys() & _texts(value) for value in values)
    texts = not pd.api.types.is_numeric_dtype(column)
    return column.map(told) if every or (texts and label.values) else column


def _complete(name: str, label: Label) -> Label:
    """A label whose text, and with it the unit, is made from the name where there is none."""
    if label.text:
        return label
    made = humanized(name)
    return Label(made.text, label.unit or made.unit, label.values)


def _shown(feature: Feature, label: Label) -> Feature:
    if feature.kind == CATEGORICAL:
        return replace(feature, name=str(label), categories=_called(feature.categories, label, feature.name))
    if feature.value_names is None:
        if set(label.values) != {"0", "1"}:
            return replace(feature, name=str(label))
        raise InputError(
            f"labels name 0 and 1 of column {quoted(feature.name)}, of which this tree does not know that it holds "
            "nothing else; name all its values, or none, or draw the tree with its table (X=)."
        )
    names = _called((0, 1), label, feature.name) if {"0", "1"} <= set(label.values) else feature.value_names
    return replace(feature, name=str(label), value_names=names)
