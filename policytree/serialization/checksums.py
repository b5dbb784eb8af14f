"""JSON objects that carry a checksum of what they hold: a file that was changed or cut short is told from one as saved.

A checksum finds damage, not intent: whoever may write to a file can also give it the checksum of what they wrote.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from policytree.exceptions import InputError

CHECKSUM = "checksum"


def checksum(data: dict[str, Any]) -> str:
    """SHA-256 of the JSON of an object, keys in order; of ``CHECKSUM`` itself nothing is taken in."""
    held = {key: value for key, value in data.items() if key != CHECKSUM}
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def text_with_checksum(data: dict[str, Any], *, indent: int | None = None) -> str:
    """An object as JSON, with its checksum; ``indent`` as in :func:`json.dumps`."""
    return json.dumps(with_checksum(data), indent=indent, allow_nan=False)


def with_checksum(data: dict[str, Any]) -> dict[str, Any]:
    """An object as its JSON will be read, its checksum first; names of fields that are no text become text there."""
    held = json.loads(json.dumps(data, allow_nan=False))
    return {CHECKSUM: checksum(held), **held}


def has_checksum(data: Any) -> bool:
    """Whether what was read from JSON is an object with the checksum of what it holds."""
    try:
        return isinstance(data, dict) and data.get(CHECKSUM) == checksum(data)
    except (ValueError, TypeError, RecursionError):  # NaN, infinity, what is no JSON: they are never written
        return False


def refuse_changed(data: dict[str, Any], what: str) -> None:
    """Refuse an object whose checksum is not that of what it holds; files of earlier versions have none, and pass.

    Raises
    ------
    InputError
        Naming the object ``what``, such as "saved tree".
    """
    if CHECKSUM in data and not has_checksum(data):
        raise InputError(
            f"The {what} was changed or damaged after it was saved: its field {CHECKSUM!r} does not match the rest. "
            "Save it again, or delete that field if you meant the change."
        )
