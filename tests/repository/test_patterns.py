"""Every regular expression of the package on hostile texts: the work is in proportion to the text."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policytree

PACKAGE = Path(policytree.__file__).parent
METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
# Length of a text, and the most seconds of the processor that it may take. Work in proportion to the text takes some
# .01 s for 100,000 letters; work that grows with the square takes several seconds on any machine, and work that grows
# with the cube .2 s for 1,000 letters.
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
EVERYTHING = "".join(SOURCES.values())
STEPS = [(1_000, 0.1), (10_000, 0.1), (100_000, 1.0)]
KINDS = ["a", "1", "n1", " ", "_", ".", "-", "\n", "é", "Aa", "1.", ",1"]


def patterns() -> Iterator[tuple[str, Any]]:
    """Where each pattern stands, and the compiled pattern; the parts that are filled in are "x" where they vary."""
    for path, source in SOURCES.items():
        if "re." not in source and "matching(" not in source:
            continue
        tree = ast.parse(source)
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func
            of_re = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re"
            if (of_re and called.attr in ("compile", *METHODS)) or (
                isinstance(called, ast.Name) and called.id == "matching"
            ):
                flags = re.DOTALL if "DOTALL" in ast.unparse(node) else 0
                flags |= re.MULTILINE if "MULTILINE" in ast.unparse(node) else 0
                text = text_of(node.args[0], module)
                if text is not None:
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno}", re.compile(text, flags)


def text_of(node: ast.expr, module: str) -> Any:
    """The pattern that an expression states; None if it states none, as an argument does."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        names = vars(importlib.import_module(module))
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(part.value)
                continue
            known = (
                names.get(part.value.id)
                if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)
                else "x"
            )
            parts.append(known if isinstance(known, str) else "x")
        return "".join(parts)
    return None


def letters_of(pattern: Any) -> list[str]:
    """The letters that stand in a pattern, and one of each of its classes."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    plain = (
        re.sub(r"\\([AbBZ])", "", text).replace(r"\d", "7").replace(r"\w", "w").replace(r"\s", " ").replace(r"\D", "d")
    )
    return sorted(set(plain))


def texts(pattern: Any) -> Iterator[str]:
    """Kinds of texts that a pattern may stumble over, to be repeated: the shortest first."""
    own = letters_of(pattern)
    yield from dict.fromkeys([*KINDS, *(a + b for a, b in itertools.pairwise(own))])
    rng = np.random.default_rng(0)
    yield from ("".join(rng.choice(own, 97).tolist()) for _ in range(3))


def used_methods(where: str, source: str) -> tuple[str, ...]:
    """How a pattern is applied: by the method of re that takes it, or by those of its name."""
    line = where.split(":")[1]
    statement = source.splitlines()[int(line) - 1]
    direct = [method for method in METHODS if f"re.{method}(" in statement]
    names = re.findall(r"\b[A-Z_]{3,}\b", statement.split("=")[0])
    by_name = [m for m in METHODS for name in names if re.search(rf"\b{name}\.{m}\b", EVERYTHING)]
    return tuple(direct or by_name or METHODS)


FOUND = list(patterns())


def test_all_patterns_are_found():
    """Names of columns, numbers, dates, files of jobs: whatever stands as a text in a call of re."""
    assert len(FOUND) > 20
    files = {where.split(":")[0] for where, _ in FOUND}
    assert {"study_check/names.py", "serialization/labels.py", "encoded/plan.py", "common/safe_text.py"} <= files


@pytest.mark.parametrize(("where", "pattern"), FOUND, ids=[where for where, _ in FOUND])
def test_work_is_proportional_to_the_text(where, pattern):
    applied = used_methods(where, SOURCES[PACKAGE / where.split(":")[0]])
    for kind in texts(pattern):
        for length, most in STEPS if kind in KINDS or len(kind) > 2 else STEPS[:2]:
            text = (kind * length)[:length]
            for given in (text, text + "!", text + "\n"):
                given = given if isinstance(pattern.pattern, str) else given.encode("utf-8", "replace")
                for method in applied:
                    more = (given[:0],) if method == "sub" else ()
                    start = time.process_time()
                    found = getattr(pattern, method)(*more, given)
                    if method == "finditer":
                        assert sum(1 for _ in found) >= 0
                    spent = time.process_time() - start
                    assert spent < most, f"{where}, {method}: {kind[:9]!r} to {length} letters, {spent:.2f} s"
