"""Packages whose names are imported on first use."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import policytree
from policytree.common.lazy import homes_in, lazy_names
from tests.support.api_pages import HOMES

EAGER = {"policytree.datasets", "policytree.exceptions"}  # they define their names themselves


def test_names_come_from_the_stub(tmp_path):
    stub = tmp_path / "__init__.pyi"
    stub.write_text(
        '"""Text."""\nfrom fractions import Fraction as Fraction\nfrom math import pi as pi\nimport os\nx: int\n'
    )
    assert homes_in(stub) == {"Fraction": "fractions", "pi": "math"}
    load, listed, names = lazy_names("some", str(tmp_path / "__init__.py"))
    assert names == listed() == ["Fraction", "pi"]
    assert load("pi") == pytest.approx(3.14159, abs=1e-5)
    with pytest.raises(AttributeError, match="module 'some' has no attribute 'os'"):
        load("os")


@pytest.mark.parametrize("home", [home for home in HOMES if home not in EAGER])
def test_names_are_defined_where_the_stub_says(home):
    """Not handed on by another module, which would have to be imported for them."""
    package = importlib.import_module(home)
    for name, home in homes_in(Path(package.__file__).with_suffix(".pyi")).items():
        item = getattr(package, name)
        if home == package.__name__:
            continue  # a package within this one
        if hasattr(item, "__module__"):
            assert item.__module__ == home, name
        assert name in dir(package) and name in package.__all__


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'policytree' has no attribute 'Forest'"):
        policytree.Forest  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Forest'"):
        from policytree import Forest  # noqa: F401


def test_the_package_alone_is_cheap():
    code = "import sys, policytree; print([m for m in ('numpy', 'numba', 'sklearn', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
