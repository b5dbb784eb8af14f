"""JSON objects that carry a checksum of what they hold: a file that was changed or cut short is told from one as saved.

A checksum finds damage, not intent: whoever may write to a file can also give it the checksum of what they wrote.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

CHECKSUM = "checksum"


def checksum(data: dict[str, Any]) -> str:
    """SHA-256 of the JSON of an object, keys in order; of ``CHECKSUM`` itself nothing is taken in."""
    held = {key: value for key, value in data.items() if key != CHECKSUM}
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def text_with_checksum(data: dict[str, Any]) -> str:
    """An object as JSON, with its checksum."""
    return json.dumps({CHECKSUM: checksum(data), **data}, allow_nan=False)


def has_checksum(data: Any) -> bool:
    """Whether what was read from JSON is an object with the checksum of what it holds."""
    try:
        return isinstance(data, dict) and data.get(CHECKSUM) == checksum(data)
    except ValueError:  # NaN or infinity, which are never written
        return False
