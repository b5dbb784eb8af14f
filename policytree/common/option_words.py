"""Values of command-line options that name labels or columns: written so that a shell takes them, and read again."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable


def typed(value: object) -> str:
    """One value as it is typed in a shell; in quotes also where it ends like a sentence, so that it ends there."""
    text = str(value)
    return f"'{text}'" if text.endswith(".") and shlex.quote(text) == text else shlex.quote(text)


def comma_list(values: Iterable[object]) -> str:
    """Values in one option, separated by commas; those that hold one stand in double quotes, as CSV has them."""
    line = io.StringIO()
    csv.writer(line).writerow(values)  # which quotes values that hold the end of a line, "\r\n"
    return line.getvalue().removesuffix("\r\n")


def typed_list(values: Iterable[object]) -> str:
    """The same as it is typed in a shell."""
    return shlex.quote(comma_list(values))


def listed(text: str) -> list[str]:
    """The values of such an option, with the blanks around them; those of a text that cannot be read as they stand."""
    try:
        return next(csv.reader([text]), [])
    except csv.Error:  # a line break in it
        return text.split(",")
