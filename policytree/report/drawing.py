"""Pictures of a report: from their data to elements of a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.safe_text import visible
from policytree.evaluation.leaves.summary import LeafValue
from policytree.exceptions import InputError
from policytree.plotting.common import PALETTE, line_color, new_axes, open_frame, row_names, zero_line
from policytree.plotting.compliance import draw_compliance
from policytree.plotting.diagnostics import draw_balance, draw_overlap
from policytree.plotting.pareto import draw_points
from policytree.plotting.partition import PartitionDisplay
from policytree.plotting.regimes import RegimeDisplay
from policytree.plotting.survival import draw_curves, figure_height
from policytree.plotting.svg import SETTINGS, to_svg
from policytree.plotting.trees import PolicyTreeDisplay
from policytree.plotting.values import PolicyValueDisplay
from policytree.report.content import Picture
from policytree.serialization import from_dict
from policytree.serialization.parsing import MALFORMED

LARGE = 10.5  # points of a tree's text
NARROW = 4.0  # inches: a telephone shows as much without scrolling


def draw(picture: Picture, key: str) -> str:
    """A picture as an ``<svg>`` element with names of its own.

    Raises
    ------
    InputError
        If the picture's data are none that its kind can draw.
    """
    from matplotlib import rc_context

    if picture.kind not in DRAWN:
        raise InputError(f"A report has no pictures of kind {picture.kind!r}.")
    try:
        with rc_context(SETTINGS):
            figure = DRAWN[picture.kind](cleaned(picture.data))
        titles = cleaned(picture.data.get("titles", {}))
        return to_svg(figure, visible(picture.alt), key, titles)
    except MALFORMED as error:
        raise InputError(f"The picture of kind {picture.kind!r} cannot be drawn from its data ({error}).") from error


def cleaned(value: Any) -> Any:
    """Names as they may be shown."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(k): cleaned(v) for k, v in value.items()}
    return [cleaned(v) for v in value] if isinstance(value, list | tuple) else value


def _tree(data: dict[str, Any]):
    values = {int(leaf): LeafValue.from_dict(fields) for leaf, fields in data["values"].items()}
    fragile = {int(leaf): text for leaf, text in data.get("fragile", {}).items()}
    notes = {int(leaf): text for leaf, text in data.get("arms", {}).items()}
    display = PolicyTreeDisplay(from_dict(data["tree"]), values, fragile, notes)
    return display.plot(unit="rows", limits=data["limits"], fontsize=LARGE).figure_


def _regime(data: dict[str, Any]):
    trees = [(stage["name"], from_dict(stage["tree"])) for stage in data["stages"]]
    return RegimeDisplay(trees, [stage["eligible"] for stage in data["stages"]]).plot().figure_


def _partition(data: dict[str, Any]):
    return PartitionDisplay(data).plot().figure_


def _values(data: dict[str, Any]):
    frame = pd.DataFrame.from_dict(data["rows"], orient="index", columns=["value", "lower", "upper"])
    _, room, height = row_names(frame.index)
    ax = new_axes(None, NARROW + room, height)
    display = PolicyValueDisplay(frame, data["direction"])
    return display.plot(ax=ax, limits=data["limits"], xlabel=data["xlabel"], marked=data["strong"]).figure_


def _overlap(data: dict[str, Any]):
    return draw_overlap(data["panels"], data["floor"])


def _balance(data: dict[str, Any]):
    columns = {f"difference_{name}": data[name] for name in ("before", "after") if name in data}
    table = pd.DataFrame(columns, index=data["covariates"], dtype=float)
    return draw_balance(table, what=data.get("what", "treatment")).figure


def _curves(data: dict[str, Any]):
    ax = new_axes(None, NARROW + 1.0, 3.6)
    for k, line in enumerate(data["lines"]):
        color = line_color(k)
        if "lower" in line:
            low, high = (np.array(line[end], dtype=float) for end in ("lower", "upper"))
            ax.fill_between(line["x"], low, high, color=color, alpha=0.18, linewidth=0)
        ax.plot(line["x"], line["y"], color=color, label=line["label"], linewidth=1.8)
    zero_line(ax)
    ax.set(xlabel=data["xlabel"], ylabel=data["ylabel"])
    open_frame(ax)
    ax.legend(frameon=False, fontsize=9)
    return ax.figure


def _depths(data: dict[str, Any]):
    ax = new_axes(None, NARROW, 3.0)
    colors = [PALETTE[4] if k == data["chosen"] else "#666666" for k in range(len(data["x"]))]
    for x, y, error, color in zip(data["x"], data["y"], data["error"], colors, strict=True):
        ax.errorbar(x, y, yerr=error, fmt="o", color=color, capsize=3, markersize=7)
    zero_line(ax)
    ax.set(xlabel=data["xlabel"], ylabel=data["ylabel"], xticks=data["x"])
    open_frame(ax)
    return ax.figure


def _pareto(data: dict[str, Any]):
    ax = new_axes(None, NARROW + 0.5, 3.6)
    draw_points(ax, data, {k: k == data["chosen"] for k in data["numbered"]})
    ax.set_xlabel(data["xlabel"], parse_math=False)
    ax.set_ylabel(data["ylabel"], parse_math=False)
    open_frame(ax)
    ax.legend(frameon=False, fontsize=8)
    return ax.figure


def _survival(data: dict[str, Any]):
    ax = new_axes(None, NARROW + 0.5, figure_height(len(data["lines"])))
    draw_curves(ax, data, data["xlabel"], data["ylabel"])
    return ax.figure


DRAWN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "tree": _tree, "regime": _regime, "partition": _partition, "values": _values, "overlap": _overlap,
    "balance": _balance, "curves": _curves, "depths": _depths, "survival": _survival, "compliance": draw_compliance,
    "pareto": _pareto,
}  # fmt: skip
