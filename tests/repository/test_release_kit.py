"""Files that describe the release to others say the same: one version, one licence, one address, the same systems."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import policytree

ROOT = Path(__file__).parents[2]
SYSTEMS = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def citation() -> dict:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def codemeta() -> dict:
    return json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))


def workflow(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def test_one_version(citation, codemeta):
    assert citation["version"] == codemeta["version"] == policytree.__version__


def test_one_date(citation, codemeta):
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## {re.escape(policytree.__version__)} \((\d{{4}}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    assert dated is not None, "the newest release has no date in CHANGELOG.md"
    assert dated[1] == str(citation["date-released"]) == codemeta["datePublished"]


def test_one_licence(project, citation, codemeta):
    assert project["license"] == citation["license"] == codemeta["license"].rpartition("/")[2] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")


def test_one_description(project, citation, codemeta):
    assert project["description"] == codemeta["description"]
    assert project["keywords"] == citation["keywords"] == codemeta["keywords"]
    assert [project["authors"][0]["name"]] == [each["name"] for each in citation["authors"]]
    assert project["authors"][0]["name"] == codemeta["author"][0]["name"]


def test_one_address(project, citation, codemeta):
    home = project["urls"]["Source"]
    assert home == citation["repository-code"] == codemeta["codeRepository"]
    assert codemeta["issueTracker"] == project["urls"]["Issues"]
    assert all(project["urls"][name].startswith(home) for name in ("Homepage", "Issues", "Changelog"))


def test_classifiers_are_what_is_tested(project):
    """Every Python and every system of the classifiers is in the matrix of the tests, and no other."""
    matrix = workflow("ci.yml")["jobs"]["tests"]["strategy"]["matrix"]
    pythons = {*matrix["python"], *(extra["python"] for extra in matrix["include"])}
    systems = {*matrix["os"], *(extra["os"] for extra in matrix["include"])}
    named = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    assert {found[1] for each in project["classifiers"] if (found := named.fullmatch(each))} == pythons
    systems = {f"Operating System :: {SYSTEMS[each.partition('-')[0]]}" for each in systems}
    assert {each for each in project["classifiers"] if each.startswith("Operating System")} == systems
    assert project["requires-python"] == f">={min(pythons, key=lambda each: int(each.partition('.')[2]))}"
    assert sorted(pythons) == workflow("release.yml")["jobs"]["wheels"]["strategy"]["matrix"]["python"]


def test_classifiers_are_in_order(project):
    assert project["classifiers"] == sorted(project["classifiers"])


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT.md", "SECURITY.md"])
def test_what_venues_ask_for_is_there(name):
    assert len((ROOT / name).read_text(encoding="utf-8").split()) > 100
