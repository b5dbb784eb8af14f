"""Pictures of trees, drawn with matplotlib. Boxes are measured before they are placed, so they never overlap."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.evaluation.leaves import HELD_OUT, LeafValue
from policytree.exceptions import InputError
from policytree.export import counted, split_label
from policytree.tree import Tree

# Okabe and Ito (2008), readable with every kind of colour vision; repeated beyond eight arms.
PALETTE = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999")
LINE_COLORS = tuple(color for color in PALETTE if color != "#F0E442")  # thin yellow lines are lost on white
LONGEST_NAME = 28  # letters of a name beside a picture
LETTER = 0.075  # inches that a letter of such a name takes
WRAP = 22  # characters in a line of a box
GAP = 0.18  # inches between neighbouring leaves
LEVEL = 0.62  # inches between the rows of boxes
LEAST_TITLE = 5.0  # inches that a long title may take over a small tree


@dataclass(frozen=True, slots=True)
class _Box:
    """A node's text and its measured size in inches."""

    text: str
    width: float
    height: float


class PolicyTreeDisplay:
    """A picture of a policy tree.

    Parameters
    ----------
    tree : Tree
    leaf_values : dict of int to LeafValue, optional
        Values by leaf id. Those that were computed on the rows that chose the tree say so in the picture.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    boxes_ : dict of int to matplotlib Text
        The drawn box of every node.
    """

    def __init__(self, tree: Tree, leaf_values: Mapping[int, Any] | None = None):
        self.tree = tree
        self.leaf_values = leaf_values or {}

    @classmethod
    def from_tree(cls, tree: Tree, *, leaf_summary: Any = None, ax: Any = None, **options: Any) -> PolicyTreeDisplay:
        """Draw a tree; see :func:`plot_tree`."""
        return cls(tree, _leaf_values(tree, leaf_summary)).plot(ax=ax, **options)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, leaf_summary: Any = None, ax: Any = None, **options: Any
    ) -> PolicyTreeDisplay:
        """Draw the tree of a fitted estimator; without ``leaf_summary`` leaves show their mean on training rows."""
        values = _leaf_values(estimator.tree_, leaf_summary)
        if leaf_summary is None and hasattr(estimator, "node_values_"):
            tree = estimator.tree_
            values = {
                int(k): LeafValue(float(estimator.node_values_[k, tree.action[k]]))
                for k in np.flatnonzero(tree.is_leaf)
            }
        return cls(estimator.tree_, values).plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Any = None,
        title: str | None = None,
        treatment_colors: Mapping[Any, Any] | None = None,
        fontsize: float = 9.0,
        unit: str = "people",
        value_name: str = "value",
    ) -> PolicyTreeDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; text shrinks until the tree fits. By default a new figure of the right size.
        title : str or Verdict, optional
            Broken into lines that fit; the verdict of a :class:`policytree.evaluation.PolicyValueTable` belongs here.
        treatment_colors : dict, optional
            Colour of each action label; a colour-blind-safe palette by default.
        fontsize : float, default 9
            Points.
        unit : str, default "people"
            What the rows are, in the plural.
        value_name : str, default "value"
            What the number in the leaves is, such as "share" for a classifier.

        Returns
        -------
        PolicyTreeDisplay
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        colors = self._colors(treatment_colors)
        scratch = Figure(dpi=100)
        renderer = FigureCanvasAgg(scratch).get_renderer()
        texts = [self._text(node, unit, value_name) for node in range(self.tree.node_count)]
        while True:
            boxes = [_measure(scratch, renderer, text, fontsize) for text in texts]
            x, y, width, height = self._layout(boxes)
            if ax is None:
                break
            available = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
            if (width <= available.width and height <= available.height) or fontsize <= 3.0:
                break
            fontsize -= 0.5
        if ax is None:
            title, wide = _broken_title(title, width, fontsize + 2)
            x, width = x + (wide - width) / 2, wide
            ax = _axes_of_tree(width, height, title, fontsize + 2)
        if title:
            ax.set_title(str(title), fontsize=fontsize + 2)
        self._draw(ax, texts, x, y, width, height, colors, fontsize)
        self.figure_, self.ax_ = ax.figure, ax
        return self

    def _colors(self, given) -> dict:
        labels = list(self.tree.actions)
        unknown = [label for label in given or {} if label not in labels]
        if unknown:
            raise InputError(f"treatment_colors names {unknown[0]!r}, which the tree does not have; it has {labels}.")
        return {label: (given or {}).get(label, PALETTE[k % len(PALETTE)]) for k, label in enumerate(labels)}

    def _text(self, node: int, unit: str, value_name: str) -> str:
        tree = self.tree
        if not tree.is_leaf[node]:
            return _wrap(split_label(tree, node) + "?")
        n = int(tree.n_node_samples[node])
        lines = [_wrap(str(tree.actions[tree.action[node]]))]
        if tree.n_node_samples[0] > 0:  # born-again trees are made without rows
            lines.append(f"{counted(n, unit)} ({_share(n, tree)})")
        if node in self.leaf_values:
            lines += self.leaf_values[node].lines(value_name, self._digits())
        return "\n".join(lines)

    def _digits(self) -> int:
        """Decimals, the same for all leaves: two digits of the typical half interval, or three of the values."""
        values = list(self.leaf_values.values())
        widths = [v.upper - v.lower for v in values if v.lower is not None and v.upper is not None]
        widths = [w for w in widths if np.isfinite(w) and w > 0]
        scale = np.median(widths) / 20 if widths else max(abs(v.value) for v in values) / 100
        return int(np.clip(-np.floor(np.log10(scale)), 0, 6)) if scale > 0 else 2

    def _layout(self, boxes: list[_Box]):
        """Centre of every box and the size of the whole in inches: leaves side by side, parents above their children.

        A parent wider than its subtree pushes the next subtree away, so that boxes of one level cannot meet.
        """
        tree = self.tree
        depths = tree.node_depths()
        rows = [max(b.height for b, d in zip(boxes, depths, strict=True) if d == k) for k in range(depths.max() + 1)]
        tops = np.concatenate([[0.0], np.cumsum(np.array(rows) + LEVEL)])[:-1]
        y = np.array([-(tops[d] + rows[d] / 2) for d in depths])
        x = np.zeros(len(boxes))
        edge = np.full(len(rows), -np.inf)  # right end of what stands in each row
        self._leaf_edge: float = -GAP

        def place(node: int) -> None:
            box, d = boxes[node], depths[node]
            start = edge[d] + GAP if np.isfinite(edge[d]) else 0.0
            if tree.is_leaf[node]:
                x[node] = max(start, self._leaf_edge + GAP) + box.width / 2
                self._leaf_edge = x[node] + box.width / 2
            else:
                self._leaf_edge = max(self._leaf_edge, start + box.width / 2 - 2 * GAP)
                left, right = int(tree.children_left[node]), int(tree.children_right[node])
                place(left)
                place(right)
                x[node] = max((x[left] + x[right]) / 2, start + box.width / 2)
                self._leaf_edge = max(self._leaf_edge, x[node])
            edge[d] = x[node] + box.width / 2

        place(0)
        half = np.array([b.width / 2 for b in boxes])
        x -= (x - half).min()
        return x, y, float((x + half).max()), float(tops[-1] + rows[-1])

    def _draw(self, ax, texts, x, y, width, height, colors, fontsize) -> None:
        tree = self.tree
        ax.set_axis_off()
        margin = 0.08
        ax.set_xlim(-margin, width + margin)
        ax.set_ylim(-height - margin, margin)
        self.boxes_ = {}
        for node, text in enumerate(texts):
            leaf = bool(tree.is_leaf[node])
            face = colors[tree.actions[tree.action[node]]] if leaf else "white"
            style = {"boxstyle": "round,pad=0.45" if leaf else "square,pad=0.45", "facecolor": face}
            self.boxes_[node] = ax.text(
                x[node], y[node], text, ha="center", va="center", fontsize=fontsize, color=_ink(face), zorder=3,
                bbox={**style, "edgecolor": "#333333", "linewidth": 0.8}, linespacing=1.25, parse_math=False,
            )  # fmt: skip
            if leaf:
                continue
            for child, word in ((tree.children_left[node], "yes"), (tree.children_right[node], "no")):
                ax.plot([x[node], x[child]], [y[node], y[child]], color="#777777", linewidth=1.0, zorder=1)
                ax.text(
                    (x[node] + x[child]) / 2, (y[node] + y[child]) / 2, word, ha="center", va="center",
                    fontsize=fontsize - 1, color="#333333", zorder=2,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
                )  # fmt: skip


