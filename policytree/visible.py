"""Names from data as they may be shown: nothing that moves a cursor, turns a line round or breaks a page."""

from __future__ import annotations

import unicodedata

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, direction marks, halves of letters, unknown, separators
JOINERS = "\u200c\u200d"  # letters of Persian and Indian scripts, and emoji, need them
LONGEST = 300  # characters of one word without a blank


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


def _hidden(character: str) -> bool:
    return not character.isprintable() and unicodedata.category(character) in HIDDEN


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"


def _cut(word: str) -> str:
    return word if len(word) <= LONGEST else f"{word[: LONGEST // 2]}…{word[-LONGEST // 2 :]}"
