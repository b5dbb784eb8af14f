"""Sentences that a script printed wrap on a phone; tables and trees keep their columns and scroll.

The style sheet cannot tell one from the other, so printed blocks without columns get the class ``wrapped`` here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PRINTED = "sphx-glr-script-out"  # the gallery's class
ALIGNED = re.compile(r"\S {2,}\S|^ |[│├└|`]", re.MULTILINE)  # columns, indentation, the branches of a tree


def are_sentences(text: str) -> bool:
    """Whether nothing in a printed text depends on its columns."""
    return ALIGNED.search(text) is None


def _mark_sentences(app: Sphinx, doctree: nodes.document) -> None:
    for block in doctree.findall(nodes.literal_block):
        if PRINTED in block["classes"] and are_sentences(block.astext()):
            block["classes"].append("wrapped")


def setup(app: Sphinx) -> dict[str, bool]:
    """Mark the blocks of every page that is read."""
    app.connect("doctree-read", _mark_sentences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
