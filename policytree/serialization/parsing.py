"""JSON as every loader takes it: what the standard leaves open is refused."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text (RFC 8259) in which no object has two fields of one name.

    Raises
    ------
    ValueError
        If the text is no such JSON; UnicodeDecodeError and json.JSONDecodeError are ValueErrors.
    RecursionError
        If lists or objects are nested too deep.
    """
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the field {key!a} stands twice")
        data[key] = value
    return data
