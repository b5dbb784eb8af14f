"""Every public class and function has an example in its docstring, and examples print what they say.

Public is what a package exports, and what a page of the API lists: also where a result's class lives. Methods may do
without an example; those that have one print what it says, too.
"""

import doctest
import importlib
import inspect
import re

import pytest

from policytree.common.docstrings import entries
from tests.support.api_pages import HOMES, PAGES, listed

PACKAGES = (*HOMES, "policytree.solvers")
DASK = "policytree.on_dask"
CHAIN = re.compile(r"^ +As (for|in) ", re.MULTILINE)  # instead of a description


def public_names():
    """Classes and functions that packages export or pages of the API list, each once, by their names there."""
    exported = ((name, each) for name in PACKAGES for each in {*importlib.import_module(name).__all__})
    found = {}
    for package, name in [*sorted(exported), *sorted(listed())]:
        item = inspect.unwrap(getattr(importlib.import_module(package), name))
        if inspect.isclass(item) or inspect.isfunction(item):
            found.setdefault(id(item), pytest.param(item, id=f"{package}.{name}"))
    return list(found.values())


def methods_with_examples():
    """Methods and properties of public classes whose docstrings have an example, own or inherited, each once."""
    found = {}
    for name, item in ((param.id, param.values[0]) for param in public_names()):
        for attribute, member in inspect.getmembers_static(item) if inspect.isclass(item) else ():
            function = inspect.unwrap(getattr(member, "__func__", getattr(member, "fget", member)))
            ours = inspect.isfunction(function) and function.__module__.startswith("policytree.")
            if ours and ">>> " in (function.__doc__ or ""):
                found.setdefault(function, pytest.param(function, id=f"{name}.{attribute}"))
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
    assert examples_that_hold(text, item.__qualname__, inspect.getsourcefile(item)) > 0


@pytest.mark.parametrize("method", methods_with_examples())
def test_examples_of_methods_print_what_they_say(method):
    assert "\nExamples\n--------\n>>> " in inspect.getdoc(method)
    assert examples_that_hold(inspect.getdoc(method), method.__qualname__, inspect.getsourcefile(method)) > 0


def examples_that_hold(text, name, path) -> int:
    """How many examples a text has; all of them print what they say."""
    example = doctest.DocTestParser().get_doctest(text, {}, name, path, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert not said, "".join(said)
    return runner.tries


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.rst")), ids=lambda path: path.stem)
def test_pages_of_the_api_show_what_is_no_class_or_function(page):
    """Dictionaries have no docstring: their page describes them, with an example."""
    text = page.read_text(encoding="utf-8")
    for part in text.split("\n.. data:: ")[1:]:
        assert examples_that_hold(part, part.split()[0], str(page)) > 0


def test_names_that_pages_list_have_examples_somewhere():
    """Nothing that a page lists escapes the two tests above."""
    tested = {id(param.values[0]) for param in public_names()}
    described = {
        name
        for page in PAGES.glob("*.rst")
        for name in re.findall(r"^\.\. data:: (\w+)$", page.read_text(), re.MULTILINE)
    }
    for module, name in listed():
        item = inspect.unwrap(getattr(importlib.import_module(module), name))
        assert id(item) in tested or name in described, f"{module}.{name}"
    assert len(tested) > 170


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
