"""Names from data as safe text: nothing steers a terminal, reverses a line or breaks a page."""

from __future__ import annotations

import re
from collections.abc import Callable

from policytree.data.features import shown

LONGEST = 300  # characters of one word without a blank
# Words that are written from right to left, and the blanks between them.
_LETTERS = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+"
RIGHT_TO_LEFT = re.compile(rf"{_LETTERS}(?:\s+{_LETTERS})*")


def visible(text: str, *, lines: bool = True) -> str:
    """A text with its hidden characters escaped, and words of more than 300 characters cut in the middle.

    Labels alone are shown by :func:`policytree.data.features.shown`. Line breaks stay, unless ``lines`` says otherwise.
    """
    parts = text.split("\n") if lines else [text]
    return "\n".join(" ".join(map(_cut, shown(part, longest=None).split(" "))) for part in parts)


def set_apart(text: str, within: Callable[[str], str]) -> str:
    """Text whose right-to-left words are handed to ``within``, so that what stands beside them can be kept in order."""
    return RIGHT_TO_LEFT.sub(lambda found: within(found.group()), text)


def _cut(word: str) -> str:
    return word if len(word) <= LONGEST else f"{word[: LONGEST // 2]}…{word[-LONGEST // 2 :]}"
