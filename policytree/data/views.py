"""Displays of results: sentences and tables, in consoles as text and in notebooks as a piece of a page."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from policytree.data.features import shown

if TYPE_CHECKING:
    import pandas as pd  # which results load that have frames

PREFORMATTED = ("├─", "└─", "  ")  # a text that has one of these keeps its blanks and lines
LONGEST = 120  # characters of a fact
LONGEST_UNBROKEN = 40  # characters of a cell
ROOM = "max-width:60em;overflow-wrap:anywhere"
SCROLLS = "overflow-x:auto;margin:.5em 0;overflow-wrap:normal"  # a wide table moves, and not the page


class Shown:
    """A result that is shown by its parts: sentences, tables, and other results.

    A class says its sentences by ``__str__``, or all of its parts by ``_shown``; one that does neither is shown by the
    table of :func:`facts`. Its dataclass is made with ``repr=False``.
    """

    __slots__ = ()

    def _shown(self) -> Iterable[Any]:
        """Texts, frames (a plain range as index is not shown) and other results, in order."""
        if type(self).__str__ is not Shown.__str__:
            return [str(self)]
        return [self.to_frame() if hasattr(self, "to_frame") else facts_frame(facts(self))]

    def __str__(self) -> str:
        return as_text(self._shown())

    def __repr__(self) -> str:
        if type(self).__str__ is Shown.__str__ and type(self)._shown is Shown._shown and not hasattr(self, "to_frame"):
            return f"<{type(self).__name__}: {', '.join(f'{name} {said}' for name, said in facts(self).items())}>"
        return str(self)

    def _repr_html_(self) -> str:
        return as_html(self._shown())


def as_text(parts: Iterable[Any]) -> str:
    """Parts one below the other; frames in fixed width."""
    return "\n".join(part.to_string(index=_has_index(part)) if _is_frame(part) else str(part) for part in parts)


def as_html(parts: Iterable[Any]) -> str:
    """Parts as a piece of a page; nothing that a name holds is markup."""
    return f'<div class="policytree" style="{ROOM}">{"".join(map(_html, parts))}</div>'


def escaped(text: Any) -> str:
    """Text of a page, hidden characters made visible."""
    return html.escape(shown(text, longest=None))


def facts(result: Any) -> dict[str, str]:
    """The public fields of a dataclass, if not empty: numbers and labels as they are, of longer values their size."""
    said = {field.name: fact(getattr(result, field.name)) for field in fields(result) if field.name[0] != "_"}
    return {name: text for name, text in said.items() if text}


def facts_frame(said: Mapping[str, str]) -> pd.DataFrame:
    """Names and texts as a table of two columns."""
    import pandas as pd

    widest = [max(map(len, each), default=0) for each in (said, said.values())]  # texts stand on the left
    rows = [[text.ljust(width) for text, width in zip(pair, widest, strict=True)] for pair in said.items()]
    return pd.DataFrame(rows, columns=["", " "])


def fact(value: Any) -> str:
    """A value in a few words; of containers their size."""
    if value is None or isinstance(value, str | bool) or type(value).__name__ == "bool_":
        return "" if value is None else _cut(str(value).partition("\n")[0])
    if isinstance(value, Real):
        return f"{float(value):.6g}"
    if all(hasattr(value, part) for part in ("value", "lower", "upper")):
        return f"{value.value:.4g} [{value.lower:.4g}, {value.upper:.4g}]"
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if is_dataclass(value) and not isinstance(value, Shown) and type(value).__str__ is object.__str__:
        return type(value).__name__
    if isinstance(value, Mapping):
        return ", ".join(map(str, value)) if len(value) <= 8 else f"{len(value):,} entries"
    if isinstance(value, tuple | list):
        simple = len(value) <= 8 and all(isinstance(each, str | Real) for each in value)
        return ", ".join(map(str, value)) if simple else f"{len(value):,} entries"
    return _cut(str(value).partition("\n")[0])


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _is_frame(part: Any) -> bool:
    """Whether something is a frame of pandas, which need not have been imported."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(part, pandas.DataFrame)


def _has_index(frame: pd.DataFrame) -> bool:
    import pandas as pd

    return not isinstance(frame.index, pd.RangeIndex)


def _html(part: Any) -> str:
    if _is_frame(part):
        return f'<div style="{SCROLLS}">{_table(part)}</div>'
    if hasattr(part, "_repr_html_"):
        return part._repr_html_()
    text = str(part).strip("\n")
    if any(mark in text for mark in PREFORMATTED):
        lines = "\n".join(map(escaped, text.split("\n")))
        return f'<pre style="{SCROLLS}">{lines}</pre>'
    return "".join(f'<p style="margin:.4em 0">{escaped(line)}</p>' for line in text.split("\n") if line.strip())


def _table(frame: pd.DataFrame) -> str:
    """A frame as a table; labels of people's data are cells' text."""
    import pandas as pd

    safe = frame.map(lambda value: shown(value, longest=None) if isinstance(value, str) else value)
    safe.columns, safe.index = _labels(frame.columns), _labels(frame.index)
    with pd.option_context("display.max_colwidth", None):
        table = safe.to_html(index=_has_index(frame), border=0, na_rep="", float_format="{:.4g}".format, justify="left")
    return re.sub(r"<t[dh](?=>)(?:>([^<]*))", _cell, table)


def _cell(found: re.Match[str]) -> str:
    """A cell whose text is not broken, if it is short."""
    tag, text = found[0][1:3], found[1]
    breaks = "" if len(text) > LONGEST_UNBROKEN else ";white-space:nowrap"
    return f'<{tag} style="padding:.15em .6em;text-align:left{breaks}">{text.rstrip()}'


def _labels(index: pd.Index) -> pd.Index:
    return index.map(lambda label: shown(label, longest=None) if isinstance(label, str) else label)
