"""Docstrings that share entries: an argument is described once, and read in full wherever it is taken."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

SECTIONS = ("Parameters", "Attributes")
Documented = TypeVar("Documented", bound=Callable[..., Any])


def shares_documentation(*sources: Any) -> Callable[[Documented], Documented]:
    """Decorator: adds to a docstring the entries of other docstrings on which it is silent.

    Entries are numpydoc's, ``name : type`` or ``one, other : type`` with an indented text. Of a class, the sections
    "Parameters" and "Attributes" are completed, and need to be there; of a function, only "Parameters", with entries of
    arguments that it takes. A docstring's own entries stay; arguments stand in the order of the signature.

    Parameters
    ----------
    *sources : class, function or str
        Where to take entries from; earlier sources come first. A string is a docstring.
    """

    def complete(item: Documented) -> Documented:
        if item.__doc__ is None:  # python -OO
            return item
        text = inspect.cleandoc(item.__doc__)
        is_class, order = inspect.isclass(item), _argument_names(item)
        wanted = None if is_class else {*order}
        for source in sources:
            shared = source if isinstance(source, str) else source.__doc__ or ""
            for section in SECTIONS if is_class else SECTIONS[:1]:
                text = _with_entries(text, entries(inspect.cleandoc(shared), section), section, wanted)
        item.__doc__ = _in_order(text, order)
        return item

    return complete


def _argument_names(item: Any) -> list[str]:
    """Names of arguments as numpydoc writes them: those that collect others by name begin with two stars."""
    parameters = inspect.signature(item).parameters.values()
    return [f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name for p in parameters]


def _with_entries(text: str, shared: dict[tuple[str, ...], str], section: str, wanted: set[str] | None) -> str:
    """A docstring with the entries that its section lacks, of all names or of wanted ones."""
    known = {name for names in entries(text, section) for name in names}
    lacking = []
    for names, entry in shared.items():
        if wanted is None:
            lacking += [entry] * (not known & {*names})
            continue
        taken = [name for name in names if name in wanted - known]
        if taken:
            lacking.append(", ".join(taken) + entry[len(", ".join(names)) :])
    return _with_body(text, section, [_body(text, section).rstrip(), *lacking])


def _in_order(text: str, order: list[str]) -> str:
    """A docstring with its parameters in an order; entries of other names keep theirs, at the end."""
    place = {name: k for k, name in enumerate(order)}
    ordered = sorted(entries(text, "Parameters").items(), key=lambda each: place.get(each[0][0], len(place)))
    return _with_body(text, "Parameters", [entry for _, entry in ordered])


def _with_body(text: str, section: str, described: list[str]) -> str:
    """A docstring with other entries in a section."""
    body = _body(text, section)
    return text.replace(body, "\n".join(described) + body[len(body.rstrip()) :], 1)


def _body(text: str, section: str) -> str:
    """Return the text under a section's title, up to the next title."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"The docstring lacks the section {section}.")
    return found.group(1)


def entries(text: str, section: str) -> dict[tuple[str, ...], str]:
    """Entries of a section by the names that they describe."""
    entries = re.split(r"\n(?=\S)", _body(text, section).rstrip())
    return {tuple(entry.split("\n")[0].split(" : ")[0].split(", ")): entry.rstrip() for entry in entries}
