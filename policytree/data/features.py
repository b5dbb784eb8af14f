"""One column of the user's table, as the search and the tree see it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from policytree.exceptions import InputError

NUMERIC = "numeric"
CATEGORICAL = "categorical"

MOST_GROUPED = 53  # categories of a feature that splits may group: a set of them is an integer that float64 holds
LONGEST_SHOWN = 80  # characters of a label in a line of text or a picture
_UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode: controls, invisible formats, lone surrogates, separators


def shown(label: Any, longest: int | None = LONGEST_SHOWN) -> str:
    """A label, or the name of a column, as text that is safe to show: one line, nothing that steers a terminal.

    Control characters, invisible ones (such as those that turn the direction of writing) and halves of letters are
    escaped; what is longer than ``longest`` characters is cut.
    """
    text = str(label)
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def check_whole(value: int) -> int:
    """A whole number, or one sentence if it is beyond the numbers that tables and databases can hold."""
    if abs(value) > sys.float_info.max:
        raise InputError("A label is a whole number beyond 1.8e308, which tables cannot hold; rename it to text.")
    return value


def named_apart(label: Any, labels: Iterable[Any]) -> str:
    """A label as text: where another of the labels has the same text, such as 1 and "1", as Python writes the value."""
    text = str(label)
    if sum(str(other) == text for other in labels) < 2:
        return text
    return repr(label.item() if hasattr(label, "item") else label)


def level_threshold(levels: Iterable[int]) -> float:
    """The threshold that stands for a set of categories by their positions, all below ``MOST_GROUPED``.

    A set of one is its position, the empty set (missing values alone) -1, and a larger one minus the sum of ``2**k``
    over its positions ``k``: at most -3, and an integer that a float64 holds exactly.
    """
    levels = tuple(levels)
    if len(levels) < 2:
        return float(levels[0]) if levels else -1.0
    return -float(sum(1 << k for k in levels))


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the user's table, as the search and the tree see it.

    Attributes
    ----------
    name : str
        The column's name.
    kind : {"numeric", "categorical"}
        Numeric features split by ``x <= threshold``; categorical ones by whether ``x`` is one of a set of categories.
    categories : tuple
        The user's category values; the encoded value of a category is its position here. Empty for numeric features.
    has_missing : bool or None
        Whether values were missing in the training table; None if that is not known. Features are equal without it.
    value_names : tuple of two str, or None
        Names of 0 and 1, in a numeric column that has no other values: questions are then "sex?", with the answers
        "female" and "male", instead of "sex ≤ 0?". Features are equal without it.
    """

    name: str
    kind: str = NUMERIC
    categories: tuple[Any, ...] = ()
    has_missing: bool | None = field(default=None, compare=False)
    value_names: tuple[str, str] | None = field(default=None, compare=False)

    def levels_at(self, threshold: float) -> tuple[int, ...]:
        """Positions of the categories that a threshold (:func:`level_threshold`) sends left.

        Raises
        ------
        InputError
            If the threshold stands for no set of the categories.
        """
        L = len(self.categories)
        if float(threshold).is_integer():
            if -1 <= threshold < L:
                return (int(threshold),) if threshold >= 0 else ()
            mask = -int(threshold)
            if mask >= 3 and mask.bit_count() > 1 and mask.bit_length() <= min(L, MOST_GROUPED):
                return tuple(k for k in range(L) if mask >> k & 1)
        raise InputError(f"{threshold} stands for no set of the {L} categories of feature {self.name!r}.")

    def names_at(self, threshold: float) -> tuple[str, str] | None:
        """Name the values up to a threshold, and the others; None where they have no names."""
        return self.value_names if self.kind == NUMERIC and 0.0 <= threshold < 1.0 else None
