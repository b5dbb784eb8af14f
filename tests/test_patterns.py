"""Every regular expression of the package on long hostile texts: the work is proportional to the text, never its square."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import policytree

PACKAGE = Path(policytree.__file__).parent
FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
LENGTH = 100_000
# Of the processor, in seconds. In proportion to the length, 100,000 letters take some .01 s; a pattern whose work grows
# with the square takes 100,000 times longer a letter than one letter alone, several seconds on any machine.
MOST = 1.0
KINDS = ["a", "1", "n1", " ", "_", ".", "-", "\n", "é", "Aa", "0_", "1.", ",1"]


def patterns() -> Iterator[tuple[str, Any]]:
    """Where each pattern stands, and the compiled pattern; the parts that are filled in are "x" where they vary."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func
            of_re = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re"
            if of_re and called.attr in FUNCTIONS or isinstance(called, ast.Name) and called.id == "matching":
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
    """Long texts that a pattern may stumble over."""
    own = letters_of(pattern)
    rng = np.random.default_rng(0)
    kinds = [*KINDS, *own, *(a + b for a, b in zip(own, own[1:], strict=False))]
    for kind in kinds:
        yield (kind * LENGTH)[:LENGTH]
    for _ in range(3):
        yield "".join(rng.choice(own, LENGTH).tolist())


FOUND = list(patterns())


def test_all_patterns_are_found():
    """Names of columns, numbers, dates, files of jobs: more than 25, and every call of re with a text among them."""
    assert len(FOUND) > 25
    assert {"study_check/names.py", "serialization/labels.py", "encoded/plan.py"} <= {
        where.split(":")[0] for where, _ in FOUND
    }


@pytest.mark.parametrize(("where", "pattern"), FOUND, ids=[where for where, _ in FOUND])
def test_work_is_proportional_to_the_text(where, pattern):
    for text in texts(pattern):
        for end in ("", "!", "\n"):
            given = text + end if isinstance(pattern.pattern, str) else (text + end).encode("utf-8", "replace")
            for apply in (pattern.match, pattern.fullmatch, lambda t: sum(1 for _ in pattern.finditer(t))):
                start = time.process_time()
                apply(given)
                assert time.process_time() - start < MOST, f"{where}: {text[:6]!r} ... {end!r}"
