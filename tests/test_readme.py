"""The README's examples of rankings, budgets and tests that cost money print what stands below them."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
NUMBER = re.compile(r"-?\d+\.\d+|inf")


def shown_and_printed(section):
    """What the README shows below the example of a section, and what the example prints."""
    text = README.read_text(encoding="utf-8").partition(f"## {section}")[2].partition("\n## ")[0]
    code, shown = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1] for kind in ("python", "text"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    return shown, out.getvalue()


def test_whom_first_and_what_a_budget_buys():
    """Words to the letter; numbers within a hundredth, for learners round otherwise on other machines."""
    shown, printed = shown_and_printed("Whom first")
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, shown)]
    assert len(numbers[1]) > 20
    assert numbers[0] == pytest.approx(numbers[1], abs=0.01)


def test_tests_that_cost_money():
    shown, printed = shown_and_printed("Tests that cost money")
    assert printed == shown
