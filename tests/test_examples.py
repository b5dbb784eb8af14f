"""Every public class and function has an example in its docstring, and examples print what they say."""

import doctest
import importlib
import inspect
import re

import pytest

from policytree.common.docstrings import entries

PACKAGES = ("policytree", "policytree.objectives", "policytree.solvers", "policytree.weighting")
DASK = "policytree.on_dask"
SUPERSEDED = {"load_rand_hie", "plot_tree"}  # load_dataset and estimators' plot show what they do
CHAIN = re.compile(r"^ +As (for|in) ", re.MULTILINE)  # instead of a description


def public_names():
    """Classes and functions that packages export, each once, by their names there."""
    found = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in sorted({*package.__all__} - SUPERSEDED):
            item = inspect.unwrap(getattr(package, name))
            if inspect.isclass(item) or inspect.isfunction(item):
                found.setdefault(id(item), pytest.param(item, id=f"{package.__name__}.{name}"))
    return list(found.values())


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt = importlib.import_module("matplotlib.pyplot")
    plt.close("all")


@pytest.mark.parametrize("item", public_names())
def test_examples_print_what_they_say(item):
    if item.__module__.startswith(DASK):
        pytest.importorskip("dask.dataframe")
    text = inspect.getdoc(item)
    assert "\nExamples\n--------\n>>> " in text
    example = doctest.DocTestParser().get_doctest(text, {}, item.__qualname__, inspect.getsourcefile(item), 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert not said, "".join(said)
    assert runner.tries > 0


def test_every_package_exports_something_with_examples():
    assert len(public_names()) > 110


def arguments_without_description(function) -> list[str]:
    """Arguments that the docstring's section "Parameters" leaves out."""
    names = {name.lstrip("*") for entry in entries(inspect.getdoc(function), "Parameters") for name in entry}
    return [name for name in inspect.signature(function).parameters if name not in {*names, "self", "cls"}]


def public_functions():
    """Public functions and the public methods of estimators that take arguments with a section "Parameters"."""
    items = [param.values[0] for param in public_names()]
    yield from (item for item in items if inspect.isfunction(item) and inspect.signature(item).parameters)
    for item in items:
        if inspect.isclass(item):
            methods = [each for each in vars(item).values() if inspect.isfunction(each)]
            yield from (each for each in methods if "\nParameters\n" in (inspect.getdoc(each) or ""))


@pytest.mark.parametrize("function", list(public_functions()), ids=lambda each: each.__qualname__)
def test_every_argument_is_described_where_it_is_taken(function):
    assert arguments_without_description(function) == []
    assert not CHAIN.search(inspect.getdoc(function).split("\nReturns\n")[0])


@pytest.mark.parametrize("estimator", [each for each in public_names() if hasattr(each.values[0], "get_params")])
def test_every_argument_of_an_estimator_is_described(estimator):
    if inspect.signature(estimator).parameters:
        assert arguments_without_description(estimator) == []
