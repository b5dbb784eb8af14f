"""Pictures of trees, drawn with matplotlib. Boxes are measured before they are placed, so they never overlap."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from policytree.common.safe_text import visible
from policytree.evaluation.leaves.summary import TRAINING_ROWS, LeafValue, leaf_values
from policytree.exceptions import InputError
from policytree.plotting.common import (
    LEGEND_SIZE,
    WRAP,
    OneAxes,
    arm_colors,
    arm_legend,
    broken_title,
    ink,
    packed,
    short_name,
    wrapped,
)
from policytree.plotting.svg import SETTINGS, to_svg
from policytree.trees.labels import labelled
from policytree.trees.short_thresholds import readable
from policytree.trees.text import answers, counted, export_text, missing_label, question, rule_sentence
from policytree.trees.tree import Tree

GAP = 0.18  # inches between neighbouring leaves
LEVEL = 0.62  # inches between the rows of boxes
LEGEND_LINE = 0.2  # inches of a line of the legend
LEGEND_ENTRY = 2.2  # inches of an entry at most
LEGEND_PATCH, LEGEND_LETTER = 0.6, 0.06  # inches
LARGEST_PICTURE = 150  # inches: 30,000 pixels in a file
MARGIN = 0.08  # inches around the boxes
EDGE = 0.2  # inches of a figure to the left and the right of its tree
LEAST_FONT = 3.0  # points
WIDTHS = {"column": 3.5, "page": 7.0}  # inches: 89 and 178 mm, as journals have them
PAGE_HEIGHT = 9.5  # inches of an A4 page, beside its margins and a caption
LEAST_PRINTED = 7.0  # points: journals print nothing smaller
LINES = {  # characters in the lines of questions and of leaves, upright and sideways, where room is less and less
    False: ((WRAP, WRAP), (18, 18), (15, 15), (12, 12)),
    True: ((WRAP, 40), (15, 40), (12, 30), (12, WRAP), (10, WRAP), (10, 15)),
}
YES_NO = ("", "yes", "no")  # for these there is always a place
ROW_GAP, COLUMN_GAP = 0.07, 0.4  # inches between leaves and between questions of a tree that lies on its side


@dataclass(frozen=True, slots=True)
class _Box:
    """A node's text and its measured size in inches."""

    text: str
    width: float
    height: float


@dataclass(frozen=True, slots=True, eq=False)
class TreeLayout:
    """Texts and boxes of a drawn tree, in inches from its upper left corner; y is negative.

    Attributes
    ----------
    texts, answers : list of str
        Of every node, and of the line that leads to it: the answer to the question above.
    x, y : ndarray of shape (n_nodes,)
        Centres of the boxes.
    widths, heights : ndarray of shape (n_nodes,)
        Of the boxes.
    width, height : float
        Of the whole.
    sideways : bool
        Whether the root stands at the left and the leaves at the right, one below the other.
    """

    texts: list[str]
    answers: list[str]
    x: np.ndarray
    y: np.ndarray
    widths: np.ndarray
    heights: np.ndarray
    width: float
    height: float
    sideways: bool = False

    def joint(self, node: int, before: bool) -> tuple[float, float]:
        """Where a line meets the box of a node: on the side of its parent (``before`` it), or of its children."""
        side = 1 if before else -1
        if self.sideways:
            return self.x[node] - side * self.widths[node] / 2, self.y[node]
        return self.x[node], self.y[node] + side * self.heights[node] / 2


class Measured(Protocol):
    """Something that takes room on paper, in inches."""

    @property
    def width(self) -> float:
        """From left to right."""

    @property
    def height(self) -> float:
        """From top to bottom."""


MeasuredT = TypeVar("MeasuredT", bound=Measured)
Width = Literal["column", "page"] | float


