"""Numbers that are texts: what a text says as a number, and why a column of numbers holds other texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from policytree.exceptions import quoted

THOUSANDS, PERCENT, DECIMAL_COMMA = "thousands", "percent", "decimal comma"
POINTS, APOSTROPHES = "points and decimal comma", "apostrophes"
OPTIONS = {  # options that read such texts
    THOUSANDS: "--thousands ,",
    DECIMAL_COMMA: "--decimal ,",
    POINTS: "--thousands . --decimal ,",
    APOSTROPHES: '--thousands "\'"',
}
WORD, UNITS, OTHER = "word", "units", "other"
LIMITS = tuple("<>≤≥")  # of detection: "<0.5" is not a missing value
FEW_WORDS = 3  # so many different words among numbers may stand for missing values
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)
_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\ufe63": "-", "\uff0d": "-"})
_SPACE = "[ \u00a0\u2007\u2009\u202f]"
_SPACED = re.compile(rf"[-+]?\d{{1,3}}({_SPACE}\d{{3}})+([.,]\d*)?")
_PERCENT = re.compile(r"(.*\d[.,]?)\s*%")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_GROUPED = {mark: re.compile(rf"[-+]?\d{{1,3}}({re.escape(mark)}\d{{3}})+(\D\d*)?") for mark in (",", ".", "'", " ")}


def number_of(text: str, decimal: str = ".", thousands: str | None = None) -> float | None:
    """The number that a text is; None if it is none.

    Blanks around it, blanks between thousands (also those that do not break) and the typographic minus are read
    without being asked for; signs between thousands, where ``thousands`` says which.
    """
    text = text.strip().translate(_MINUS)
    if _SPACED.fullmatch(text):
        text = re.sub(_SPACE, "", text)
    if thousands == "'":
        text = text.replace("\u2019", "'")
    if thousands is not None and thousands in text:
        if not _GROUPED[thousands].fullmatch(text):
            return None
        text = text.replace(thousands, "")
    if decimal == ",":
        text = "" if "." in text else text.replace(",", ".")
    if _NUMBER.fullmatch(text) or _INFINITE.fullmatch(text):
        return float(text)
    return None


def percent_of(text: str, decimal: str = ".") -> float | None:
    """The number before a percent sign, 5.1 of "5.1 %"; None if the text is no such thing."""
    match = _PERCENT.fullmatch(text.strip())
    return None if match is None else number_of(match[1], decimal)


@dataclass(frozen=True, slots=True)
class Unread:
    """Values of a column that are no numbers.

    Attributes
    ----------
    value : str
        The first that tells the cause.
    row : int
        Its position, from 0.
    count, n : int
        How many there are, among how many rows.
    cause : str
        One of the constants above.
    words : tuple of str
        The different ones, if there are few.
    """

    value: str
    row: int
    count: int
    n: int
    cause: str
    words: tuple[str, ...]

    @property
    def looks(self) -> str:
        """The cause, in words."""
        words = " and ".join(map(quoted, self.words))
        return {
            THOUSANDS: "a comma between thousands",
            PERCENT: "a percent sign",
            DECIMAL_COMMA: "a decimal comma",
            POINTS: "a point between thousands and a decimal comma",
            APOSTROPHES: "an apostrophe between thousands",
            WORD: f"{words}, perhaps for a missing value",
            UNITS: "a line of units, or a second header",
            OTHER: "text",
        }[self.cause]


def unread(values: Iterable[Any]) -> Unread | None:
    """The values of a column that are no numbers, and their likely cause; None if all are numbers or missing."""
    first: dict[str, int] = {}
    count = n = numbers = 0
    for row, value in enumerate(values):
        n += 1
        if not isinstance(value, str):
            numbers += value == value and value is not None
        elif number_of(value) is None:
            first.setdefault(value, row)
            count += 1
        else:
            numbers += 1
    if not first:
        return None
    texts = [text.strip() for text in first]
    signs = [text for text in texts if percent_of(text) is not None or percent_of(text, ",") is not None]
    commas = [text for text in texts if _DECIMAL_COMMA.fullmatch(text) or _GROUPED[","].fullmatch(text)]
    told = texts[0]
    if len(signs) == len(texts):
        cause = PERCENT
    elif commas and len(commas) >= len(texts) - FEW_WORDS:
        decimal = [text for text in commas if _DECIMAL_COMMA.fullmatch(text) and not _is_grouped(text)]
        cause, told = (DECIMAL_COMMA, decimal[0]) if decimal else (THOUSANDS, commas[0])
    elif _mostly(texts, ",", "."):
        cause = POINTS
    elif _mostly(texts, ".", "'"):
        cause = APOSTROPHES
    elif len(texts) == 1 and count == 1 and first[next(iter(first))] == 0 and numbers:
        cause = UNITS
    elif len(texts) <= FEW_WORDS and numbers > count and not any(text[:1] in LIMITS for text in texts):
        cause = WORD
    else:
        cause = OTHER
    row = next(row for text, row in first.items() if text.strip() == told)
    return Unread(told, row, count, n, cause, tuple(texts[:FEW_WORDS]))


def _mostly(texts: list[str], decimal: str, thousands: str) -> bool:
    """Whether texts are numbers with these signs, but for a few words."""
    read = sum(number_of(text, decimal, thousands) is not None for text in texts)
    return read > 0 and read >= len(texts) - FEW_WORDS


def _is_grouped(text: str) -> bool:
    """Whether digits could be thousands with a comma: 1,234 but not 0,303."""
    return bool(_GROUPED[","].fullmatch(text)) and not text.lstrip("+-").startswith("0")


def python_remedy(cause: str, argument: str) -> str:
    """How to make numbers of such texts in Python."""
    return {
        THOUSANDS: f"remove it by {argument}.str.replace(',', '').astype(float), or read the file with thousands=','.",
        PERCENT: f"remove it by {argument}.str.rstrip('% ').astype(float).",
        DECIMAL_COMMA: f"write points by {argument}.str.replace(',', '.').astype(float), or read the file with "
        "decimal=','.",
        POINTS: f"write {argument}.str.replace('.', '').str.replace(',', '.').astype(float), or read the file with "
        "thousands='.', decimal=','.",
        APOSTROPHES: f"remove them by {argument}.str.replace(\"'\", '').astype(float), or read the file with "
        'thousands="\'".',
        WORD: f"make missing values of them by pd.to_numeric({argument}, errors='coerce').",
        UNITS: "leave that row out, and convert the others to numbers.",
        OTHER: "convert them to numbers.",
    }[cause]
