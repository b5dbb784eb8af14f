"""Mutants of JSON with a right checksum: the work of somebody who means harm, or of a program with a fault."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from policytree.exceptions import InputError
from policytree.serialization.checksums import CHECKSUM, text_with_checksum

ODD: list[Any] = [
    None, True, False, 0, 1, -1, -(2**31), 2**31, 2**63, 10**15, 10**400, -(10**400), 0.5, -0.0, 1e308, -1e308, 5e-324,
    "", "x", "1", "../../etc/passwd", "/dev/zero", "NaN", "Infinity", "nul\0", "\ud800", "\u202ex", "<b>", "[bold]",
    "a" * 5000, "1" * 5000, [], [[]], {}, {"type": "float", "value": "NaN"}, {"type": "date"}, [0], [None] * 3,
    {"type": "numpy", "dtype": "int64", "value": 3},
]  # fmt: skip


def places(data: Any, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all values in nested lists and objects, the root apart."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(data: Any, path: tuple) -> Any:
    for key in path:
        data = data[key]
    return data


def mutant(data: dict[str, Any], rng: np.random.Generator) -> str:
    """One mutant of an object, as text."""
    data = copy.deepcopy({key: value for key, value in data.items() if key != CHECKSUM})
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        change(data, rng)
    how = rng.integers(30)
    try:
        text = text_with_checksum(data)
    except (ValueError, RecursionError):  # NaN
        text = json.dumps(data)
    if how == 0:
        text = text[: int(rng.integers(len(text)))]
    elif how == 1:
        text = text.replace("{", '{"version": 2, "version": 1, ', 1)
    elif how == 2:
        at_ = int(rng.integers(len(text)))
        text = text[:at_] + "[" * 100_000 + text[at_:]
    elif how == 3:
        text = text.replace("0", str(rng.choice(["NaN", "Infinity", "-Infinity", "1" * 5000, "1e999", "01"])), 1)
    return text


def change(data: Any, rng: np.random.Generator) -> None:
    """Change one value in its place."""
    found = list(places(data))
    if not found:
        return
    # by depth first, so that long lists of numbers do not get all changes
    depth = int(rng.choice(sorted({len(path) for path in found})))
    path = [path for path in found if len(path) == depth][int(rng.integers(sum(len(p) == depth for p in found)))]
    parent, key = at(data, path[:-1]), path[-1]
    value, how = parent[key], int(rng.integers(9))
    if how == 0:
        del parent[key]
    elif how == 1 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif how == 2:
        other = found[int(rng.integers(len(found)))]
        if other[: len(path)] != path and path[: len(other)] != other:
            there = at(data, other[:-1])
            parent[key], there[other[-1]] = copy.deepcopy(there[other[-1]]), copy.deepcopy(value)
    elif how == 3 and type(value) in (int, float):
        point = float(value) if abs(value) < 2**1000 else 0.5
        parent[key] = [-value, value + 1, value - 1, value * 2, value * 10**6, str(value), point, float("nan")][
            rng.integers(8)
        ]
    elif how == 4:
        parent[key] = [value] if rng.random() < 0.5 else {"value": value}
    elif how == 5 and isinstance(value, list):
        parent[key] = value[::-1] if rng.random() < 0.5 else value * 2
    else:
        parent[key] = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])


def outcome(use: Callable[[], Any]) -> Any:
    """Return a use's result, or the sentence of its InputError; any other exception is the test's failure."""
    try:
        return use()
    except InputError as error:
        said = str(error)
        assert said.strip().endswith(".") and "\n" not in said and len(said) < 2000, said
        return None