class PolicyTreeDisplay(OneAxes):
    """A picture of a policy tree.

    Parameters
    ----------
    tree : Tree
    leaf_values : dict of int to LeafValue, optional
        Values by leaf id. Those that were computed on the rows that chose the tree say so in the picture.
    fragile : dict of int to str, optional
        Leaves that other people would not have given, with what is said of them: their boxes are hatched.
    notes : dict of int to str, optional
        A further line of leaves, such as how many people got which treatment.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    boxes_ : dict of int to matplotlib Text
        The drawn box of every node.
    caption_ : str
        Notes that a reader of the picture needs, to be copied below it.
    alt_ : str
        The same tree in words, for readers who cannot see it.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards)
    >>> display = tree.plot(title="Who gets the drug")
    >>> [box.get_text() for box in display.boxes_.values()][0]
    'x0 ≤ 2.5?'
    """

    def __init__(
        self,
        tree: Tree,
        leaf_values: Mapping[int, Any] | None = None,
        fragile: Mapping[int, str] | None = None,
        notes: Mapping[int, str] | None = None,
    ):
        self.tree = tree
        self.leaf_values = leaf_values or {}
        self.fragile = fragile or {}
        self.notes = notes or {}

    @classmethod
    def from_tree(
        cls, tree: Tree, *, leaf_summary: Any = None, labels: Any = None, ax: Any = None, **options: Any
    ) -> PolicyTreeDisplay:
        """Draw a tree.

        Parameters
        ----------
        tree : Tree
        leaf_summary : DataFrame, optional
            From :func:`policytree.leaf_summary` or :func:`policytree.honest_leaf_summary`: the values that the leaves
            show, with intervals. If held out, also the gain over the best other arm and the second-best arm; if of
            training rows, leaves say so.
        labels : "humanize", path, or mapping of str to str or Label, optional
            Labels of columns in place of their names: names made readable ("weight_kg" is "Weight (kg)"), a CSV file
            with the columns ``name``, ``label``, ``unit`` and ``values``, or labels by column; by default names as
            they are.
        ax : matplotlib Axes, optional
        **options
            Arguments of :meth:`plot`: ``title``, ``treatment_colors`` (a mapping of labels to colours), ``fontsize``,
            ``unit`` and ``value_name`` (of the outcome), ``limits`` (of the intervals' common axis), ``width``.
        """
        values = leaf_values(tree, leaf_summary)
        return cls(labelled(tree, labels), values).plot(ax=ax, **options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        leaf_summary: Any = None,
        X: Any = None,
        labels: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> PolicyTreeDisplay:
        """Draw the tree of a fitted estimator; without ``leaf_summary`` leaves show their mean on training rows.

        Parameters
        ----------
        estimator : fitted estimator
        leaf_summary : DataFrame, optional
            From :func:`policytree.leaf_summary` or :func:`policytree.honest_leaf_summary`.
        ax : matplotlib Axes, optional
        **options
            Arguments of :meth:`plot`.
        X : DataFrame or array-like of shape (n, p), optional
            The table of ``fit``: thresholds are then as short as these rows allow, and questions about zeros and ones
            name a value.
        labels : "humanize", path, or mapping of str to str or Label, optional
            As of :meth:`from_tree`.
        """
        tree = estimator.tree_
        values = leaf_values(tree, leaf_summary)
        if leaf_summary is None and hasattr(estimator, "node_values_"):
            values = _training_values(tree, estimator)
        if X is not None:
            tree = readable(tree, estimator.encoder_.encode(X))
        return cls(labelled(tree, labels), values).plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Any = None,
        title: str | None = None,
        treatment_colors: Mapping[Any, Any] | None = None,
        fontsize: float = 9.0,
        unit: str = "people",
        value_name: str = "value",
        limits: tuple[float, float] | None = None,
        width: Width | None = None,
    ) -> PolicyTreeDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; text shrinks until the tree fits. By default a new figure of the right size.
        title : str or Verdict, optional
            Broken into lines that fit; the verdict of a
            :class:`policytree.evaluation.policy_value.tables.PolicyValueTable` belongs here.
        treatment_colors : dict, optional
            Colour of each action label; a colour-blind-safe palette by default.
        fontsize : float, default 9
            Points.
        unit : str, default "people"
            Name of the rows, in the plural.
        value_name : str, default "value"
            Name of the number in the leaves, such as "share" for a classifier.
        limits : (least, largest), optional
            The outcome's range: intervals of values are cut to it, since no mean lies outside.
        width : {"column", "page"} or float, optional
            Of a new figure for print: 3.5 or 7 inches, or so many. No text is then smaller than 7 points: lines of
            boxes become shorter, and if need be the tree lies on its side.

        Returns
        -------
        PolicyTreeDisplay

        Raises
        ------
        InputError
            If the tree has no place on a page of that width.
        """
        colors = arm_colors(self.tree.actions, treatment_colors)
        values = {k: v.within(limits) for k, v in self.leaf_values.items()}

        def measured(size: float, characters: tuple[int, int] = (WRAP, WRAP), sideways: bool = False) -> TreeLayout:
            return self.laid_out(size, unit, value_name, values, characters, sideways)

        room = None if width is None else _inches(width, ax)
        layout, fontsize = fitting(measured, ax, fontsize) if room is None else printable(measured, room, fontsize)
        left = 0.0
        if ax is None:
            size = (layout.width if room is None else room - 2 * EDGE, layout.height)
            ax, title, wide = tree_axes([self.tree], colors, size, title, fontsize, fixed=room is not None)
            left, layout = (wide - layout.width) / 2, replace(layout, width=wide)
        elif title:
            inches = size_of(ax)[0]
            title = broken_title(title, inches, fontsize + 2)[0]
        if title:
            ax.set_title(str(title), fontsize=fontsize + 2, parse_math=False)
        in_inches(ax, layout.width, layout.height)
        self.boxes_ = self.draw(ax, layout, (left, 0.0), colors, fontsize)
        self.alt_ = f"Decision tree. {export_text(self.tree)}"
        self.caption_ = self._caption(unit, value_name)
        self._use(ax)
        return self

    def _caption(self, unit: str, value_name: str) -> str:
        """The rule, what boxes say, and on which rows."""
        said, shown = [rule_sentence(self.tree)], ["the treatment"]
        if total := int(self.tree.n_node_samples[0]):
            shown.append(f"how many of {counted(total, unit)} get it")
        held_out = [value for value in self.leaf_values.values() if value.held_out]
        if self.leaf_values:
            rows = "from rows that did not choose the tree" if held_out else TRAINING_ROWS
            interval = " with a confidence interval" if held_out else ""
            shown.append(f"their mean {value_name}{interval} ({rows})")
        said.append(f"Leaves state {', '.join(shown[:-1])}{' and ' * (len(shown) > 1)}{shown[-1]}.")
        if self.fragile:
            said.append("Hatched leaves are unsure: other people would often have led to another treatment there.")
        return " ".join(filter(None, said))

    def laid_out(
        self,
        fontsize: float,
        unit: str,
        value_name: str = "value",
        values: Mapping[int, LeafValue] | None = None,
        characters: tuple[int, int] = (WRAP, WRAP),
        sideways: bool = False,
    ) -> TreeLayout:
        """Texts and places of all boxes, with so many characters in the lines of questions and of leaves."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        scratch = Figure(dpi=100)
        renderer = FigureCanvasAgg(scratch).get_renderer()
        texts = [self._text(node, unit, value_name, values or {}, characters) for node in range(self.tree.node_count)]
        boxes = [_measure(scratch, renderer, text, fontsize) for text in texts]
        widths, heights = np.array([box.width for box in boxes]), np.array([box.height for box in boxes])
        said = self._answers(characters[0])
        named = [_measure(scratch, renderer, "" if word in YES_NO else word, _small(fontsize)) for word in said]
        wide, high = np.array([box.width for box in named]), np.array([box.height for box in named])
        # Answers stand in the middle of their lines, where siblings are half as far apart as their boxes.
        if sideways:
            level = max(COLUMN_GAP, wide.max())
            down, right, height, width = self._layout(np.maximum(heights, 2 * high), widths, ROW_GAP, level)
            return TreeLayout(texts, said, right, -down, widths, heights, width, height, sideways)
        level = max(LEVEL, high.max())
        right, down, width, height = self._layout(np.maximum(widths, 2 * wide), heights, GAP, level)
        return TreeLayout(texts, said, right, -down, widths, heights, width, height)

    def _answers(self, characters: int) -> list[str]:
        """The answer on the line to every node; "" of the root."""
        tree = self.tree
        said = [""] * tree.node_count
        for node in np.flatnonzero(~tree.is_leaf):
            left, right = answers(tree, int(node))
            said[tree.children_left[node]], said[tree.children_right[node]] = left, right
        return [wrapped(word, characters) for word in said]

    def _text(
        self, node: int, unit: str, value_name: str, values: Mapping[int, LeafValue], characters: tuple[int, int]
    ) -> str:
        tree, wide = self.tree, characters[1] > WRAP
        if not tree.is_leaf[node]:
            missing = missing_label(tree, node)
            lines = [question(tree, node, missing=False), *([f"({missing})"] if missing else [])]
        else:
            n = int(tree.n_node_samples[node])
            lines = [str(tree.actions[tree.action[node]])]
            if tree.n_node_samples[0] > 0:  # born-again trees are made without rows
                lines.append(f"{counted(n, unit)} ({_share(n, tree)})")
            lines += self.notes.get(node, "").splitlines()
            for part in values[node].parts(value_name, self._digits()) if node in values else ():
                lines += [" ".join(part)] if wide else part
            if node in self.fragile:
                lines.append(self.fragile[node])
            lines = packed(lines, characters[1]) if wide else lines
        return "\n".join(wrapped(line, characters[int(tree.is_leaf[node])]) for line in lines)

    def _digits(self) -> int:
        """Decimals, the same for all leaves: two digits of the typical half interval, or three of the values."""
        values = list(self.leaf_values.values())
        widths = [v.upper - v.lower for v in values if v.lower is not None and v.upper is not None]
        widths = [w for w in widths if np.isfinite(w) and w > 0]
        scale = (
            np.median(widths) / 20
            if widths
            else max((abs(v.value) for v in values if v.value is not None), default=0.0) / 100
        )
        return int(np.clip(-np.floor(np.log10(scale)), 0, 6)) if scale > 0 else 2

    def _layout(self, sizes: np.ndarray, depths: np.ndarray, gap: float, level: float):
        """Centre of every box and the size of the whole, in inches: along the row of leaves, and down from the root.

        ``sizes`` of the boxes are those along the leaves, ``depths`` those across. Leaves stand side by side, parents
        in the middle of their children. A parent that is longer than its subtree pushes the next subtree away, so that
        boxes of one level cannot meet.
        """
        tree, levels = self.tree, self.tree.node_depths()
        rows = [depths[levels == k].max() for k in range(levels.max() + 1)]
        tops = np.concatenate([[0.0], np.cumsum(np.array(rows) + level)])[:-1]
        across = tops[levels] + depths / 2
        along = np.zeros(len(sizes))
        edge = np.full(len(rows), -np.inf)  # end of what stands in each row
        self._leaf_edge: float = -gap

        def place(node: int) -> None:
            size, d = sizes[node], levels[node]
            start = edge[d] + gap if np.isfinite(edge[d]) else 0.0
            if tree.is_leaf[node]:
                along[node] = max(start, self._leaf_edge + gap) + size / 2
                self._leaf_edge = along[node] + size / 2
            else:
                self._leaf_edge = max(self._leaf_edge, start + size / 2 - 2 * gap)
                left, right = int(tree.children_left[node]), int(tree.children_right[node])
                place(left)
                place(right)
                along[node] = max((along[left] + along[right]) / 2, start + size / 2)
                self._leaf_edge = max(self._leaf_edge, along[node])
            edge[d] = along[node] + size / 2

        place(0)
        along -= (along - sizes / 2).min()
        return along, across, float((along + sizes / 2).max()), float(tops[-1] + rows[-1])

    def draw(
        self, ax: Any, layout: TreeLayout, corner: tuple[float, float], colors: Mapping[Any, Any], fontsize: float
    ) -> dict[int, Any]:
        """Draw boxes and lines into axes of inches, from the corner at the upper left; the boxes by node."""
        tree, boxes = self.tree, {}
        layout = replace(layout, x=layout.x + corner[0], y=layout.y + corner[1])
        for node, text in enumerate(layout.texts):
            leaf = bool(tree.is_leaf[node])
            face = colors[tree.actions[tree.action[node]]] if leaf else "white"
            style = {"boxstyle": "round,pad=0.45" if leaf else "square,pad=0.45", "facecolor": face}
            edge = "#333333"
            if node in self.fragile:
                edge = _away_from_ink(face)  # of the hatching too
                style |= {"linestyle": "dashed", "hatch": "///"}
            boxes[node] = ax.text(
                layout.x[node], layout.y[node], text, ha="center", va="center", fontsize=fontsize, color=ink(face),
                bbox={**style, "edgecolor": edge, "linewidth": 0.8}, linespacing=1.25, parse_math=False, zorder=3,
            )  # fmt: skip
            if leaf:
                continue
            for child in (tree.children_left[node], tree.children_right[node]):
                (x0, y0), (x1, y1) = layout.joint(node, before=False), layout.joint(child, before=True)
                ax.plot([x0, x1], [y0, y1], color="#777777", linewidth=1.0, zorder=1)
                ax.text(
                    (x0 + x1) / 2, (y0 + y1) / 2, layout.answers[child], ha="center", va="center",
                    fontsize=_small(fontsize), color="#333333", zorder=2, parse_math=False,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
                )  # fmt: skip
        return boxes


