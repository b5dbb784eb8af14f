"""Public names: each has one home, and a page of the API that lists it there."""

from __future__ import annotations

import importlib

import pytest

import policytree
from tests.support.api_pages import HOMES, PAGES, listed

#: Of all public packages together. The aim is fewer than 90 (issue 53, item 4); nobody raises it.
MOST_NAMES = 89


def names_of(home: str) -> set[str]:
    return {*importlib.import_module(home).__all__} - {"__version__"}


def test_few_names_stand_at_the_top():
    """A study from its table to the report; every further question has its package."""
    assert len(names_of("policytree")) < 30
    assert max(len(names_of(home)) for home in HOMES) < 30


def test_a_name_has_one_home():
    seen: dict[str, str] = {}
    for home in HOMES:
        for name in names_of(home):
            assert name not in seen, f"{name} is in {seen.get(name)} and {home}"
            seen[name] = home


def test_public_names_are_few():
    """Exports of the packages, all counted; classes that functions return need no import and are no part of them."""
    counts = {home: len(names_of(home)) for home in HOMES}
    assert sum(counts.values()) <= MOST_NAMES, counts


@pytest.mark.parametrize("home", HOMES)
def test_pages_list_what_a_package_exports_and_nothing_else(home):
    at_home = {name for module, name in listed() if module == home}
    assert at_home == names_of(home)


def test_the_first_page_names_every_package():
    table = (PAGES / "index.rst").read_text(encoding="utf-8").partition(".. toctree::")[0]
    assert [home for home in HOMES if f"``{home}``" not in table] == []
    assert table.count("   * - ``policytree") + table.count("``, ``policytree") == len(HOMES)


def test_every_page_is_on_the_first_one():
    entries = (PAGES / "index.rst").read_text(encoding="utf-8").partition(".. toctree::")[2].split()[2:]
    assert sorted(entries) == sorted(page.stem for page in PAGES.glob("*.rst") if page.stem != "index")


def test_results_need_no_import():
    """Their page says where they are defined; no public package exports them."""
    results = {name for module, name in listed() if module not in HOMES}
    assert not results & {name for home in HOMES for name in names_of(home)}


def test_packages_are_attributes_before_anybody_imports_them():
    for home in HOMES[1:]:
        name = home.partition(".")[2]
        assert policytree.__getattr__(name) is importlib.import_module(home)
        assert name in dir(policytree)