class PolicyValueDisplay:
    """Held-out values of a policy and of everything else one could do, with their intervals.

    Parameters
    ----------
    table : PolicyValueTable or DataFrame
        From :func:`policytree.cross_val_policy_value`, or its ``to_frame()``.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    """

    def __init__(self, table: Any):
        self.frame = table.to_frame() if hasattr(table, "to_frame") else table

    @classmethod
    def from_table(cls, table: Any, *, ax: Any = None, **options: Any) -> PolicyValueDisplay:
        """Draw at once; options as in :meth:`plot`."""
        return cls(table).plot(ax=ax, **options)

    def plot(
        self, *, ax: Any = None, differences: bool = False, title: str | None = None, xlabel: str | None = None
    ) -> PolicyValueDisplay:
        """Draw one line per rule.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        differences : bool, default False
            Draw the policy tree's value minus each other rule's (paired, so often more telling) instead of values.
        title, xlabel : str, optional

        Returns
        -------
        PolicyValueDisplay
        """
        prefix = "difference" if differences else "value"
        lower, upper = ("difference_lower", "difference_upper") if differences else ("lower", "upper")
        rows = self.frame[self.frame[prefix].notna()].iloc[::-1]
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(figsize=(6.4, 0.8 + 0.32 * len(rows)), layout="constrained")[1]
        colors = [PALETTE[4] if rule == "policy tree" else "#666666" for rule in rows.index]
        position = np.arange(len(rows))
        ax.hlines(position, rows[lower], rows[upper], colors=colors, linewidth=2)
        ax.scatter(rows[prefix], position, c=colors, s=28, zorder=3)
        ax.set_yticks(position, [f"tree - {rule}" if differences else str(rule) for rule in rows.index])
        reference = 0.0 if differences else self.frame["value"].iloc[0]
        ax.axvline(reference, color="#AAAAAA", linewidth=0.8, linestyle="--", zorder=0)
        ax.set_xlabel(xlabel or ("difference in held-out value" if differences else "held-out value"))
        ax.set_title(title or "")
        ax.spines[["top", "right"]].set_visible(False)
        self.figure_, self.ax_ = ax.figure, ax
        return self


