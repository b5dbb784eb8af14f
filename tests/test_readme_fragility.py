"""The README's example of sensitivity and stability prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.slow
def test_how_fragile_it_is(tmp_path, monkeypatch):
    """Words to the letter; numbers within a tenth, for learners round otherwise on other machines."""
    monkeypatch.chdir(tmp_path)
    section = README.read_text(encoding="utf-8").partition("## How fragile is it?")[2].partition("\n## ")[0]
    code, shown = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("python", "text"))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    printed = out.getvalue()
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1)
    assert (tmp_path / "confounding.png").is_file()
