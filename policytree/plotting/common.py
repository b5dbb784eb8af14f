"""Shared parts of pictures: colours, names beside them, titles that fit, axes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.safe_text import visible
from policytree.exceptions import InputError

# Okabe and Ito (2008), readable with every kind of colour vision; repeated beyond eight arms.
PALETTE = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#999999")
LINE_COLORS = tuple(color for color in PALETTE if color != "#F0E442")  # thin yellow lines are lost on white
# of lines to compare with
REFERENCE: dict[str, Any] = {"color": "#AAAAAA", "linewidth": 0.8, "linestyle": "--", "zorder": 0}
LONGEST_NAME = 28  # letters of a name beside a picture
LETTER = 0.075  # inches that a letter of such a name takes
WRAP = 22  # characters in a line of a box
BESIDE = 18  # characters in a line of a row's name: so many leave a telephone room for the picture
ROW, LINE = 0.32, 0.19  # inches of a row with a name of one line, and of each line of longer names
BELOW = 1.1  # inches below the rows and above them
# intervals, signs with their numbers, and words that a hard space joins stay whole
WORD = re.compile(r"\[[^\]\s]+, [^\]\s]+\]|[≤<>=≠] \S+|[\S\xa0]+")
MARKS = re.compile(r"(?<=[_/.,;:|\xa0-])")  # a long word may be broken behind them
MOST_LINES = 6
LEGEND_SIZE = 8  # points
LEAST_TITLE = 5.0  # inches that a long title may take over a small picture


def wrapped(text: str, characters: int = WRAP) -> str:
    """A text in the lines of a box; words are broken behind marks such as "_" and "/", and nowhere else."""
    words = [part for word in WORD.findall(visible(text, lines=False)) for part in _pieces(word, characters)]
    lines: list[str] = []
    for piece, space in words:
        if lines and len(lines[-1]) + len(space) + len(piece) <= characters:
            lines[-1] += space + piece
        else:
            lines.append(piece)
    if len(lines) > MOST_LINES:  # the end says more than the middle: there stands the threshold
        lines = [*lines[: MOST_LINES - 2], "…", lines[-1]]
    return "\n".join(lines)


def _pieces(word: str, characters: int) -> list[tuple[str, str]]:
    """The parts of a word that may stand in lines of their own, each with what joins it to the part before."""
    parts = [word] if len(word) <= characters or word[0] == "[" else [part for part in MARKS.split(word) if part]
    return [(short_name(part), "" if k else " ") for k, part in enumerate(parts)]


def packed(lines: Iterable[str], characters: int) -> list[str]:
    """The same statements in fewer lines, where several have room in one."""
    out: list[str] = []
    for line in lines:
        if out and len(out[-1]) + 2 + len(line) <= characters:
            out[-1] += f"; {line}"
        else:
            out.append(line)
    return out


def ink(face) -> str:
    """Black or white, whichever reads better on a colour (relative luminance, WCAG 2)."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(face))
    linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "black" if linear @ [0.2126, 0.7152, 0.0722] > 0.179 else "white"


def broken_title(title, width: float, fontsize: float, fixed: bool = False) -> tuple[str, float]:
    """A title in lines that fit over a tree of this width in inches, and the width: wider where the title is long.

    A ``fixed`` width stays.
    """
    if not title:
        return "", width
    text = visible(str(title))
    per_inch = 72 / (0.52 * fontsize)  # characters, about
    width = width if fixed else max(width, min(LEAST_TITLE, len(text) / per_inch))
    lines = [textwrap.fill(line, max(12, int(width * per_inch))) for line in text.splitlines()]
    return "\n".join(lines), width