def plot_tree(tree_or_estimator: Any, *, leaf_summary: Any = None, ax: Any = None, **options: Any) -> PolicyTreeDisplay:
    """Draw a policy tree.

    Parameters
    ----------
    tree_or_estimator : Tree or fitted estimator
    leaf_summary : DataFrame, optional
        From :func:`policytree.leaf_summary` or :func:`policytree.honest_leaf_summary`: values to show in the leaves,
        with intervals if held out, and marked if of training rows.
    ax : matplotlib Axes, optional
    **options
        ``title``, ``treatment_colors``, ``fontsize``, ``unit``, ``value_name``; see :meth:`PolicyTreeDisplay.plot`.

    Returns
    -------
    PolicyTreeDisplay
        With ``figure_`` and ``ax_``.
    """
    make = PolicyTreeDisplay.from_tree if isinstance(tree_or_estimator, Tree) else PolicyTreeDisplay.from_estimator
    return make(tree_or_estimator, leaf_summary=leaf_summary, ax=ax, **options)


def _leaf_values(tree: Tree, summary) -> dict:
    """Value of each leaf's own action, from a leaf summary: with its interval if held out."""
    if summary is None:
        return {}
    out = {}
    for leaf in np.flatnonzero(tree.is_leaf):
        if leaf in summary.index:
            arm = tree.actions[tree.action[leaf]]
            row = summary.loc[leaf]
            held_out = row.get(("rows", "")) == HELD_OUT
            low, high = (float(row[(end, arm)]) if held_out else None for end in ("lower", "upper"))
            out[int(leaf)] = LeafValue(float(row[("value", arm)]), low, high, held_out)
    return out


def _share(n: int, tree: Tree) -> str:
    """A leaf's share of all rows; some are not nobody, and most are not all."""
    total = int(tree.n_node_samples[0])
    rounded = f"{n / total:.0%}"
    return {"0%": "<1%", "100%": ">99%"}.get(rounded, rounded) if n < total else rounded


def _wrap(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WRAP, break_on_hyphens=False)) or text


def _ink(face) -> str:
    """Black or white, whichever reads better on a colour (relative luminance, WCAG 2)."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(face))
    linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "black" if linear @ [0.2126, 0.7152, 0.0722] > 0.179 else "white"


def _measure(figure, renderer, text: str, fontsize: float) -> _Box:
    """Size of a text with its frame, in inches."""
    drawn = figure.text(0, 0, text, fontsize=fontsize, linespacing=1.25, parse_math=False)
    extent = drawn.get_window_extent(renderer)
    drawn.remove()
    pad = 2 * 0.45 * fontsize / 72 + 0.03
    return _Box(text, extent.width / figure.dpi + pad, extent.height / figure.dpi + pad)


def _broken_title(title, width: float, fontsize: float) -> tuple[str, float]:
    """A title in lines that fit over a tree of this width in inches, and the width: wider where the title is long."""
    if not title:
        return "", width
    text = str(title)
    per_inch = 72 / (0.52 * fontsize)  # characters, about
    width = max(width, min(LEAST_TITLE, len(text) / per_inch))
    lines = [textwrap.fill(line, max(12, int(width * per_inch))) for line in text.splitlines()]
    return "\n".join(lines), width


def new_axes(ax: Any, width: float = 6.4, height: float = 4.0) -> Any:
    """The given axes, or those of a new figure (matplotlib is imported here, not with the package)."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _axes_of_tree(width: float, height: float, title: str, fontsize: float):
    """Axes of the tree's own size, so that an inch of layout is an inch of paper."""
    import matplotlib.pyplot as plt

    top = 0.15 + (title.count("\n") + 1) * 1.3 * fontsize / 72 if title else 0.0
    figure = plt.figure(figsize=(width + 0.4, height + 0.4 + top))
    total = height + 0.4 + top
    return figure.add_axes(
        (0.12 / (width + 0.4), 0.12 / total, (width + 0.16) / (width + 0.4), (height + 0.16) / total)
    )


def short_name(name: object, most: int = LONGEST_NAME) -> str:
    """A name beside or in a picture, cut where it would take the picture's room."""
    text = str(name)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def room_for_names(names: Iterable[object]) -> float:
    """Inches that names beside a picture take more than short ones do, as :func:`short_name` shows them."""
    longest = max((len(short_name(name)) for name in names), default=0)
    return LETTER * max(0, longest - 10)
