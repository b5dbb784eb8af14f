"""The README's examples that show what they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(r"```python\n((?:(?!```).)*?)```\n\n```text\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.slow
def test_examples_print_what_the_readme_shows(tmp_path, monkeypatch):
    """Word for word; numbers within a tenth, for other machines round otherwise."""
    monkeypatch.chdir(tmp_path)
    examples = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert examples
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
        out = printed.getvalue()
        assert NUMBER.sub("#", out) == NUMBER.sub("#", shown)
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (out, shown)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1)
    assert (tmp_path / "confounding.png").is_file()
