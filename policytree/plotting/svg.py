"""A figure as an element of a web page: small, without links, without names that another picture may have too."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from policytree.common.safe_text import set_apart

SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "policytree", "text.parse_math": False}
PIXELS = 4 / 3  # of a page, per point
SMALLEST = 0.75  # of its size: where a page is narrower, one moves the picture
ISOLATE, END = "\u2068", "\u2069"  # right-to-left words between these leave the order of their neighbours alone
_DROPPED = {"metadata"}
_DECIMALS = re.compile(r"(?<!\d)(\d+\.\d{2})\d+")  # from the first digit on: work in proportion to the text


def to_svg(figure: Any, alt: str, key: str, titles: Mapping[str, str] | None = None) -> str:
    """A matplotlib figure as an ``<svg>`` element, and close it.

    Parameters
    ----------
    figure : matplotlib Figure
        Best drawn with these :data:`SETTINGS`.
    alt : str
        Description of the picture, read aloud to those who cannot see it.
    key : str
        Letters and digits, different for every picture of a page.
    titles : mapping of str to str, optional
        By the name of a part of the figure (``gid``), what browsers show when one points at it.

    Returns
    -------
    str
        Texts stay texts (they can be found and read aloud); it scales with its container.
    """
    import matplotlib.pyplot as plt
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the reader's browser has other fonts
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(figure)
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root, key)
    for group in root.iter("g"):
        name = group.get("id", "").removeprefix(f"{key}-")
        if titles is not None and name in titles:
            said = ElementTree.Element("title")
            said.text = titles[name]
            group.insert(0, said)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    width = float(root.attrib["viewBox"].split()[2]) * PIXELS
    style = f"max-width:{width:.0f}px;min-width:{width * SMALLEST:.0f}px"
    root.attrib.update({"role": "img", "aria-label": alt, "style": style})
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, key: str) -> None:
    """Drop namespaces, metadata and decimals nobody sees; make ids those of this picture."""
    element.tag = element.tag.rpartition("}")[2]
    if element.tag == "text" and element.text:
        element.text = set_apart(element.text, lambda words: f"{ISOLATE}{words}{END}")
    attributes = {}
    for name, value in element.attrib.items():
        name = name.rpartition("}")[2]
        if name == "id":
            value = f"{key}-{value}"
        elif name == "href":
            value = value.replace("#", f"#{key}-", 1)
        elif name in ("d", "points", "transform", "x", "y"):
            value = _DECIMALS.sub(r"\1", value)
        attributes[name] = value.replace("url(#", f"url(#{key}-")
    element.attrib.clear()
    element.attrib.update(attributes)
    for child in list(element):
        if child.tag.rpartition("}")[2] in _DROPPED:
            element.remove(child)
        else:
            _clean(child, key)
