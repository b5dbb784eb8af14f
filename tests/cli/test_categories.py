"""Columns of text that are split into groups of levels: `--categories` of every command, and who cannot do that."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree import LowCostTreeClassifier, Study
from policytree.cli.first_checks import CATEGORIES
from policytree.exceptions import InputError
from policytree.on_dask import DaskPolicyTree
from policytree.problem.split_columns import GROUPS, LEVELS
from policytree.study import Rewards
from tests.cli.running import design, refused, run

ROLES = ("--treatment", "arm", "--outcome", "y", "--direction", "maximize")
GAIN = ["north", "east", "isle"]


def regions(rare: int = 0) -> pd.DataFrame:
    """Six regions, of three of which the drug helps; and a seventh of a few people."""
    rng = np.random.default_rng(4)
    n = 480
    region = np.array(["north", "south", "east", "west", "isle", "coast"])[np.arange(n) % 6]
    region[:rare] = "port"
    arm = rng.choice(["drug", "usual"], n)
    y = rng.normal(size=n).round(2) + np.where(np.isin(region, GAIN), 3.0, -3.0) * (arm == "drug")
    return pd.DataFrame({"region": region, "age": rng.integers(20, 80, n), "arm": arm, "y": y})


@pytest.fixture
def table(tmp_path):
    def write(rare: int = 0):
        regions(rare).to_csv(tmp_path / "regions.csv", index=False)
        return tmp_path / "regions.csv"

    return write


def test_a_design_by_groups_finds_the_regions(table, tmp_path):
    options = ("--no-value", "--max-depth", "1", "--cv", "2")
    code, out, err = design(table(), tmp_path / "out", *options, "--categories", "groups")
    assert code == 0, err
    rule = (tmp_path / "out" / "report.txt").read_text()
    assert "region is one of coast, south, west" in " ".join(rule.split())
    code, out, err = run("predict", tmp_path / "out" / "tree.json", table())
    assert code == 0, err
    given = out.splitlines()
    assert all(line.endswith("drug") == (line.split(",")[0] in GAIN) for line in given[1:])
    code, out, err = design(table(), tmp_path / "single", *options)
    assert code == 0, err
    report = " ".join((tmp_path / "single" / "report.txt").read_text().split())
    assert "region: one level against the rest; categories='groups' searches groups" in report


@pytest.mark.parametrize("command", ["check", "design"])
def test_levels_too_rare_for_a_group_are_told(table, tmp_path, command):
    """Those are told with their rows; one level at a time needs no such care, and levels of 80 rows neither."""
    quick = ("--no-value", "--max-depth", "1", "--cv", "2", "--stability", "0", "-o", tmp_path / "out")
    more = quick if command == "design" else ()

    def said(rare, *ways):
        code, out, err = run(command, table(rare), *ROLES, *ways, *more)
        assert code == 0, err
        return " ".join(out.split())

    groups = ("--categories", "groups")
    words = (
        "Warning: region has 1 of 7 levels too rare to be placed in a group ('port' with 5 rows; 16 rows, 8 of every "
        "treatment would be enough)."
    )
    assert words in said(5, *groups)
    assert "too rare" not in said(0, *groups)
    assert "too rare" not in said(5)


def test_a_level_of_one_arm_is_rare_however_many_rows_it_has(table):
    frame = regions()
    frame.loc[(frame["region"] == "coast") & (frame["arm"] == "drug"), "arm"] = "usual"
    path = table()
    frame.to_csv(path, index=False)
    code, out, err = run("check", path, *ROLES, "--categories", "groups")
    assert code == 0, err
    assert "('coast' with 80 rows; 16 rows, 8 of every treatment would be enough)" in " ".join(out.split())


def test_explain_counts_the_questions_about_groups(table):
    asked = ("explain", table(), "--treatment", "arm", "--outcome", "y", "--max-depth", "2", "--json")
    code, out, err = run(*asked)
    assert code == 0, err
    single = json.loads(out)["cuts"]
    code, out, err = run(*asked, "--categories", "groups")
    assert code == 0, err
    assert json.loads(out)["cuts"] - single == (2**5 - 1) - 6


@pytest.mark.parametrize("command", ["check", "design", "explain"])
def test_other_ways_are_refused(table, command):
    asked = (command, table(), "--treatment", "arm", "--outcome", "y", "--categories", "all")
    refused(run(*asked), "--categories must be levels or groups; got 'all'.")
    assert set(CATEGORIES) == {LEVELS, GROUPS}


def test_who_makes_no_groups_says_so():
    dask = pytest.importorskip("dask.dataframe")
    frame = regions().assign(usual=0.0, drug=1.0)
    rows = dask.from_pandas(frame, npartitions=2)
    with pytest.raises(InputError, match=r"categories is not available .* on dask; leave it at 'levels', or fit"):
        study = Study(rows, outcome=Rewards(["usual", "drug"]), covariates=["region", "age"])
        DaskPolicyTree(max_depth=1, categories="groups").fit(study)
    with pytest.raises(InputError, match=r"categorical_tests must be 'one_vs_rest' or 'multiway'; got 'groups'"):
        LowCostTreeClassifier(categorical_tests="groups").fit(frame[["region"]], frame["arm"])
