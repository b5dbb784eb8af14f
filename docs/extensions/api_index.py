"""A directive that lists every public name, where it is imported from, and the first line of its documentation.

    .. api-index::

The names are those that the packages export, so that none is typed by hand.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import policytree
from policytree.common.lazy import homes_in

ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


def packages() -> list[str]:
    """The package at the top, and those below it that it exports, by name."""
    known = homes_in(Path(policytree.__file__).with_suffix(".pyi"))
    return ["policytree", *(f"policytree.{name}" for name, home in sorted(known.items()) if home == "policytree")]


def index_rows() -> list[tuple[str, str, str]]:
    """Name, package and first line of every public name, in alphabetical order."""
    found = []
    for package in packages():
        for name in set(import_module(package).__all__) - {"__version__"}:
            what = inspect.getdoc(getattr(import_module(package), name)) or ""
            found.append((name, package, ROLE.sub(r"``\1``", " ".join(what.partition("\n\n")[0].split()))))
    return sorted(found, key=lambda row: row[0].lower())


class ApiIndex(SphinxDirective):
    """The table of names."""

    def run(self) -> list[nodes.Node]:
        """The table alone."""
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            "   :widths: 25 20 55",
            "",
            "   * - name",
            "     - import from",
        ]
        lines.append("     - what it is")
        for name, package, what in index_rows():
            lines += [f"   * - :py:obj:`{name} <{package}.{name}>`", f"     - ``{package}``", f"     - {what}"]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("api-index", ApiIndex)
    return {"parallel_read_safe": True}
