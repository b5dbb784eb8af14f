"""Links of the README lead somewhere, and the longer examples of the site print what stands below them."""

import contextlib
import io
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README, EXAMPLES = ROOT / "README.md", ROOT / "docs" / "examples.rst"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?|inf")


def example(title: str) -> tuple[str, str]:
    """Code of a section, and what it says that this prints."""
    section = EXAMPLES.read_text(encoding="utf-8").partition(f"\n{title}")[2]
    section = re.split(r"\n-{5,}\n", section, maxsplit=2)[1]
    found = [
        re.search(rf"\.\. code-block:: {kind}\n\n((?:   .*\n|\n)*)", section)[1] for kind in ("python", "text")
    ]  # fmt: skip
    code, shown = (textwrap.dedent(block).strip("\n") + "\n" for block in found)
    return code, shown


def printed_by(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "examples.rst", "exec"), {})
    return re.sub(r" +\n", "\n", out.getvalue())


def numbers_in(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("title", ["Whom first", "Tests that cost money", "Trees within budgets"])
def test_examples_print_what_stands_below_them(title):
    """Words to the letter; numbers within a hundredth, for learners round otherwise on other machines."""
    code, shown = example(title)
    printed = printed_by(code)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    assert len(numbers_in(shown)) >= 20
    assert numbers_in(printed) == pytest.approx(numbers_in(shown), abs=0.01)


@pytest.mark.slow
def test_how_fragile_it_is(tmp_path, monkeypatch):
    """Words to the letter; numbers within a tenth."""
    monkeypatch.chdir(tmp_path)
    code, shown = example("How fragile is it?")
    printed = printed_by(code)
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    assert numbers_in(printed) == pytest.approx(numbers_in(shown), rel=0.1)
    assert (tmp_path / "confounding.png").is_file()


def test_the_readme_leads_somewhere():
    text = README.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        compile(code, "README.md", "exec")


def test_the_published_chain_prints_what_the_readme_shows():
    """Words to the letter; numbers within a twentieth, or 50 dollars."""
    section = README.read_text(encoding="utf-8").partition("### Weights, weighted solvers, guesses")[2]
    code, after = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", section, re.DOTALL).groups()
    printed, shown = (text.replace(",", "") for text in (printed_by(code), textwrap.dedent(after)))
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    assert numbers_in(printed) == pytest.approx(numbers_in(shown), rel=0.05, abs=50)


def test_five_lines_print_what_the_landing_page_shows():
    """Words to the letter; numbers within a twentieth, or 50 dollars."""
    pytest.importorskip("causaldata")
    snippets = ROOT / "docs" / "snippets"
    printed = printed_by((snippets / "five_lines.py").read_text(encoding="utf-8"))
    shown = (snippets / "five_lines.txt").read_text(encoding="utf-8")
    assert NUMBER.sub("#", printed.replace(",", "")) == NUMBER.sub("#", shown.replace(",", ""))
    assert numbers_in(printed.replace(",", "")) == pytest.approx(numbers_in(shown.replace(",", "")), rel=0.05, abs=50)


def test_every_test_that_guards_a_promise_exists():
    page = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+/(?:[a-z_]+\.py)?)`", page)
    assert len(named) > 50
    assert [path for path in named if not (ROOT / "tests" / path).exists() and not (ROOT / path).exists()] == []
