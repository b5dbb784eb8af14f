"""A report as one self-contained page: it loads nothing, and reads well without its script."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from policytree.common.safe_text import set_apart, visible
from policytree.report.content import Choices, Content, Outline, Picture, Prices
from policytree.report.drawing import cleaned, draw

TEMPLATES = Path(__file__).parent / "templates"
INTERVAL = re.compile(r"\[[-+\d.,]+, [-+\d.,]+\]")


def to_html(content: Content) -> str:
    """The whole page."""
    return _environment().get_template("report.html").render(**_parts(content))


def to_fragment(content: Content) -> str:
    """The same for a notebook's cell: without a script, its style kept to itself."""
    return _environment().get_template("fragment.html").render(**_parts(content))


def _parts(content: Content) -> dict[str, Any]:
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    drawn = (block for block in content.blocks() if isinstance(block, Picture))
    pictures = {id(p): Markup(draw(p, f"picture{k}")) for k, p in enumerate(drawn, 1)}
    trees = [block for block in content.blocks() if isinstance(block, Outline) and block.form]
    prices = [block for block in content.blocks() if isinstance(block, Prices)]
    choices = any(isinstance(block, Choices) for block in content.blocks())
    return {
        "content": content,
        "style": Markup(style),
        "script": Markup(script),
        "picture": lambda block: pictures[id(block)],
        "program": program(trees, prices) if trees or prices or choices else "",
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("policytree.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "shown": shown,
        "whole_intervals": whole_intervals,
        "kind": lambda block: type(block).__name__.lower(),
    }
    return environment


def shown(text: str) -> Markup:
    """A text that is safe in a page: hidden characters are written out, markup is escaped, the direction is kept.

    No line ends beside an equals sign: "died = 1" stays whole.
    """
    escaped = str(escape(visible(str(text)))).replace(" = ", "\u00a0=\u00a0")
    return Markup(set_apart(escaped, lambda words: f"<bdi>{words}</bdi>"))


def whole_intervals(text: Markup) -> Markup:
    """A cell whose intervals, [low, high], do not break over lines."""
    return Markup(INTERVAL.sub(r'<span class="interval">\g<0></span>', str(text)))


def program(trees: Sequence[Outline], prices: Sequence[Prices] = ()) -> Markup:
    """Trees and prices for the page's script, in its order; nothing in them can end the element they stand in."""
    parts = ("root", "scales", "ranges", "caution")
    outlines = [cleaned({name: getattr(tree, name) for name in parts}) for tree in trees]
    said = {"trees": outlines, "prices": [cleaned(block.data) for block in prices]}
    text = json.dumps(said, ensure_ascii=True, allow_nan=False, sort_keys=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
