"""Pictures of rankings and cost curves: whom first, and what a budget buys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from policytree.evaluation.formatting import decimals, interval_text
from policytree.evaluation.leaves.summary import TRAINING_ROWS
from policytree.evaluation.targeting.qini import QiniCurve
from policytree.evaluation.targeting.rate import Ranking
from policytree.plotting.common import OneAxes, line_color, open_frame, zero_line

BAND = 0.18  # opacity of intervals
MOST_BANDS = 2  # of more curves the bands could not be told apart: then intervals stand at a few places
PLACES = 5
FEWEST = 20  # people: the mean of fewer is too noisy to draw


class TOCDisplay(OneAxes):
    """The TOC curve of every priority: how much more the first so many percent gain than everybody.

    Parameters
    ----------
    ranking : Ranking
        From :func:`policytree.evaluation.rank_average_treatment_effect`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import rank_average_treatment_effect
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, size=500)
    >>> scores = np.column_stack([np.zeros(500), (age > 50) + rng.normal(size=500)])
    >>> ranking = rank_average_treatment_effect({"age": age}, scores, held_out=True)
    >>> ranking.plot().ax_.get_xlabel()
    'share treated, by priority'
    """

    def __init__(self, ranking: Ranking):
        self.ranking = ranking

    def plot(
        self, *, ax: Any = None, title: str | None = None, unit: str | None = None, intervals: bool = True
    ) -> TOCDisplay:
        """Draw one line per priority; lines begin at twenty people, since fewer have no stable mean.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        title : str, optional
        unit : str, optional
            Of the outcome, for the label of the axis.
        intervals : bool, default True
            Draw the pointwise intervals of held-out curves: as bands, or at a few places if there are many curves.

        Returns
        -------
        TOCDisplay
        """
        ranking = self.ranking
        ax = self._use(ax)
        digits = decimals(e.standard_error for e in ranking.estimates.values())
        self.lines_ = []
        for k, (name, estimate) in enumerate(ranking.estimates.items()):
            part = ranking.toc[ranking.toc["priority"] == name]
            part = part[part["share"] >= min(FEWEST / estimate.n, 1.0)]
            shown = f"{estimate.value:,.{digits}f}"
            shown += f" {interval_text(estimate, digits)}" if ranking.held_out else f" ({TRAINING_ROWS})"
            curve = part.rename(columns={"share": "x"})
            self.lines_.append(
                _draw(ax, curve, (k, len(ranking.estimates)), f"{name}: {ranking.target} {shown}", intervals)
            )
        ax.set(xlabel="share treated, by priority", title=title or "")
        gain = f"gain over the average{f', {unit}' if unit else ''}"
        _finish(ax, gain if ranking.held_out else f"{gain} ({TRAINING_ROWS})")
        ax.set_xlim(0.0, 1.0)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        return self


class QiniCurveDisplay(OneAxes):
    """Cost curves: what every budget buys, of one plan or of several.

    Parameters
    ----------
    curves : mapping of str to QiniCurve
        From :func:`policytree.evaluation.qini_curve`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import qini_curve
    >>> rng = np.random.default_rng(0)
    >>> effects = np.column_stack([np.zeros(100), rng.normal(size=100)])
    >>> curve = qini_curve(effects, effects, {1: 1.0}, held_out=True)
    >>> curve.plot("forest", beside={}).ax_.get_xlabel()
    'budget per person'
    """

    def __init__(self, curves: Mapping[str, QiniCurve]):
        self.curves = dict(curves)

    def plot(
        self,
        *,
        ax: Any = None,
        title: str | None = None,
        xlabel: str = "budget per person",
        unit: str | None = None,
        intervals: bool = True,
    ) -> QiniCurveDisplay:
        """Draw one line per curve; beyond its last step nothing more is bought, and the line goes on dotted.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        title : str, optional
        xlabel : str, default "budget per person"
        unit : str, optional
            Of the outcome, for the label of the axis.
        intervals : bool, default True
            Draw the pointwise intervals of held-out curves: as bands, or at a few places if there are many curves.

        Returns
        -------
        QiniCurveDisplay
        """
        ax = self._use(ax)
        self.lines_ = []
        end = max(curve.spend.max() for curve in self.curves.values())
        for k, (name, curve) in enumerate(self.curves.items()):
            frame = curve.to_frame().rename(columns={"budget": "x"})
            marked = name if curve.held_out else f"{name} ({TRAINING_ROWS})"
            self.lines_.append(
                _draw(ax, frame, (k, len(self.curves)), marked, intervals, "-" if curve.targeted else "--")
            )
            last = frame.iloc[-1]
            if last["x"] < end:
                color = self.lines_[-1].get_color()
                ax.plot([last["x"], end], [last["value"]] * 2, color=color, linewidth=1.2, linestyle=":")
        baselines = dict.fromkeys(str(curve.baseline) for curve in self.curves.values())
        ax.set(xlabel=xlabel, title=title or "")
        gain = f"gain over {' or '.join(baselines)} for all{f', {unit}' if unit else ''}"
        _finish(ax, gain if any(c.held_out for c in self.curves.values()) else f"{gain} ({TRAINING_ROWS})")
        return self


def _draw(ax, frame: pd.DataFrame, line: tuple[int, int], label: str, intervals: bool, style: str = "-"):
    """The k-th of so many lines, with its intervals if it has any."""
    k, count = line
    color = line_color(k)
    if intervals and np.isfinite(frame["lower"]).any():
        if count <= MOST_BANDS:
            ax.fill_between(frame["x"], frame["lower"], frame["upper"], color=color, alpha=BAND, linewidth=0)
        else:
            places = (np.arange(PLACES) + (k + 1) / (count + 1)) / PLACES  # side by side with those of the others
            at = frame.iloc[np.unique(np.searchsorted(frame["x"], places * frame["x"].max()).clip(0, len(frame) - 1))]
            ax.vlines(at["x"], at["lower"], at["upper"], color=color, linewidth=1.2)
            ax.plot(at["x"], at["value"], color=color, marker="o", markersize=3.5, linestyle="none")
    return ax.plot(frame["x"], frame["value"], color=color, label=label, linewidth=1.8, linestyle=style)[0]


def _finish(ax, ylabel: str) -> None:
    """Add the line at zero, label and legend of both pictures."""
    zero_line(ax)
    ax.set_ylabel(ylabel)
    open_frame(ax)
    ax.legend(frameon=False, fontsize=9)
