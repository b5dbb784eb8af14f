"""`policytree explain`: the table of engines, and those of a study."""

from __future__ import annotations

import json

import pytest

from policytree.solvers.exact.engine_table import ENGINES
from tests.cli.running import refused, run


def test_explain_prints_the_table():
    code, out, err = run("explain")
    assert code == 0, err
    words = " ".join(out.split())
    assert all(engine.name in words for engine in ENGINES)
    assert "wilt 0.22 s with, 1.07 s without" in words
    code, out, _ = run("explain", "--json")
    told = json.loads(out)["engines"]
    assert code == 0
    assert [(each["name"], each["takes"]) for each in told] == [(each.name, each.takes) for each in ENGINES]


@pytest.mark.parametrize(
    ("options", "engines"),
    [
        (["--max-depth", 2], ["terminal solver"]),
        (["--max-depth", 3], ["terminal solver", "depth-first search"]),
        (["--regularization", 0.1], ["terminal solver", "depth-first search", "subsets", "row duals"]),
        (["--covariates", "age"], ["interval DP"]),
    ],
)
def test_explain_names_the_engines_of_a_study(csv, options, engines):
    asked = ("explain", csv, "--treatment", "arm", "--outcome", "y", *options)
    code, out, err = run(*asked, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [each["name"] for each in told["engines"]] == engines
    assert told["rows"] == 240 and told["treatments"] == 2
    code, out, err = run(*asked)
    assert code == 0, err
    words = " ".join(out.split())
    assert "The problem rows 240" in words and "Engines that may work on it" in words
    assert all((engine.name in words) == (engine.name in engines) for engine in ENGINES)


def test_explain_takes_a_built_in_study():
    code, out, err = run("explain", "--dataset", "rand-hie", "--max-depth", 4)
    assert code == 0, err
    assert "no limit" not in out and "16,154" in out


def test_explain_refuses(csv):
    refused(run("explain", csv), "--treatment and --outcome are missing")
    refused(run("explain", csv, "--dataset", "nsw"), "not both")
