"""The README's examples of rankings and budgets print what stands below them."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
NUMBER = re.compile(r"-?\d+\.\d+|inf")


@pytest.mark.parametrize("title", ["Whom first", "Trees within budgets"])
def test_examples_print_what_stands_below_them(title):
    """Words to the letter; numbers within a hundredth, for learners round otherwise on other machines."""
    section = README.read_text(encoding="utf-8").partition(f"## {title}")[2].partition("\n## ")[0]
    code, shown = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("python", "text"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    printed = re.sub(r" +\n", "\n", out.getvalue())
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, shown)]
    assert len(numbers[1]) >= 20
    assert numbers[0] == pytest.approx(numbers[1], abs=0.01)