def fitting(measured: Callable[[float], MeasuredT], ax: Any, fontsize: float) -> tuple[MeasuredT, float]:
    """Measure with the largest text, up to a size, that fits into given axes, if any are; and the size of that text."""
    while True:
        found = measured(fontsize)
        if ax is None:
            return found, fontsize
        width, height = size_of(ax)
        if (found.width <= width and found.height <= height) or fontsize <= LEAST_FONT:
            return found, fontsize
        fontsize -= 0.5


def printable(measured: Callable[..., TreeLayout], width: float, fontsize: float) -> tuple[TreeLayout, float]:
    """Measure with the largest text for a page of a width in inches: upright if that has a place, else on its side.

    Raises
    ------
    InputError
        If even the smallest text that may be printed has no place.
    """
    least = (np.inf, np.inf)
    for sideways, lines in LINES.items():
        fits = []
        for characters in lines:
            found = measured(LEAST_PRINTED, characters, sideways)
            least = min(least, (found.width + 2 * EDGE, found.height))
            fits += [characters] if _has_place(found, width) else []
        for size in np.arange(max(fontsize, LEAST_PRINTED), LEAST_PRINTED - 0.25, -0.5).tolist() if fits else ():
            for characters in fits:
                found = measured(size, characters, sideways)
                if _has_place(found, width):
                    return found, size
    raise InputError(
        f"At {LEAST_PRINTED:g} points the tree takes {least[0]:.1f} x {least[1]:.1f} inches, and there are "
        f"{width:g} x {PAGE_HEIGHT:g}; pass a larger width, or print its rules as a table (to_rules)."
    )


