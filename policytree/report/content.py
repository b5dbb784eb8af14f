"""Content of a report, apart from its rendering: sections of plain blocks, which JSON can hold."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from policytree.evaluation.formatting import Columns, cell, records
from policytree.exceptions import InputError
from policytree.serialization.parsing import MALFORMED

FORMAT = "policytree report 1"
_NUMBER = re.compile(r"|-|(training rows)|<0.001|[-+\[]*[\d.][-+\d.,e%\] ]*|[-+]?(nan|inf)")


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph.

    ``tone``: "plain", "lead" (the answer), "note", "warning", "assumption", or the state of a verdict:
    "supported", "fragile", "cannot-be-said".
    """

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names, each with a statement; ``large``: numbers that a page shows first, in large letters."""

    pairs: tuple[tuple[str, str], ...]
    large: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts as they are shown, and the numbers behind them.

    Attributes
    ----------
    columns : tuple of str
        The first one heads the rows' names.
    rows : tuple of tuples of str
    caption : str
        A title for readers of a screen reader.
    strong : tuple of int
        Rows that stand out.
    numbers : tuple of dict
        One per row, unrounded; empty where the texts say all.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    strong: tuple[int, ...] = ()
    numbers: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(
        cls, rows: pd.DataFrame | Iterable[Mapping[str, Any]], columns: Columns, caption: str, *,
        strong: tuple[int, ...] = (), **also: Any,
    ) -> Table:  # fmt: skip
        """A table of numbers by the headings of its columns and how each is written.

        Parameters
        ----------
        rows : DataFrame, or iterable of mappings
            Unrounded numbers by their names; those of a frame's index have the names of its levels.
        columns : mapping of str to form, or pairs
            By heading a format, as :func:`policytree.evaluation.formatting.cell` takes it; blanks at the end only tell
            headings apart.
        caption : str
        strong : tuple of int
        **also
            Further values that formats name, such as ``digits``.
        """
        plain, pairs = records(rows), tuple(columns.items() if isinstance(columns, Mapping) else columns)
        cells = tuple(tuple(cell(form, row, **also) for _, form in pairs) for row in plain)
        return cls(tuple(heading.rstrip() for heading, _ in pairs), cells, caption, strong, tuple(plain))

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"the rows of {self.caption!r} are not as long as its {len(self.columns)} columns")

    def is_numeric(self, column: int) -> bool:
        """Whether a column holds numbers and intervals, which are aligned to the right."""
        return all(_NUMBER.fullmatch(row[column]) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Outline:
    """A tree of questions and leaves; :mod:`policytree.report.outline` makes it.

    Attributes
    ----------
    root : dict
        Questions have "question", "asked" and "answers" in a reader's words, "yes", "no", "missing" (such as "missing →
        yes"; "" where nothing was missing) and what a program needs to answer: "feature", "kind", "value". Leaves have
        "treatment" and "lines". All have "rows".
    scales : dict of str to float
        Typical spread of the numeric features that are asked about.
    ranges : dict of str to list of two floats
        Between which nine of ten rows lie, of the same features.
    form : bool
        Whether a page leads a person through it.
    caution : str
        Caution beside the treatment that a person would get, such as that the tree is not recommended.
    """

    root: dict[str, Any]
    scales: dict[str, float] = field(default_factory=dict)
    form: bool = True
    ranges: dict[str, list[float]] = field(default_factory=dict)
    caution: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """Numbered steps for a person who applies the rule."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to be typed or pasted."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as data; :mod:`policytree.report.drawing` draws it.

    Attributes
    ----------
    kind : str
    data : dict
        Plain values.
    alt : str
        A description for readers who cannot see the picture.
    caption : str
    """

    kind: str
    data: dict[str, Any]
    alt: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """Trees of which a page shows one at a time: a row of the table for each."""

    table: Table
    trees: tuple[Outline, ...]


@dataclass(frozen=True, slots=True)
class Prices:
    """Values of rules at other prices of treatments, which a page computes; text has the table beside it.

    Attributes
    ----------
    data : dict
        Of every rule its moments, as :mod:`policytree.report.sections.prices` makes them; of nobody anything.
    """

    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fold:
    """Details that may stay closed."""

    title: str
    blocks: tuple[Any, ...]


Block = Words | Facts | Table | Outline | Steps | Code | Picture | Choices | Prices | Fold
KINDS: dict[str, type] = {
    kind.__name__.lower(): kind for kind in (Words, Facts, Table, Outline, Steps, Code, Picture, Choices, Prices, Fold)
}


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part; ``key`` is its short name, the same in every report.

    ``folded``: whether a page shows the title alone until the reader opens the section.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """A whole report.

    Attributes
    ----------
    title, subtitle : str
    sections : tuple of Section
    """

    title: str
    subtitle: str
    sections: tuple[Section, ...]

    def section(self, key: str) -> Section:
        """The section of that name.

        Raises
        ------
        InputError
            If there is none.
        """
        for section in self.sections:
            if section.key == key:
                return section
        raise InputError(f"The report has no section {key!r}; it has {', '.join(s.key for s in self.sections)}.")

    def blocks(self) -> Iterator[Block]:
        """All blocks in the order of the page, those in folds too."""
        for section in self.sections:
            todo = list(section.blocks)
            while todo:
                block = todo.pop(0)
                yield block
                if isinstance(block, Fold):
                    todo = [*block.blocks, *todo]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        sections = [
            {"key": s.key, "title": s.title, "folded": s.folded, "blocks": [_plain(b) for b in s.blocks]}
            for s in self.sections
        ]
        return {"format": FORMAT, "title": self.title, "subtitle": self.subtitle, "sections": sections}

    @classmethod
    def from_dict(cls, data: Any) -> Content:
        """The report of :meth:`to_dict`.

        Raises
        ------
        InputError
            If the data are no saved report.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(f"This is no saved report: its field 'format' must be {FORMAT!r}.")
        try:
            sections = tuple(
                Section(_text(s["key"]), _text(s["title"]), tuple(map(_block, s["blocks"])), bool(s.get("folded")))
                for s in data["sections"]
            )
            return cls(_text(data["title"]), _text(data["subtitle"]), sections)
        except MALFORMED as error:
            raise InputError(
                f"This is no saved report: a field is missing or malformed ({error}); write it again."
            ) from error


