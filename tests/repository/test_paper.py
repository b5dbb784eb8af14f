"""The paper quotes `benchmarks/results`, cites what its bibliography holds, and shows figures that exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PAPER = Path(__file__).parents[2] / "paper"
TEXT = (PAPER / "paper.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def figures() -> dict:
    return runpy.run_path(str(PAPER / "figures.py"))


def test_the_numbers_are_those_of_the_results(figures):
    said, found = " ".join(TEXT.split()), figures["numbers"]()
    assert f"{found['STreeD ratio']} times as long for STreeD ({found['STreeD both']} cases)" in said
    assert f"{found['ConTree ratio']} times for ConTree ({found['ConTree both']})" in said
    assert f"{found['DL8.5 ratio']} times for DL8.5 ({found['DL8.5 both']})" in said
    *most, last = (found[f"{peer} only ours"] for peer in ("STreeD", "ConTree", "DL8.5", "gosdt"))
    assert f"In {', '.join(most)} and {last} further cases" in said
    assert f"in {found['only theirs']} cases only a peer's" in said
    assert f"cover in {found['repeated coverage']} with repeated cross-fitting" in said
    assert f"in {found['single coverage']} with a single one" in said
    assert f"({found['repeated runs']} each)" in said
    assert f"reach {found['greedy']} of the reward" in said
    assert found["policy cases"] == "10"


def test_figures_are_drawn(figures, tmp_path):
    figures["draw_speed"](figures["exact_trees"](), tmp_path / "speed.png")
    figures["draw_coverage"](figures["coverage"](), tmp_path / "coverage.png")
    for path in re.findall(r"\]\((figures/\w+\.png)\)", TEXT):
        assert (PAPER / path).is_file() and (tmp_path / Path(path).name).is_file()


def test_what_is_cited_is_in_the_bibliography():
    entries = re.findall(r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(re.findall(r"@(\w+)", TEXT.partition("# Summary")[2])) == set(entries)