def _has_place(layout: TreeLayout, width: float) -> bool:
    return layout.width <= width - 2 * EDGE and layout.height <= PAGE_HEIGHT


def _inches(width: Width, ax: Any) -> float:
    """A width of a new figure in inches."""
    if ax is not None:
        raise InputError("width is that of a new figure; leave it out, or ax.")
    if isinstance(width, str):
        if width not in WIDTHS:
            raise InputError(f"width must be 'column', 'page' or a number of inches; got {width!r}.")
        return WIDTHS[width]
    if not 1 <= width <= LARGEST_PICTURE:
        raise InputError(f"width must lie between 1 and {LARGEST_PICTURE} inches; got {width!r}.")
    return float(width)


def size_of(ax: Any) -> tuple[float, float]:
    """Width and height of axes in inches."""
    available = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return available.width, available.height


def in_inches(ax: Any, width: float, height: float) -> None:
    """Make axes of inches, without a frame: from 0 at the upper left to the right and, below zero, down."""
    ax.set_axis_off()
    ax.set_xlim(-MARGIN, width + MARGIN)
    ax.set_ylim(-height - MARGIN, MARGIN)


def tree_axes(
    trees: Sequence[Tree],
    colors: Mapping[Any, Any],
    size: tuple[float, float],
    title: str | None,
    fontsize: float,
    fixed: bool = False,
) -> tuple[Any, str, float]:
    """Axes on a new figure for drawn trees of a size in inches, with a legend below; the title's lines, the width.

    The width becomes larger where title or legend need it, unless it is ``fixed``.
    """
    lines, wide = broken_title(title, size[0], fontsize + 2, fixed)
    shown, note, wide = _legend(trees, colors, wide, fixed)
    columns = max(1, min(len(shown), int(wide / LEGEND_ENTRY)))
    rows = -(-len(shown) // columns) + (note.count("\n") + 1 if note else 0)
    ax = _axes_of_tree(wide, size[1], lines, fontsize + 2, LEGEND_LINE * rows)
    arm_legend(ax.figure, shown, loc="lower center", columns=columns, note=note)
    return ax, lines, wide


def _legend(trees: Sequence[Tree], colors: Mapping[Any, Any], width: float, fixed: bool) -> tuple[dict, str, float]:
    """Colours of the arms that leaves give, which arms none gives, in lines, and a width in inches for both."""
    drawn = {tree.actions[k] for tree in trees for k in tree.action[tree.is_leaf].tolist()}
    given = [arm for arm in colors if arm in drawn]
    spare = [short_name(arm) for arm in colors if arm not in drawn]
    longest = max(len(short_name(arm)) for arm in given)
    width = width if fixed else max(width, LEGEND_PATCH + longest * LEGEND_LETTER)
    note, width = broken_title(f"nobody gets {', '.join(spare)}" if spare else "", width, LEGEND_SIZE, fixed)
    return {arm: colors[arm] for arm in given}, note, width


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
    picture = to_svg(figure, f"Decision tree. {text}", key)
    return f'<div class="policytree" style="overflow-x:auto">{picture}{below}</div>'


def _away_from_ink(face: Any) -> Any:
    """A shade of a colour on which its text reads even better."""
    from matplotlib.colors import to_rgb

    return tuple(0.55 * part + (0.45 if ink(face) == "black" else 0.0) for part in to_rgb(face))


def _training_values(tree: Tree, estimator: Any) -> dict[int, LeafValue]:
    """Mean training reward of each leaf's own action."""
    return {int(k): LeafValue(float(estimator.node_values_[k, tree.action[k]])) for k in np.flatnonzero(tree.is_leaf)}


def _share(n: int, tree: Tree) -> str:
    """A leaf's share of all rows; some are not nobody, and most are not all."""
    total = int(tree.n_node_samples[0])
    rounded = f"{n / total:.0%}"
    return {"0%": "<1%", "100%": ">99%"}.get(rounded, rounded) if n < total else rounded


def _small(fontsize: float) -> float:
    """The size of answers beside boxes of a size."""
    return max(fontsize - 1, min(fontsize, LEAST_PRINTED))


def _measure(figure, renderer, text: str, fontsize: float) -> _Box:
    """Size of a text with its frame, in inches."""
    drawn = figure.text(0, 0, text, fontsize=fontsize, linespacing=1.25, parse_math=False)
    extent = drawn.get_window_extent(renderer)
    drawn.remove()
    pad = 2 * 0.45 * fontsize / 72 + 0.03
    return _Box(text, extent.width / figure.dpi + pad, extent.height / figure.dpi + pad)


def _axes_of_tree(width: float, height: float, title: str, fontsize: float, below: float):
    """Axes of the tree's own size, so that an inch of layout is an inch of paper; below them room for a legend."""
    import matplotlib.pyplot as plt

    if max(width, height) > LARGEST_PICTURE:
        raise InputError(
            f"The tree is too large for one picture ({width:.0f} x {height:.0f} inches); print it as text with "
            "export_text or `policytree show`."
        )
    top = 0.15 + (title.count("\n") + 1) * 1.3 * fontsize / 72 if title else 0.0
    total = height + 0.4 + top + below
    figure = plt.figure(figsize=(width + 2 * EDGE, total))
    left, wide, high = (
        (EDGE - MARGIN) / (width + 2 * EDGE),
        (width + 2 * MARGIN) / (width + 2 * EDGE),
        height + 2 * MARGIN,
    )
    return figure.add_axes((left, (0.12 + below) / total, wide, high / total))
