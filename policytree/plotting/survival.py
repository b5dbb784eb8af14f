"""Curves of events by treatment, with the numbers at risk below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column
from policytree.common.validation import (
    arm_column,
    check_level,
    group_codes,
    is_real,
    numbers,
    treatment_codes,
    weights,
)
from policytree.exceptions import InputError, quoted
from policytree.plotting.common import OneAxes, line_color, open_frame, short_name
from policytree.weighting.time_to_event.curves import EventCurve, at_risk, event_curve
from policytree.weighting.time_to_event.outcome import TimeToEvent, is_structured, split_structured, time_to_event

EVERYBODY = "everybody"
STYLES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
BAND = 0.16  # opacity of intervals
MOST_BANDS = 2  # of more curves the bands could not be told apart: then intervals stand at a few times
PLACES = 4
BEYOND = 1.05  # of the horizon, up to which curves are shown
WIDE = 5.6  # inches of a figure of its own
LINE_HEIGHT = 12.5  # points between lines of numbers at risk
GAP = 44.0  # points from the axis down to them, below its label
NAME_LETTERS = 44
WHOLE = 100.0  # from which end on times below the axis have no decimals


@dataclass(frozen=True, slots=True)
class GroupCurve:
    """One curve with its name and how many are at risk.

    Attributes
    ----------
    name : str
    curve : EventCurve
    at_risk : ndarray of shape (m,), int
        At the times that the picture names.
    """

    name: str
    curve: EventCurve
    at_risk: np.ndarray


def group_curves(
    times: TimeToEvent,
    arm: np.ndarray,
    names: Sequence[object] | np.ndarray,
    end: float,
    at: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    level: float = 0.95,
) -> tuple[GroupCurve, ...]:
    """The curve of every treatment that some row (of positive weight) got.

    Parameters
    ----------
    times : TimeToEvent
    arm : ndarray of shape (n,)
        Position of each row's treatment in ``names``.
    names : sequence of K labels
    end : float
        Last time of the curves.
    at : ndarray of shape (m,)
        Times at which rows at risk are counted.
    weight, groups : ndarray of shape (n,), or None
    level : float
        Coverage of the pointwise intervals.
    """
    out = []
    for k, name in enumerate(names):
        own = np.flatnonzero((arm == k) & (True if weight is None else weight > 0.0))
        if not len(own):
            continue
        part = times.rows(own)
        of_rows = {key: None if v is None else v[own] for key, v in (("weight", weight), ("groups", groups))}
        curve = event_curve(part, end, level=level, **of_rows)
        out.append(GroupCurve(str(name), curve, at_risk(part, at)))
    return tuple(out)


class KaplanMeierDisplay(OneAxes):
    """Curves of Kaplan and Meier by treatment: the share without event over time, and how many are still at risk.

    Parameters
    ----------
    curves : tuple of GroupCurve
        From :meth:`from_data`.
    at : ndarray of shape (m,)
        Times at which the numbers at risk are given.
    horizon : float, optional
        A time to mark.
    cumulative : bool
        Whether the curves are cumulative incidences of one of several causes, which rise.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.plotting.survival import KaplanMeierDisplay
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.choice(["drug", "none"], size=200)
    >>> days, lost = rng.exponential(300, size=200), rng.uniform(0, 900, size=200)
    >>> display = KaplanMeierDisplay.from_data(np.minimum(days, lost), days <= lost, arm, horizon=600, xlabel="days")
    >>> [curve.name for curve in display.curves], display.ax_.get_ylabel()
    (['drug', 'none'], 'share without event')
    """

    def __init__(
        self, curves: tuple[GroupCurve, ...], at: np.ndarray, horizon: float | None = None, cumulative: bool = False
    ):
        self.curves, self.at, self.horizon, self.cumulative = curves, at, horizon, cumulative

    @classmethod
    @aligns_rows
    def from_data(
        cls,
        time: Column,
        event: Column | None = None,
        T: Column | None = None,
        *,
        entry: Column | None = None,
        cause: Any = None,
        horizon: float | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        level: float = 0.95,
        ax: Any = None,
        **options: Any,
    ) -> KaplanMeierDisplay:
        """Estimate the curves and draw them at once.

        Parameters
        ----------
        time : column of n numbers >= 0
            Time to the event or to censoring. A structured array with a boolean and a numeric field, as
            scikit-survival's ``Surv`` makes them, says ``event`` as well.
        event : column of n values
            1 (or True) where the event was seen, 0 where the row was censored then; with ``cause``, 0 for censored and
            other values for the causes.
        T : column of n labels, optional
            Treatments, a curve each; one curve of everybody without.
        entry : column of n numbers, optional
            Times from which on rows were under observation (left truncation).
        cause : optional
            The value of ``event`` to show, where there are several causes: the curves are then the cumulative
            incidences of that cause (Aalen and Johansen), which take the other causes into account.
        horizon : float, optional
            A time to mark; curves end shortly after it. Without it they go on to the end of follow-up.
        sample_weight, groups : columns of shape (n,), optional
            Weights >= 0; clusters. Intervals allow for both. The numbers at risk are rows.
        level : float
            Coverage of the intervals at every single time; they are symmetric for log(-log(share)).
        ax : matplotlib Axes, optional
        **options
            As in :meth:`plot`.

        Returns
        -------
        KaplanMeierDisplay

        Raises
        ------
        InputError
            If a column cannot be used.
        """
        check_level(level)
        if is_structured(time) and event is None:
            time, event = split_structured(time)
        if event is None:
            raise InputError("event is missing; pass 1 where the event was seen and 0 where the row was censored.")
        y = numbers(time, "time")
        if not len(y):
            raise InputError("time has no rows; pass at least one.")
        arm, labels = _arms(T, len(y))
        if horizon is not None and not (is_real(horizon) and not isinstance(horizon, bool) and 0 < horizon < np.inf):
            raise InputError(f"horizon must be a time greater than 0; got {quoted(horizon)}.")
        last = float(y.max())
        if last == 0.0 and horizon is None:
            raise InputError(f"{y.name} is 0 in all rows, so that curves have no length; check it, or name a horizon=.")
        times = time_to_event(
            y, event, entry=entry, cause=cause, horizon=last if horizon is None else horizon, arm=arm,
            treatments=labels, new_rows=True,
        )  # fmt: skip
        w, clusters = weights(sample_weight, len(y), "time"), group_codes(groups, len(y))
        of_rows: dict[str, Any] = {"weight": w, "groups": clusters, "level": level}
        return cls.of(times, arm, labels.tolist(), marked=horizon is not None, **of_rows).plot(ax=ax, **options)

    @classmethod
    def of(
        cls, times: TimeToEvent, arm: np.ndarray, labels: Sequence[object], *, marked: bool = True, **of_rows: Any
    ) -> KaplanMeierDisplay:
        """Of times by treatment, whose horizon is marked; ``of_rows`` as ``group_curves`` takes them; not drawn."""
        at, end = risk_times(times.horizon), shown_until(times, marked)
        curves = group_curves(times, arm, labels, end, at, **of_rows)
        return cls(curves, at, times.horizon if marked else None, times.target.by_cause)

    def plot(
        self,
        *,
        ax: Any = None,
        title: str | None = None,
        xlabel: str = "time",
        ylabel: str | None = None,
        intervals: bool = True,
        numbers_at_risk: bool = True,
    ) -> KaplanMeierDisplay:
        """Draw one curve per treatment; the numbers at risk below the axis say which line is whose.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The numbers at risk take room below them.
        title, ylabel : str, optional
        xlabel : str, default "time"
        intervals : bool, default True
            Draw pointwise intervals: as bands, or at a few times if there are more than two curves.
        numbers_at_risk : bool, default True
            Otherwise a legend names the lines.

        Returns
        -------
        KaplanMeierDisplay
        """
        data = curves_data(self.curves, self.at, self.horizon, self.cumulative, intervals)
        usual = "share with an event of the cause" if self.cumulative else "share without event"
        ax = self._use(ax, WIDE, figure_height(len(self.curves) * numbers_at_risk))
        self.lines_ = draw_curves(ax, data, xlabel, ylabel or usual, numbers_at_risk)
        ax.set_title(title or "", parse_math=False)
        return self


def risk_times(end: float) -> np.ndarray:
    """Times at which the numbers at risk are given: 0, a quarter, half, three quarters and all of the time."""
    return end * np.arange(5) / 4


def shown_until(times: TimeToEvent, marked: bool = True) -> float:
    """Last time that a picture shows: a little after a horizon that is marked, at most the end of follow-up."""
    last = float(times.time.max())
    return min(last, BEYOND * times.horizon) if marked else last


def curves_data(
    curves: Sequence[GroupCurve], at: np.ndarray, horizon: float | None, cumulative: bool, intervals: bool = True
) -> dict[str, Any]:
    """Curves as plain values, for :func:`draw_curves`."""
    lines = []
    for each in curves:
        curve = each.curve
        line = {
            "name": each.name, "x": curve.time.tolist(), "y": curve.share.tolist(), "at_risk": each.at_risk.tolist(),
        }  # fmt: skip
        if intervals:
            ends = (("lower", curve.lower), ("upper", curve.upper))
            line |= {name: [float(v) if np.isfinite(v) else None for v in values] for name, values in ends}
        lines.append(line)
    return {"lines": lines, "at": at.tolist(), "horizon": horizon, "cumulative": cumulative}


def figure_height(n_curves: int) -> float:
    """Inches of a picture with the numbers at risk of so many curves below."""
    return 2.9 + n_curves * (2 * LINE_HEIGHT + 2) / 72 + (0.2 if n_curves else 0.0)


def draw_curves(ax: Any, data: dict[str, Any], xlabel: str, ylabel: str, numbers_at_risk: bool = True) -> list[Any]:
    """Draw the curves of :func:`curves_data`; the lines.

    A treatment keeps its colour and its dashes by its ``place``, where one is given. A line may be ``strong``.
    """
    lines, end, drawn = data["lines"], float(data["at"][-1]), []
    banded = len(lines) <= MOST_BANDS
    for k, line in enumerate(lines):
        color = line_color(line.get("place", k))
        look = {"color": color, "linestyle": _style(line, k)}
        if "lower" in line:
            _draw_interval(ax, line, color, banded, (k + 1) / (len(lines) + 1) * end / PLACES, end)
        width = 2.6 if line.get("strong") else 1.7
        drawn += ax.step(line["x"], line["y"], where="post", label=short_name(line["name"]), linewidth=width, **look)
    right = max(end, *(line["x"][-1] for line in lines))
    ax.set_xlim(-0.01 * right, 1.02 * right)
    ax.set_ylim(*((0.0, None) if data["cumulative"] else (0.0, 1.03)))
    if data["horizon"] is not None:
        ax.axvline(data["horizon"], color="#777777", linewidth=1.0, linestyle=(0, (2, 2)), zorder=0)
        ax.annotate(
            "horizon ", (data["horizon"], 1.0), xycoords=ax.get_xaxis_transform(), ha="right", va="bottom", fontsize=8,
            color="#555555",
        )  # fmt: skip
    ax.set_xticks(data["at"], [f"{t:,.0f}" if end >= WHOLE else f"{t:,.3g}" for t in data["at"]])
    ax.set_xlabel(xlabel, parse_math=False)
    ax.set_ylabel(ylabel, parse_math=False)
    open_frame(ax)
    if numbers_at_risk:
        _write_numbers(ax, data, drawn)
    else:
        for text in ax.legend(frameon=False, fontsize=9).get_texts():
            text.set_parse_math(False)
    return drawn


def _style(line: dict[str, Any], k: int) -> Any:
    """Dashes of the k-th line."""
    return STYLES[line.get("place", k) % len(STYLES)]


def _draw_interval(ax: Any, line: dict[str, Any], color: str, banded: bool, shift: float, end: float) -> None:
    """The pointwise intervals of one curve: a band, or at a few times, beside those of the others."""
    x = np.array(line["x"], dtype=float)
    low, high = (np.array(line[name], dtype=float) for name in ("lower", "upper"))
    if banded:
        ax.fill_between(x, low, high, step="post", color=color, alpha=BAND, linewidth=0)
        return
    at = shift + end * np.arange(PLACES) / PLACES
    k = np.searchsorted(x, at[at <= x[-1]], side="right") - 1
    ax.vlines(at[: len(k)], low[k], high[k], color=color, linewidth=1.3)


def _write_numbers(ax: Any, data: dict[str, Any], drawn: Sequence[Any]) -> None:
    """Two lines of text per curve, below the axis: whose it is, with a piece of its line, and its numbers at risk."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    figure = ax.figure
    small: dict[str, Any] = {"fontsize": 8.5, "clip_on": False, "va": "center"}

    def below(points: float, x: Any) -> Any:
        """Coordinates with ``x`` as in a transform, and zero so many points below the axis."""
        return blended_transform_factory(x, ax.transAxes) + ScaledTranslation(0, -points / 72, figure.dpi_scale_trans)

    ax.text(0.0, 0.0, "number at risk", transform=below(GAP, ax.transAxes), color="#555555", **small)
    for k, (line, shown) in enumerate(zip(data["lines"], drawn, strict=True)):
        top = GAP + LINE_HEIGHT + k * (2 * LINE_HEIGHT + 2)
        sample = Line2D(
            [0.0, 0.1], [0.0, 0.0], transform=below(top, ax.transAxes), color=shown.get_color(),
            linestyle=_style(line, k), linewidth=shown.get_linewidth(), clip_on=False,
        )  # fmt: skip
        ax.add_artist(sample)
        weight = "bold" if line.get("strong") else "normal"
        name = short_name(line["name"], NAME_LETTERS)
        ax.text(0.12, 0.0, name, transform=below(top, ax.transAxes), fontweight=weight, parse_math=False, **small)
        for t, count in zip(data["at"], line["at_risk"], strict=True):
            place = below(top + LINE_HEIGHT, ax.transData)
            ax.text(t, 0.0, f"{count:,}", transform=place, ha="center", **small)


def _arms(T: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Treatments as codes and labels; one of everybody without any."""
    if T is None:
        return np.zeros(n, dtype=np.int64), np.array([EVERYBODY])
    series = arm_column(T)
    if len(series) == n and series.notna().all() and series.nunique() == 1:
        return np.zeros(n, dtype=np.int64), series.unique()
    return treatment_codes(series, n)
