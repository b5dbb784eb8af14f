"""A directive that shows the table of engines, read from the code.

    .. engine-table::

The table is ``policytree.solvers.exact.engine_table.ENGINES``, which ``policytree explain`` prints as well.
"""

from __future__ import annotations

from benchmark_tables import scrolling, table_node
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from policytree.solvers.exact import engine_table
from policytree.solvers.exact.engine_table import ENGINES

HEAD = ["engine", "takes", "buys", "chosen by"]


def engine_rows() -> list[list[str]]:
    """One row of texts for every engine."""
    return [[each.name, each.takes, each.buys, each.asked_by or "the direct solver"] for each in ENGINES]


class EngineTable(SphinxDirective):
    """The table of engines."""

    def run(self) -> list[nodes.Node]:
        """The table alone."""
        self.env.note_dependency(str(engine_table.__file__))
        return [scrolling(table_node((HEAD, engine_rows())))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("engine-table", EngineTable)
    return {"parallel_read_safe": True}
