"""The picture of a Pareto path: value against a further outcome, a point for each tree, which says its rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.safe_text import visible
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.evaluation.targeting.pareto_path import ParetoPath
from policytree.exceptions import InputError, quoted
from policytree.plotting.budget import axes_beside, points_apart
from policytree.plotting.common import OneAxes, line_color, open_frame
from policytree.plotting.svg import SETTINGS, to_svg
from policytree.serialization import save_text

CORNERS = 4  # corners of the hull whose trees stand beside the picture, if nobody names trees
CLEAR = 0.05  # of the axes, between a number and those of the trees that are shown
POINT = "tree-{}"  # names of points in a picture for a page


class ParetoPathDisplay(OneAxes):
    """Two outcomes of every tree on a Pareto front, on the rows that chose the trees; the chosen tree is marked.

    Full points are best by some weighted sum of both outcomes, hollow ones at no weight.

    Parameters
    ----------
    path : ParetoPath
        From :func:`policytree.evaluation.pareto_path`.
    held_out : DataFrame, optional
        From :meth:`~policytree.evaluation.targeting.pareto_path.ParetoPath.evaluate`: then the chosen tree, or those
        at the hull's corners, are drawn on other people as well, with intervals.
    chosen : int, optional
        Position of the chosen tree, as :meth:`~policytree.evaluation.targeting.pareto_path.ParetoPath.within` and
        :meth:`~policytree.evaluation.targeting.pareto_path.ParetoPath.weighted` return it.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        Of the points.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.evaluation import pareto_path
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    >>> harm = [[0.0, 0.1], [0.0, 0.2], [0.0, 0.1], [0.0, 0.1]]
    >>> path = pareto_path(PolicyTree(max_depth=1), X, rewards, outcomes={"harm": harm})
    >>> path.plot(chosen=path.within(0.05)).ax_.get_xlabel()
    'mean harm (less is better)'
    """

    def __init__(self, path: ParetoPath, held_out: pd.DataFrame | None = None, *, chosen: int | None = None):
        if held_out is not None and len(held_out) != len(path):
            raise InputError(
                f"held_out has {len(held_out)} rows, but the path has {len(path)} trees; evaluate this path."
            )
        if chosen is not None and not (isinstance(chosen, int | np.integer) and 0 <= chosen < len(path)):
            raise InputError(f"chosen must be a position from 0 to {len(path) - 1}, or None; got {quoted(chosen)}.")
        self.path, self.held_out, self.chosen = path, held_out, chosen

    def plot(
        self, *, ax: Any = None, title: str | None = None, unit: str | None = None, trees: Sequence[int] | None = None
    ) -> ParetoPathDisplay:
        """Draw the points, numbered from the best one by the further outcome, and some of the trees beside them.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            For the points alone, without trees.
        title : str, optional
        unit : str, optional
            Of the rewards, for the label of the axis.
        trees : sequence of int, optional
            Numbers of the points (from 1) whose trees are shown; by default the chosen one and its neighbours among the
            corners of the hull, or up to four corners over the whole path.

        Returns
        -------
        ParetoPathDisplay
        """
        path, shown = self.path, self._shown(trees)
        if ax is None:
            ax = axes_beside([self.text(k) for k in shown])
        self._points(self._use(ax), shown)
        less = "more" if path.outcome_direction == "maximize" else "less"
        value = f"mean reward{f', {unit}' if unit else ''}"
        better = "more" if path.direction == "maximize" else "less"
        ax.set_xlabel(f"mean {visible(path.outcome)} ({less} is better)", parse_math=False)
        ax.set_ylabel(f"{value} ({better} is better)", parse_math=False)
        ax.set_title(title or "", parse_math=False)
        open_frame(ax)
        ax.legend(frameon=False, fontsize=9)
        return self

    def text(self, k: int) -> str:
        """Describe the tree at a position of the path: its number, both outcomes and its rule."""
        path = self.path
        mark = " (chosen)" if k == self.chosen else ""
        return (
            f"{k + 1}{mark}: {visible(path.outcome)} {path.outcome_means[k]:.4g}, value {path.values[k]:.4g}\n"
            f"{path.estimators[k].export_text()}"
        )

    def titles(self, trees: Iterable[int]) -> dict[str, str]:
        """By the name of their points, what the path says of the trees at some positions."""
        return {POINT.format(k): self.text(k) for k in trees}

    def to_html(self, file: str | Path | None = None, *, unit: str | None = None) -> str:
        """The picture as an ``<svg>`` element whose points show their tree's rule when one points at them.

        Parameters
        ----------
        file : path, optional
            File to write as well, as a page.
        unit : str, optional
            Of the rewards.

        Returns
        -------
        str
            The element; browsers show the rules without any script.
        """
        import matplotlib.pyplot as plt
        from matplotlib import rc_context

        with rc_context(SETTINGS):
            ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1]
            figure = ParetoPathDisplay(self.path, self.held_out, chosen=self.chosen).plot(ax=ax, unit=unit).figure_
        element = to_svg(figure, front_in_words(self.path), "pareto", self.titles(range(len(self.path))))
        if file is not None:
            head = '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Pareto path</title></head>'
            save_text(file, f"{head}<body>{element}</body></html>\n")
        return element

    def _points(self, ax: Any, shown: list[int]) -> None:
        path = self.path
        data = points_of(path, range(len(path)), self.chosen)
        apart = np.array(points_apart(path.outcome_means, path.values))
        size = [max(np.ptp(each), 1e-300) for each in (path.outcome_means, path.values)]
        at = np.column_stack([path.outcome_means / size[0], path.values / size[1]])
        clear = [k for k in apart if all(np.abs(at[k] - at[j]).max() > CLEAR for j in shown)]
        draw_points(ax, data, {k: k in shown for k in sorted({*clear, *shown})})
        if self.held_out is not None:
            corners = np.flatnonzero(np.isfinite(path.low))
            self._held_out(ax, [self.chosen] if self.chosen is not None else corners.tolist())

    def _held_out(self, ax: Any, trees: list[int]) -> None:
        """Both outcomes on other people, with an interval of each."""
        assert self.held_out is not None
        rows = self.held_out.iloc[trees]
        of = {what: rows[what].to_numpy().T for what in ("value", self.path.outcome)}
        reach = {what: np.abs(each[2:] - each[0]) for what, each in of.items()}
        ax.errorbar(
            of[self.path.outcome][0], of["value"][0], xerr=reach[self.path.outcome], yerr=reach["value"],
            color=line_color(1), marker="s", markersize=4, linewidth=0, elinewidth=1.2, zorder=2,
            label="the chosen tree, held out" if self.chosen is not None else f"full points, {HELD_OUT}",
        )  # fmt: skip

    def _shown(self, trees: Sequence[int] | None) -> list[int]:
        count, corners = len(self.path), np.flatnonzero(np.isfinite(self.path.low)).tolist()
        if trees is not None:
            bad = [k for k in trees if not 1 <= k <= count]
            if bad:
                raise InputError(f"trees names point {bad[0]}; the path has points 1 to {count}.")
            return [int(k) - 1 for k in trees]
        if self.chosen is None:
            return [corners[round(k)] for k in np.linspace(0, len(corners) - 1, min(CORNERS, len(corners)))]
        below = [k for k in corners if k < self.chosen][-1:]
        above = [k for k in corners if k > self.chosen][:1]
        return [*below, int(self.chosen), *above]


def points_of(path: ParetoPath, trees: Iterable[int], chosen: int | None) -> dict[str, Any]:
    """Points of some trees as plain values: positions, both outcomes, and whether each is best at some weight."""
    positions = [int(k) for k in trees]
    return {
        "positions": positions, "x": [float(path.outcome_means[k]) for k in positions],
        "y": [float(path.values[k]) for k in positions], "full": [bool(np.isfinite(path.low[k])) for k in positions],
        "chosen": None if chosen is None else int(chosen),
    }  # fmt: skip


def draw_points(ax: Any, data: Mapping[str, Any], numbered: Mapping[int, bool]) -> None:
    """Draw points as :func:`points_of` gives them; ``numbered`` positions have numbers, some of them bold."""
    color = line_color(0)
    corners = [(x, y) for x, y, full in zip(data["x"], data["y"], data["full"], strict=True) if full]
    ax.plot(*zip(*corners, strict=True), color=color, linewidth=0.8, alpha=0.5, zorder=1)
    labels = {True: f"best at some weight, {TRAINING_ROWS}", False: f"best at no weight, {TRAINING_ROWS}"}
    for k, x, y, full in zip(data["positions"], data["x"], data["y"], data["full"], strict=True):
        (point,) = ax.plot(
            x, y, marker="o", markersize=6 if full else 4.5, linewidth=0, color=color,
            markerfacecolor=color if full else "white", label=labels.pop(full, None), zorder=2,
        )  # fmt: skip
        point.set_gid(POINT.format(k))
        if k in numbered:
            weight = "bold" if numbered[k] else "normal"
            ax.annotate(
                str(k + 1), (x, y), (-3, 6), textcoords="offset points", fontsize=8, ha="right", fontweight=weight
            )
        if k == data["chosen"]:
            ax.plot(
                x, y, marker="o", markersize=13, linewidth=0, markerfacecolor="none", markeredgecolor=line_color(1),
                markeredgewidth=2.0, label="chosen", zorder=3,
            )  # fmt: skip


def front_in_words(path: ParetoPath) -> str:
    """The points of a path for readers who cannot see the picture: those that are best at some weight."""
    corners = np.flatnonzero(np.isfinite(path.low))
    shown = "; ".join(f"{path.outcome_means[k]:.3g} and {path.values[k]:.3g}" for k in corners)
    return f"{len(path)} trees by mean {visible(path.outcome)} and mean reward; those best at some weight have {shown}."
