"""One spelling in prose: British, with -ise; code, options and titles of cited works keep theirs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEMS = (
    "penal", "regular", "random", "standard", "normal", "general", "recogn", "organ", "stabil", "optim",
    "summar", "categor", "character", "emphas", "initial", "personal", "util", "visual", "winsor",
)  # fmt: skip
AMERICAN = re.compile(
    r"\b(behaviors?|behavioral|analyz\w+|catalyz\w+|(?:un)?cent(?:er|ers|ered|ering)|colors?|colored"
    r"|favor\w*|labor|neighbor\w*|label(?:ed|ing)|model(?:ed|ing|er)|travel(?:ed|ing)|cancel(?:ed|ing)|fulfill"
    r"|defense|gray|catalogs?"
    r"|(?:maxim|minim)iz(?:es|ed|ing|ation)|"  # "maximize" and "minimize" are values of an argument
    rf"(?:un)?(?:{'|'.join(STEMS)})i(?:ze|zes|zed|zing|zer|zers|zation|zations))\b",
    re.IGNORECASE,
)
CODE = re.compile(
    r"``[^`]*``|^\s*\w+ : .*$|:[a-z:]+:`[^`]*`|`[^`]*`_?|--[\w-]+|\"[\w -]*\"|'[\w -]*'|\{[^{}]*\}"
    r"|\b\w+(?:[_.=(]\w+)+|<[^<>]*>",
    re.MULTILINE,
)
CITED = re.compile(r"\((?:19|20)\d\d[a-z]?\)|\*[A-Z][^*]*\*|(?:19|20)\d\d \(|doi|arXiv|https?:")


def american(prose: str) -> list[str]:
    """Words of American spelling in paragraphs that cite nothing."""
    paragraphs = (part for part in re.split(r"\n\s*\n|\n\s*[-*] ", prose) if not CITED.search(part))
    return [found[0] for part in paragraphs for found in AMERICAN.finditer(CODE.sub(" ", part))]


def without_blocks(text: str) -> str:
    """Text of Markdown or reStructuredText without indented code, directives and fences."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"(?m)^(?: {4}|\t).*$", "", text)
    return re.sub(r"(?m)^\s*(?:\.\. |:\w+:).*$", "", text)


def sentences(path: Path) -> Iterator[str]:
    """Texts of a module that people read: docstrings, and constants of several words; comments of a page's script."""
    text = path.read_text(encoding="utf-8")
    if "scripts" in path.parts:
        yield "\n".join(line[1:] for line in text.splitlines() if line.startswith("#"))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 2:
            yield re.sub(r"(?m)^\s*(?:>>>|\.\.\.) .*$", "", node.value)


PAGES = sorted([*(ROOT / "docs").glob("*.rst"), *(ROOT / "docs" / "api").glob("*.rst"), *ROOT.glob("*.md")])
MODULES = sorted([
    *(ROOT / "policytree" / "report").rglob("*.py"), *(ROOT / "policytree" / "cli").rglob("*.py"),
    *(ROOT / "policytree" / "evaluation").rglob("*.py"), *(ROOT / "policytree" / "study_check").rglob("*.py"),
    *(ROOT / "docs" / "scripts").rglob("*.py"),
])  # fmt: skip


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_are_spelt_the_british_way(path):
    assert american(without_blocks(path.read_text(encoding="utf-8"))) == []


def test_sentences_of_the_report_and_of_commands_are_spelt_the_british_way():
    found = {str(path.relative_to(ROOT)): words for path in MODULES for s in sentences(path) if (words := american(s))}
    assert found == {}


def test_american_words_are_found_and_code_is_not():
    assert american("We analyze the behavior of a randomized center.") == [
        "analyze",
        "behavior",
        "randomized",
        "center",
    ]
    assert american("Say ``--randomized`` or `center=True`; the colour of regularised models.") == []
    assert american("Zhou (2023). Policy learning: generalization.") == []
