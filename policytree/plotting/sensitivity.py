"""Pictures of what a hidden confounder could do: bounds against its strength."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.common.validation import check_choice, is_real
from policytree.evaluation.formatting import decimals
from policytree.evaluation.inference.partial_identification import Bounds
from policytree.evaluation.leaves.summary import HELD_OUT
from policytree.evaluation.sensitivity.marginal import SHARP, SIMPLE, MarginalSensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds
from policytree.exceptions import InputError, quoted
from policytree.plotting.common import PALETTE, OneAxes, line_color, open_frame, zero_line

MARKERS = "osD^vP"
LARGEST_SHARE = 0.95  # of the axes of strengths
GRID = 61


def _rows_note(rows: str) -> str:
    """Describe the rows for the title."""
    return "held out" if rows == HELD_OUT else f"{rows}: flattered"


class MarginalSensitivityDisplay(OneAxes):
    """Bounds of a value or an advantage against Gamma.

    Parameters
    ----------
    result : MarginalSensitivity
        From :func:`policytree.evaluation.marginal_sensitivity`; give it enough ``gammas`` for smooth curves.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import marginal_sensitivity
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 50))
    >>> Y = 1.0 * (T == "drug") + rng.normal(size=100)
    >>> result = marginal_sensitivity("drug", Y, T, propensity=0.5, baseline="none", n_bootstrap=50, random_state=0)
    >>> result.plot().ax_.get_xlabel()
    'Gamma: factor on the odds of treatment by what is hidden'
    """

    def __init__(self, result: MarginalSensitivity):
        self.result = result

    def plot(
        self, *, ax: Any = None, title: str | None = None, ylabel: str | None = None
    ) -> MarginalSensitivityDisplay:
        """Draw the sharp bounds as a band, the simple ones as lines, the interval around the first kind dotted.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        title, ylabel : str, optional

        Returns
        -------
        MarginalSensitivityDisplay
        """
        result = self.result
        ax = self._use(ax)
        kinds = result.kinds
        first = next(iter(kinds))
        gamma = np.array(result.gammas)
        low, _ = _draw_band(ax, gamma, kinds[first], f"{first} bounds")
        if first == SHARP:
            for values, label in zip(_ends(kinds[SIMPLE]), (f"{SIMPLE} bounds", None), strict=True):
                ax.plot(gamma, values, color=PALETTE[5], linestyle="--", linewidth=1.2, label=label)
        if result.rows == HELD_OUT:
            _draw_interval(ax, gamma, kinds[first], f"{100 * result.level:g}% interval of the {first} bounds")
        if result.tipping:
            zero_line(ax)
            tipping = result.tipping[first].bounds
            if 1.0 < tipping <= gamma[-1]:  # the words stand inside the bounds
                _mark_zero(ax, tipping, f"Gamma {tipping:.2f}", 8 if low[0] > 0 else -14)
        ax.set_xscale("log")
        self._ticks(ax, gamma)
        ax.set_xlabel("Gamma: factor on the odds of treatment by what is hidden")
        ax.set_ylabel(ylabel or result.what)
        ax.set_title(title or f"{result.n:,} rows, {_rows_note(result.rows)}", fontsize=10)
        ax.legend(fontsize=8, frameon=False, loc="lower left" if result.tipping else "best")
        open_frame(ax)
        return self

    @staticmethod
    def _ticks(ax, gamma: np.ndarray) -> None:
        """A few round numbers, as they are."""
        round_ones = [1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0]
        shown = [g for g in round_ones if gamma[0] <= g <= gamma[-1]] or [float(gamma[0])]
        ax.set_xticks(shown, [f"{g:g}" for g in shown])
        ax.set_xticks([], minor=True)


def _ends(bounds: tuple[Bounds, ...], prefix: str = "") -> tuple[list[float], list[float]]:
    lower, upper = ([getattr(b, f"{prefix}{end}") for b in bounds] for end in ("lower", "upper"))
    return lower, upper


def _draw_band(ax, x: np.ndarray, bounds: tuple[Bounds, ...], label: str) -> tuple[list[float], list[float]]:
    """The bounds as a band; their lower and upper ends."""
    ends = _ends(bounds)
    ax.fill_between(x, *ends, color=PALETTE[1], alpha=0.5, linewidth=0, label=label)
    return ends


def _draw_interval(ax, x: np.ndarray, bounds: tuple[Bounds, ...], label: str) -> None:
    """Both ends of the interval around the bounds, dotted."""
    for values, name in zip(_ends(bounds, "interval_"), (label, None), strict=True):
        ax.plot(x, values, color=PALETTE[4], linestyle=":", linewidth=1.5, label=name)


def _mark_zero(ax, x: float, text: str, up: int) -> None:
    """A dot and a text, so many points above it, where the bounds reach zero."""
    ax.plot([x], [0.0], "o", color="black", markersize=5, zorder=4)
    ax.annotate(text, (x, 0.0), xytext=(6, up), textcoords="offset points", fontsize=9)


class OmittedVariableDisplay(OneAxes):
    """How far an omitted variable of any strength moves a value or an advantage, with covariates to compare.

    Parameters
    ----------
    result : OmittedVariableBounds
        From :func:`policytree.evaluation.omitted_variable_bounds`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.evaluation import omitted_variable_bounds
    >>> rng = np.random.default_rng(0)
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = 1.0 * (T == "drug") + rng.normal(size=200)
    >>> regression = pd.DataFrame({"drug": np.ones(200), "none": np.zeros(200)})
    >>> known = {"propensity": 0.5, "regression": regression}
    >>> bounds = omitted_variable_bounds("drug", Y, T, **known, baseline="none", random_state=0)
    >>> bounds.plot().ax_.get_xlabel()
    'cf_d: share of the squared weights due to the omitted variable'
    """

    def __init__(self, result: OmittedVariableBounds):
        self.result = result

    def plot(
        self, *, ax: Any = None, kind: str = "contour", largest: float | None = None, title: str | None = None
    ) -> OmittedVariableDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {"contour", "curve"}
            "contour": the bound nearest to zero (the lower one of a positive estimate) for every pair of strengths,
            the line where it is zero, and the benchmarks at every multiple. "curve": both bounds and the interval, for
            equal strengths on outcome and treatment.
        largest : float in (0, 1), optional
            End of the axes; by default what shows the benchmarks and the robustness value.
        title : str, optional

        Returns
        -------
        OmittedVariableDisplay

        Raises
        ------
        InputError
            If ``kind`` or ``largest`` is unknown.
        """
        check_choice(kind, "kind", ("contour", "curve"))
        if largest is not None and not (is_real(largest) and 0.0 < largest < 1.0):
            raise InputError(f"largest must lie between 0 and 1; got {quoted(largest)}.")
        ax = self._use(ax, 5.4, 4.6)
        if kind == "contour":
            self._contour(ax, largest)
        else:
            self._curve(ax, largest or self._reach())
        ax.set_title(title or f"{self.result.what}, {self.result.estimate.n:,} rows, {_rows_note(self.result.rows)}",
                     fontsize=10)  # fmt: skip
        return self

    def _reach(self) -> float:
        value = self.result.robustness_value
        return float(np.clip(2.0 * value, 0.02, LARGEST_SHARE)) if np.isfinite(value) else 0.3

    def _points(self) -> list[tuple[str, float, float, float]]:
        """Name, multiple, cf_d, cf_y of every benchmark."""
        result = self.result
        pairs = [(b, m, b.strength(m)) for b in result.benchmarks for m in result.multiples]
        return [(b.name, m, cf_d, cf_y) for b, m, (cf_y, cf_d) in pairs]

    def _contour(self, ax, largest: float | None) -> None:
        from matplotlib.ticker import MaxNLocator

        points, reach = self._points(), self._reach()
        shown = ([cf_d for _, _, cf_d, _ in points], [cf_y for _, _, _, cf_y in points])
        ends = [largest or min(LARGEST_SHARE, 1.15 * max([reach, *values])) for values in shown]
        cf_d, cf_y = (np.linspace(0.0, end, GRID) for end in ends)
        result, sign = self.result, 1.0 if self.result.estimate.value >= 0 else -1.0
        size = np.sqrt(cf_y[:, None] * cf_d[None, :] / (1.0 - cf_d[None, :])) * result.scale * abs(result.rho)
        nearest = result.estimate.value - sign * size
        levels = [v for v in MaxNLocator(9).tick_values(nearest.min(), nearest.max()) if v != 0.0]
        digits = decimals([np.ptp(levels) / len(levels) / 2]) if len(levels) > 1 else 2
        lines = ax.contour(cf_d, cf_y, nearest, levels=levels, colors="#888888", linewidths=0.7, linestyles="solid")
        ax.clabel(lines, fontsize=7, fmt=lambda v: f"{v:,.{max(0, digits - 1)}f}")
        if nearest.min() < 0.0 < nearest.max():
            zero = ax.contour(cf_d, cf_y, nearest, levels=[0.0], colors=PALETTE[5], linewidths=2)
            ax.clabel(zero, fontsize=8, fmt={0.0: "0"})
        for j, benchmark in enumerate(result.benchmarks):
            own = [p for p in points if p[0] == benchmark.name]
            color = line_color(j)
            label = f"{', '.join(f'{m:g}' for m in result.multiples)} x {benchmark.name}"
            style = {"color": color, "linewidth": 0.8, "marker": MARKERS[j % len(MARKERS)], "markersize": 5}
            ax.plot([p[2] for p in own], [p[3] for p in own], label=label, clip_on=False, zorder=4, **style)
        ax.set_xlim(0.0, ends[0])
        ax.set_ylim(0.0, ends[1])
        ax.set_xlabel("cf_d: share of the squared weights due to the omitted variable")
        ax.set_ylabel("cf_y: share of the outcome's unexplained variance")
        if result.benchmarks:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13), "ncols": 2}  # inside it would hide lines
            ax.legend(fontsize=8, frameon=False, **below)

    def _curve(self, ax, largest: float) -> None:
        result = self.result
        strength = np.linspace(0.0, largest, GRID)
        bounds = tuple(result.bounds(float(s), float(s)) for s in strength)
        _draw_band(ax, strength, bounds, "bounds")
        if result.rows == HELD_OUT:
            _draw_interval(ax, strength, bounds, f"{100 * result.estimate.level:g}% interval")
        value = result.robustness_value
        if np.isfinite(value):
            zero_line(ax)
            if 0.0 < value <= largest:
                _mark_zero(ax, value, f"{value:.1%}", 8)
        ax.set_xlabel("strength of the omitted variable: cf_y = cf_d")
        ax.set_ylabel(result.what)
        ax.legend(fontsize=8, frameon=False)
        open_frame(ax)
