"""Names that people read in place of those of columns: "age_at_entry_yrs" is shown as "Age at entry (years)"."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
    """What a column is called.

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
        """What a value means, a whole number with or without its decimals; itself where nobody said it."""
        text = str(value)
        return self.values.get(text, self.values.get(text.removesuffix(".0"), value))


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
    """What values mean: "0=female; 1=male"."""
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
    """What the values of a column are called; refuses two that would be called the same: rules must tell them apart."""
    called = tuple(label.of(value) for value in values)
    for k, meaning in enumerate(called):
        if label.values and str(meaning) in map(str, called[:k]):
            raise InputError(
                f"labels call two values of column {quoted(column)} {quoted(str(meaning))}; give every value a meaning "
                "of its own."
            )
    return called


def complete(labels: Any, columns: Sequence[str], *others: str) -> dict[str, Label]:
    """A label for every column, as somebody gave them (:func:`as_labels`) or made of its name (:func:`humanized`).

    Two columns that would be called the same keep their names.

    Raises
    ------
    InputError
        If labels are given, and none is of a column or one of the others.
    """
    labels = as_labels(labels)
    if labels and not set(labels) & {*columns, *others}:
        raise InputError(
            f"labels name {', '.join(map(quoted, sorted(labels)[:3]))}, and none of the columns, which are "
            f"{', '.join(map(quoted, columns[:5]))}."
        )
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
        By column (:func:`complete`); None leaves the tree as it is.
    treatment : str
        The column of treatments, whose values may have labels, too.
    """
    if labels is None:
        return tree
    labels = as_labels(labels)
    called = complete(labels, [feature.name for feature in tree.features], treatment)
    features = tuple(_shown(feature, called[feature.name]) for feature in tree.features)
    actions = _called(tree.actions, labels.get(treatment, Label()), treatment)
    return replace(tree, features=features, actions=actions)


def labelled_table(table: pd.DataFrame, labels: Mapping[str, Label]) -> pd.DataFrame:
    """The same table in words that people read: the names of its columns, and values all of which have a name."""
    out = {}
    for name in table.columns:
        values, label = table[name].dropna().unique(), labels.get(name, Label(name))
        told = dict(zip(values, _called(values, label, name), strict=True))
        every = label.values and all(str(value).removesuffix(".0") in label.values for value in values)
        texts = not pd.api.types.is_numeric_dtype(table[name])
        out[str(label)] = table[name].map(told) if every or (texts and label.values) else table[name]
    return pd.DataFrame(out, index=table.index)


def _complete(name: str, label: Label) -> Label:
    """A label whose text, and with it the unit, is made from the name where there is none."""
    if label.text:
        return label
    made = humanized(name)
    return Label(made.text, label.unit or made.unit, label.values)


def _shown(feature: Feature, label: Label) -> Feature:
    if feature.kind == CATEGORICAL:
        return replace(feature, name=str(label), categories=_called(feature.categories, label, feature.name))
    if set(label.values) != {"0", "1"}:  # whoever names just these says that there are no others
        return replace(feature, name=str(label))
    return replace(feature, name=str(label), value_names=_called((0, 1), label, feature.name))