def _plain(value: Any) -> Any:
    """A block, or a part of one, as plain values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"block": type(value).__name__.lower(), **fields}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not (-float("inf") < value < float("inf")):
        return None  # JSON knows neither infinity nor NaN
    return value


def _block(data: dict[str, Any]) -> Block:
    fields = {name: value for name, value in data.items() if name != "block"}
    kind = KINDS[data["block"]]
    if kind is Choices:
        table, *trees = map(_block, (fields["table"], *fields["trees"]))
        if not isinstance(table, Table) or not all(isinstance(tree, Outline) for tree in trees):
            raise TypeError("choices are a table and trees")
        return Choices(table, tuple(tree for tree in trees if isinstance(tree, Outline)))
    if kind is Fold:
        return Fold(_text(fields["title"]), tuple(map(_block, fields["blocks"])))
    return kind(**{name: READERS.get(name, _text)(value) for name, value in fields.items()})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(_text, values))


def _text_list(values: Any) -> list[str]:
    return list(_texts(values))


def _rows(values: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_texts, values))


def _pairs(values: Any) -> tuple[tuple[str, str], ...]:
    return tuple((_text(name), _text(fact)) for name, fact in values)


def _objects(values: Any) -> tuple[dict[str, Any], ...]:
    return tuple(map(dict, values))


def _whole(values: Any) -> tuple[int, ...]:
    return tuple(map(int, values))


def _node(value: Any) -> dict[str, Any]:
    """A node of an outline, and all below it."""
    if "treatment" in value:
        return {name: _text(value[name]) for name in ("treatment", "rows")} | {"lines": list(_texts(value["lines"]))}
    node: dict[str, Any] = {name: _text(value[name]) for name in QUESTION}
    if node["kind"] not in ("numeric", "category", "group", "missing", "known") or node["unknown"] not in ("yes", "no"):
        raise ValueError(f"{value['kind']!r} is no kind of question")
    readers: dict[str, Callable[[Any], Any]] = {"numeric": float, "category": _text, "group": _text_list}
    compared = readers[node["kind"]](value["value"]) if node["kind"] in readers else None
    node["otherwise"] = _text(value.get("otherwise", ""))
    first, second = _texts(value["answers"])
    node["answers"] = [first, second]
    return node | {"value": compared, "yes": _node(value["yes"]), "no": _node(value["no"])}


def _scales(values: Any) -> dict[str, float]:
    return {_text(name): float(scale) for name, scale in values.items()}


def _ranges(values: Any) -> dict[str, list[float]]:
    return {_text(name): [float(low), float(high)] for name, (low, high) in values.items()}


QUESTION = ("question", "asked", "feature", "kind", "missing", "unknown", "rows")
READERS: dict[str, Callable[[Any], Any]] = {
    "rows": _rows, "columns": _texts, "items": _texts, "strong": _whole, "pairs": _pairs, "numbers": _objects,
    "data": dict, "root": _node, "scales": _scales, "form": bool, "ranges": _ranges, "large": bool,
}  # fmt: skip
