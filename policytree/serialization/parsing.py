"""JSON as every loader takes it: what the standard leaves open is refused."""

from __future__ import annotations

import json
from typing import Any

from policytree.exceptions import InputError

# Raised by code that takes a value of JSON for another kind of value than it is.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


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


def parse_saved(text: str | bytes, what: str) -> Any:
    """The value of a JSON text as :func:`parse_json` reads it, or one sentence about ``what``, such as "saved tree"."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise InputError(f"The {what} is not valid JSON ({why}); save it again with to_json.") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"the field {key!a} stands twice")
        data[key] = value
    return data
