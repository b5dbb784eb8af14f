"""Names from data as they may be shown: nothing that moves a cursor, turns a line round or breaks a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, direction marks, halves of letters, unknown, separators
JOINERS = "\u200c\u200d"  # letters of Persian and Indian scripts, and emoji, need them
LONGEST = 300  # characters of one word without a blank
# Words that are written from right to left, and the blanks between them.
_LETTERS = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+"
RIGHT_TO_LEFT = re.compile(rf"{_LETTERS}(?:\s+{_LETTERS})*")


def visible(text: str, keep: str = "\n") -> str:
    r"""Text whose hidden characters are written out, such as ``\x1b``; line breaks stay.

    Words longer than 300 characters are cut in the middle.
    """
    if text.isascii() and text.isprintable():
        shown = text
    else:
        shown = "".join(c if c in keep or c in JOINERS or not _hidden(c) else _written(c) for c in text)
    if len(shown) <= LONGEST:
        return shown
    return "\n".join(" ".join(map(_cut, line.split(" "))) for line in shown.split("\n"))


def set_apart(text: str, within: Callable[[str], str]) -> str:
    """Text whose right-to-left words are handed to ``within``, so that what stands beside them can be kept in order."""
    return RIGHT_TO_LEFT.sub(lambda found: within(found.group()), text)


def _hidden(character: str) -> bool:
    return not character.isprintable() and unicodedata.category(character) in HIDDEN


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"


def _cut(word: str) -> str:
    return word if len(word) <= LONGEST else f"{word[: LONGEST // 2]}…{word[-LONGEST // 2 :]}"
