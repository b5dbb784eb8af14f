"""A fitted tree in a notebook: its picture and its certificate."""

from __future__ import annotations

import hashlib
from html import escape
from typing import Any

from policytree.common.safe_text import visible
from policytree.plotting.svg import SETTINGS, to_svg
from policytree.plotting.trees import PolicyTreeDisplay
from policytree.trees.text import export_text


def tree_html(estimator: Any, certificate: str) -> str:
    """Picture and certificate of a fitted estimator of one tree, as HTML.

    Parameters
    ----------
    estimator : fitted estimator
    certificate : str
        Lines to show below; may be empty.
    """
    from matplotlib import rc_context

    text = visible(export_text(estimator.tree_))
    key = "tree" + hashlib.sha256(text.encode()).hexdigest()[:12]
    with rc_context(SETTINGS):
        figure = PolicyTreeDisplay.from_estimator(estimator, unit="rows").figure_
    below = f"<pre>{escape(visible(certificate))}</pre>" if certificate else ""
    return f'<div class="policytree">{to_svg(figure, f"Decision tree. {text}", key)}{below}</div>'
