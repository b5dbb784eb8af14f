"""The picture of a path of budgets: value against spend, with the trees at its corners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.evaluation.targeting.budget_path import BudgetPath
from policytree.exceptions import InputError
from policytree.plotting.common import OneAxes, line_color, open_frame

SHOWN = 3  # trees beside the curve
LINE_HEIGHT = 0.17  # inches, of a tree's text


class BudgetPathDisplay(OneAxes):
    """Value by budget: the hull of (spend, value) on the rows that chose the trees, and values on other rows.

    Parameters
    ----------
    path : BudgetPath
        From :func:`policytree.evaluation.budget_path`.
    held_out : DataFrame, optional
        From :meth:`~policytree.evaluation.targeting.budget_path.BudgetPath.evaluate`: then values on other people
        stand beside those of the training rows.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
        Of the curve.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.evaluation import budget_path
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    >>> path = budget_path(PolicyTree(max_depth=1), X, rewards, budget_costs=[0, 100])
    >>> path.plot().ax_.get_xlabel()
    'spend per person'
    """

    def __init__(self, path: BudgetPath, held_out: pd.DataFrame | None = None):
        if held_out is not None and len(held_out) != len(path):
            raise InputError(
                f"held_out has {len(held_out)} rows, but the path has {len(path)} trees; evaluate this path."
            )
        self.path, self.held_out = path, held_out

    def plot(
        self,
        *,
        ax: Any = None,
        title: str | None = None,
        xlabel: str = "spend per person",
        unit: str | None = None,
        trees: Sequence[int] | None = None,
    ) -> BudgetPathDisplay:
        """Draw the curve, its corners numbered from the cheapest, and some of the trees beside it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            For the curve alone, without trees.
        title : str, optional
        xlabel : str, default "spend per person"
        unit : str, optional
            Of the outcome, for the label of the axis.
        trees : sequence of int, optional
            Numbers of the corners (from 1) whose trees are shown; by default up to three over the whole path.

        Returns
        -------
        BudgetPathDisplay
        """
        if ax is None:
            ax = axes_beside([self._text(k) for k in self._shown(trees)])
        self._curve(self._use(ax))
        value = f"mean reward{f', {unit}' if unit else ''}"
        marked = value if self.held_out is not None else f"{value} ({TRAINING_ROWS})"
        ax.set(xlabel=xlabel, ylabel=marked, title=title or "")
        open_frame(ax)
        ax.legend(frameon=False, fontsize=9)
        return self

    def _curve(self, ax) -> None:
        path = self.path
        color, other = line_color(0), line_color(1)
        ax.plot(
            path.spend,
            path.values,
            color=color,
            marker="o",
            markersize=5,
            linewidth=1.6,
            label=f"trees, {TRAINING_ROWS}",
        )
        numbered = points_apart(path.spend, path.values)
        for k in numbered:
            ax.annotate(str(k + 1), (path.spend[k], path.values[k]), (-3, 6), textcoords="offset points", fontsize=8,
                        ha="right")  # fmt: skip
        if self.held_out is None:
            return
        spend, value = self.held_out["spend"], self.held_out["value"]
        reach = np.abs(value[["lower", "upper"]].to_numpy().T - value["value"].to_numpy())
        ax.errorbar(
            spend["value"], value["value"], yerr=reach, color=other, marker="s", markersize=4, linewidth=0,
            elinewidth=1.2, label=f"the same trees, {HELD_OUT}",
        )  # fmt: skip

    def _shown(self, trees: Sequence[int] | None) -> list[int]:
        count = len(self.path)
        if trees is None:
            return sorted({round(k) for k in np.linspace(0, count - 1, min(SHOWN, count))})
        bad = [k for k in trees if not 1 <= k <= count]
        if bad:
            raise InputError(f"trees names corner {bad[0]}; the path has corners 1 to {count}.")
        return [int(k) - 1 for k in trees]

    def _text(self, k: int) -> str:
        tree = self.path.estimators[k]
        return f"{k + 1}: spends {self.path.spend[k]:.4g} a person\n{tree.export_text()}"


def points_apart(x: np.ndarray, y: np.ndarray) -> list[int]:
    """Positions of points that are far enough from the last one for a number; the ends always."""
    width, height = max(np.ptp(x), 1e-300), max(np.ptp(y), 1e-300)
    kept = [0]
    for k in range(1, len(x)):
        far = max((x[k] - x[kept[-1]]) / width, abs(y[k] - y[kept[-1]]) / height) > 0.05
        if far:
            kept.append(k)
    return kept


def axes_beside(texts: list[str]) -> Any:
    """Axes for the curve, in a figure that has the trees beside them."""
    import matplotlib.pyplot as plt

    lines = "\n\n".join(texts).split("\n")
    wide = 0.075 * max(map(len, lines)) + 0.2
    _, (ax, beside) = plt.subplots(
        1, 2, figsize=(6.4 + wide, max(4.0, LINE_HEIGHT * (len(lines) + 2))), width_ratios=(6.4, wide),
        layout="constrained",
    )  # fmt: skip
    beside.set_axis_off()
    beside.text(0.0, 1.0, "\n".join(lines), va="top", ha="left", family="monospace", fontsize=8, parse_math=False)
    return ax
