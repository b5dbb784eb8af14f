"""Schemas of JSON from files: checks of values, which name the first field that is wrong.

A check takes a value and its name in a sentence ("field 'rows' of the manifest"); it returns what the value stands for,
or raises InputError. Nothing that is read costs more memory than its text before it was checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from policytree.exceptions import InputError, quoted
from policytree.serialization.labels import check_text, float_from_json, label_from_json

Check = Callable[[Any, str], Any]
LARGEST = 1 << 53  # whole numbers up to here are the same to every reader of JSON


def refuse(name: str, wanted: str, value: Any) -> InputError:
    """The sentence about a value that is not as wanted."""
    return InputError(f"{name[0].upper()}{name[1:]} must be {wanted}; it is {quoted(value)}.")


def anything(value: Any, name: str) -> Any:
    """Whatever JSON holds; for what is compared and nothing else."""
    return value


def whole(low: int = 0, high: int = LARGEST) -> Check:
    """A whole number between two others, which may be reached."""

    def check(value: Any, name: str) -> int:
        if type(value) is not int or not low <= value <= high:
            raise refuse(name, f"a whole number from {low} to {high}", value)
        return value

    return check


def real(low: float = -sys.float_info.max, high: float = sys.float_info.max) -> Check:
    """A finite number between two others, which may be reached; as float."""

    def check(value: Any, name: str) -> float:
        if type(value) not in (int, float) or not low <= value <= high:
            raise refuse(name, f"a number from {low:g} to {high:g}", value)
        return float(value)

    return check


def named_float(value: Any, name: str) -> float:
    """A number, or the name of one that JSON lacks."""
    try:
        return float_from_json(value, name)
    except InputError as error:
        raise refuse(name, "a number, or one of NaN, Infinity, -Infinity", value) from error


def flag(value: Any, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise refuse(name, "true or false", value)
    return value


def text(value: Any, name: str) -> str:
    """Text that files and terminals can hold."""
    if not isinstance(value, str):
        raise refuse(name, "text", value)
    return check_text(value)


def any_label(value: Any, name: str) -> Any:
    """A label as :func:`policytree.serialization.labels.label_to_json` describes it."""
    try:
        return label_from_json(value)
    except InputError as error:
        raise InputError(f"{name[0].upper()}{name[1:]} is no label: {error}") from error


def one_of(*allowed: str) -> Check:
    """One of some texts."""

    def check(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise refuse(name, " or ".join(map(repr, allowed)), value)
        return value

    return check


def matching(pattern: str, wanted: str) -> Check:
    """Text of a form, which ``wanted`` describes; the name of a file that must stay in its folder, for example."""
    form = re.compile(pattern)

    def check(value: Any, name: str) -> str:
        if not isinstance(value, str) or not form.fullmatch(value):
            raise refuse(name, wanted, value)
        return value

    return check


def optional(inner: Check) -> Check:
    """Null, or what another check takes."""
    return lambda value, name: None if value is None else inner(value, name)


def many(inner: Check, least: int = 0, most: int | None = None) -> Check:
    """A list of values of one kind."""

    def check(value: Any, name: str) -> list:
        if not isinstance(value, list) or not least <= len(value) <= (len(value) if most is None else most):
            size = "" if not least and most is None else f" of {least}" if least == most else f" of at least {least}"
            raise refuse(name, f"a list{size}", value)
        out: list = []
        try:
            out.extend(inner(each, name) for each in value)
        except InputError:  # said again with the place, of which names are not made for every entry
            inner(value[len(out)], f"entry {len(out)} of {name}")
            raise
        return out

    return check


def mapping(key: Check, inner: Check) -> Check:
    """An object of any fields, whose names and values are of one kind each."""

    def check(value: Any, name: str) -> dict:
        if not isinstance(value, dict):
            raise refuse(name, "an object", value)
        return {key(k, f"a name in {name}"): inner(v, f"field {k!a} of {name}") for k, v in value.items()}

    return check


def record(fields: Mapping[str, Check], may: Mapping[str, Check] | None = None) -> Check:
    """An object with these fields; those that ``may`` be there are None where they lack. Others are left out."""

    def check(value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refuse(name, "an object", value)
        lacking = [key for key in fields if key not in value]
        if lacking:
            raise InputError(f"{name[0].upper()}{name[1:]} lacks the field(s) {', '.join(map(repr, lacking))}.")
        found = {key: inner(value[key], f"field {key!r} of {name}") for key, inner in fields.items()}
        more = {key: optional(inner)(value.get(key), f"field {key!r} of {name}") for key, inner in (may or {}).items()}
        return found | more

    return check


def refuse_repeated(values: Iterable[Hashable], what: str) -> None:
    """Refuse a value that stands twice; ``what`` begins the sentence, such as "The manifest has two files"."""
    seen: set[Hashable] = set()
    for value in values:
        if value in seen:
            raise InputError(f"{what} {quoted(value)}; every one needs its own.")
        seen.add(value)