def new_axes(ax: Any, width: float = 6.4, height: float = 4.0) -> Any:
    """The given axes, or those of a new figure (matplotlib is imported here, not with the package)."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


class OneAxes:
    """Base of the displays that draw into one pair of axes.

    Displays of several panels have no base: each makes its figure by its own rule, and they share no line but the names
    ``figure_`` and ``axes_``.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    """

    figure_: Any
    ax_: Any

    def _use(self, ax: Any, width: float = 6.4, height: float = 4.0) -> Any:
        """The axes to draw into, as :func:`new_axes` returns them; kept with their figure."""
        self.ax_ = new_axes(ax, width, height)
        self.figure_ = self.ax_.figure
        return self.ax_


def line_color(k: int) -> str:
    """Colour of the k-th line of a picture; the first is blue."""
    return LINE_COLORS[(k + 3) % len(LINE_COLORS)]


def zero_line(ax: Any) -> None:
    """A dashed line at zero, behind everything else."""
    ax.axhline(0.0, **REFERENCE)


def open_frame(ax: Any) -> None:
    """A frame that is open at the top and at the right."""
    ax.spines[["top", "right"]].set_visible(False)


def short_name(name: object, most: int = LONGEST_NAME) -> str:
    """A name beside or in a picture, cut where it would take the picture's room."""
    text = visible(str(name), lines=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def room_for_names(names: Iterable[object]) -> float:
    """Inches that names beside a picture take more than short ones do, as :func:`short_name` shows them."""
    longest = max((len(short_name(name)) for name in names), default=0)
    return LETTER * max(0, longest - 10)


def row_names(names: Iterable[object], characters: int = BESIDE) -> tuple[list[str], float, float]:
    """The names of a picture's rows in lines, the inches that they take beside it, and those that it is high."""
    texts = [wrapped(str(name), characters) for name in names]
    lines = [text.split("\n") for text in texts]
    row = max(ROW, LINE * max(map(len, lines), default=1))
    return texts, room_for_names(line for text in lines for line in text), BELOW + row * len(texts)


def arm_colors(labels: Iterable[Any], given: Mapping[Any, Any] | None) -> dict[Any, Any]:
    """Colour of every arm: the given one, else one of the palette.

    Raises
    ------
    InputError
        If a colour is given for an arm that there is not.
    """
    labels = list(labels)
    unknown = [label for label in given or {} if label not in labels]
    if unknown:
        raise InputError(f"treatment_colors names {unknown[0]!r}, which the tree does not have; it has {labels}.")
    return {label: (given or {}).get(label, PALETTE[k % len(PALETTE)]) for k, label in enumerate(labels)}


def arm_legend(figure: Any, colors: Mapping[Any, Any], *, loc: str, columns: int = 3, note: str = "") -> None:
    """Add a legend of the arms' colours below the picture."""
    from matplotlib.patches import Patch

    names = [short_name(arm) for arm in colors]
    handles = [Patch(facecolor=color, edgecolor="#333333", linewidth=0.6) for color in colors.values()]
    options: dict[str, Any] = {"loc": loc, "ncols": min(columns, len(names)), "frameon": False, "fontsize": LEGEND_SIZE}
    legend = figure.legend(handles, names, title=note or None, title_fontsize=LEGEND_SIZE, **options)
    for text in (*legend.get_texts(), legend.get_title()):
        text.set_parse_math(False)


def draw_people(ax: Any, shares: pd.DataFrame, unit: str, title: str) -> Any:
    """Draw people, sorted, by their shares (n, K) of treatments, so that settled ones stand together; the image."""
    values = shares.to_numpy()
    if values.shape[1] == 2:
        order = np.argsort(-values[:, 0], kind="stable")
    else:
        order = np.lexsort((-values.max(axis=1), values.argmax(axis=1)))
    image = ax.imshow(values[order].T, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    ax.set_yticks(np.arange(values.shape[1]), [short_name(label) for label in shares.columns], parse_math=False)
    ax.set_xticks([])
    ax.set_xlabel(f"{len(values):,} {unit}, sorted")
    ax.set_title(title, fontsize=10)
    return image
