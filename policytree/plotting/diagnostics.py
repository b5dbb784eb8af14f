"""Pictures of the diagnostics: overlap, balance (love plot), calibration, fit of the outcome models."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import per_treatment
from policytree.diagnostics.calibration import calibration_table, outcome_calibration_table, outcome_fit_table
from policytree.diagnostics.overlap_balance import LARGE_DIFFERENCE, balance_table, overlap_table
from policytree.diagnostics.population_overlap import TargetOverlap
from policytree.exceptions import BalanceWarning, OverlapWarning
from policytree.plotting.common import LINE_COLORS, PALETTE, OneAxes, broken_title, new_axes, short_name
from policytree.weighting.covariates import Covariates

N_BINS = 30
SAME = 1e-9  # propensities that differ by less are the same
WIDTH = 5.0  # inches: a telephone shows as much without scrolling
MARKS = {"marker": "o", "markersize": 3, "capsize": 2, "linewidth": 1}


class OverlapDisplay:
    """Histograms of every treatment's propensity among those who got it and the others.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
    T : column of n labels

    Attributes
    ----------
    table : DataFrame, see :func:`policytree.diagnostics.overlap_table`
    figure_, axes_ : matplotlib Figure and array of K Axes, after :meth:`plot`

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.plotting.diagnostics import OverlapDisplay
    >>> T = ["drug", "drug", "none", "none"]
    >>> propensity = pd.DataFrame({"drug": [0.8, 0.6, 0.4, 0.2], "none": [0.2, 0.4, 0.6, 0.8]})
    >>> display = OverlapDisplay(propensity, T).plot()
    >>> len(display.figure_.axes)
    2
    """

    @aligns_rows
    def __init__(self, propensity: pd.DataFrame, T: Column, *, floor: float = 0.01):
        values, self._arm, labels = per_treatment(propensity, T)
        self.propensity, self.floor = pd.DataFrame(values, columns=labels), floor
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)  # the picture shows it
            self.table = overlap_table(propensity, T, floor=floor)

    def plot(self, *, bins: int = N_BINS) -> OverlapDisplay:
        """Draw one panel per treatment on a new figure; a line where everybody had the same probability."""
        self.figure_ = draw_overlap(overlap_panels(self.propensity, self._arm, self.table, bins), self.floor)
        self.axes_ = np.array(self.figure_.axes)
        return self


class TargetOverlapDisplay(OneAxes):
    """Histograms of the probability of being of the study, among people of the study and of the target.

    Parameters
    ----------
    overlap : TargetOverlap

    Attributes
    ----------
    figure_, ax_ : matplotlib Figure and Axes, after :meth:`plot`

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.diagnostics import target_overlap
    >>> from policytree.study import Population
    >>> rng = np.random.default_rng(0)
    >>> everybody = pd.DataFrame({"risk": rng.normal(size=200), "arm": rng.integers(2, size=200)})
    >>> everybody["score"], inside = everybody["risk"] * everybody["arm"], np.arange(200) < 120
    >>> study = Study(everybody[inside], treatment="arm", outcome="score", population=Population(everybody[~inside]))
    >>> model = RewardEstimator(random_state=0).fit(study)
    >>> display = target_overlap(model, everybody[["risk"]], study=inside).plot()
    >>> display.ax_.get_xlabel()
    'probability of being of the study'
    """

    def __init__(self, overlap: TargetOverlap):
        self.overlap = overlap

    def plot(self, *, ax: Any = None, bins: int = N_BINS) -> TargetOverlapDisplay:
        """Draw both histograms, on a new figure unless axes are given."""
        found, edges = self.overlap, np.linspace(0.0, 1.0, bins + 1)
        ax = self._use(ax, WIDTH, 2.8)
        target, study = (np.histogram(found.participation[side], edges)[0] for side in (~found.study, found.study))
        ax.stairs(_density(target.tolist(), edges), edges, fill=True, color="#BBBBBB", label="target")
        ax.stairs(_density(study.tolist(), edges), edges, linewidth=1.8, color=PALETTE[4], label="study")
        title = f"{found.n_study:,} rows of the study, weighted to the target as good as {found.effective_rows:,.0f}"
        ax.set_title(broken_title(title, WIDTH, 10)[0], loc="left", fontsize=9, parse_math=False)
        ax.set_xlabel("probability of being of the study")
        ax.set_yticks([])
        ax.legend(fontsize=8, frameon=False)
        return self


def overlap_panels(propensity: pd.DataFrame, arm: np.ndarray, table: pd.DataFrame, bins: int = N_BINS) -> list[dict]:
    """Return the content of :func:`draw_overlap`: counts of propensities in bins, no row of the data.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
    arm : ndarray of shape (n,)
        Position of each row's treatment.
    table : DataFrame
        From :func:`policytree.diagnostics.overlap_table`.
    bins : int

    Returns
    -------
    list of dict, one per treatment
        title; edges of the bins; got and others, the counts; or constant, where all rows have the same propensity.
    """
    edges, panels = np.linspace(0.0, max(1e-9, float(propensity.to_numpy().max())), bins + 1), []
    for k, (label, row) in enumerate(table.iterrows()):
        values, got = propensity.iloc[:, k].to_numpy(), arm == k
        title = f"{short_name(label)}: {row['rows']:.0f} rows, after weighting as good as {row['effective_rows']:.0f}"
        if row["share_at_floor"] > 0.0:
            title += f"; {row['share_at_floor']:.1%} of all at min_propensity"
        counts = {
            name: np.histogram(values[side], edges)[0].tolist() for name, side in (("got", got), ("others", ~got))
        }
        constant = float(values[0]) if np.ptp(values) < SAME else None
        panels.append({"title": title, "edges": edges.tolist(), **counts, "constant": constant})
    return panels


def draw_overlap(panels: list[dict], floor: float):
    """A new figure with a panel for each of :func:`overlap_panels`."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(panels), 1, figsize=(WIDTH, 1.5 + 1.4 * len(panels)), sharex=True, layout="constrained", squeeze=False
    )
    for panel, ax in zip(panels, axes[:, 0], strict=True):
        if panel["constant"] is not None:
            ax.axvline(panel["constant"], color=PALETTE[4], linewidth=2.5, label="everybody")
            ax.set_xlim(0.0, 1.0)
        else:
            edges = np.array(panel["edges"])
            others, got = (_density(panel[name], edges) for name in ("others", "got"))
            ax.stairs(others, edges, fill=True, color="#BBBBBB", label="others")
            ax.stairs(got, edges, linewidth=1.8, color=PALETTE[4], label="got it")
            ax.axvline(floor, color=PALETTE[5], linewidth=1, linestyle="--", label="min_propensity")
        ax.set_title(broken_title(panel["title"], WIDTH, 10)[0], loc="left", fontsize=9, parse_math=False)
        ax.set_yticks([])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    axes[-1, 0].set_xlabel("propensity")
    return figure


def _density(counts: list[int], edges: np.ndarray) -> np.ndarray:
    """Counts as a density, so that few and many rows can be compared."""
    return np.array(counts) / (max(sum(counts), 1) * np.diff(edges))


class CovariateBalanceDisplay(OneAxes):
    """Love plot: absolute standardised differences before and after weighting, the largest over all comparisons.

    Parameters
    ----------
    table : DataFrame
        From :func:`policytree.diagnostics.balance_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics import balance_table
    >>> from policytree.plotting.diagnostics import CovariateBalanceDisplay
    >>> X = pd.DataFrame({"age": [30, 40, 50, 60], "female": [0, 1, 0, 1]})
    >>> table = balance_table(["drug", "drug", "none", "none"], X=X)
    >>> display = CovariateBalanceDisplay(table).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['female', 'age']
    """

    def __init__(self, table: pd.DataFrame):
        self.table = table

    def plot(self, *, ax: Any = None) -> CovariateBalanceDisplay:
        """Draw; ``ax_`` and ``figure_`` are set."""
        self._use(draw_balance(largest_differences(self.table), ax))
        return self


def balance_display(T: Column, X: Table, propensity: pd.DataFrame | None) -> CovariateBalanceDisplay:
    """Of covariates with one line each for two values, weighted where chances differ; not drawn yet."""
    if propensity is not None and (np.ptp(propensity.to_numpy(), axis=0) < SAME).all():
        propensity = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BalanceWarning)  # the picture shows it
        table = balance_table(T, X=X, propensity=propensity)
    return CovariateBalanceDisplay(
        table.drop(index=Covariates.fit(X).second_levels(), level="covariate", errors="ignore")
    )


def largest_differences(table: pd.DataFrame) -> pd.DataFrame:
    """The largest absolute difference of every covariate of a balance table, over all comparisons."""
    return table.filter(like="difference_").abs().groupby(level="covariate", sort=False).max()


def draw_balance(size: pd.DataFrame, ax: Any = None, what: str = "treatment"):
    """Axes with a line for each covariate of :func:`largest_differences` of two ``what``, the largest on top."""
    size = size.sort_values("difference_before")
    ax = new_axes(ax, WIDTH, 1.4 + 0.22 * len(size))
    at, weighted = np.arange(len(size)), "difference_after" in size
    ax.scatter(size["difference_before"], at, facecolors="none", edgecolors=PALETTE[5], label="before weighting")
    if weighted:
        ax.scatter(size["difference_after"], at, color=PALETTE[4], label="after weighting")
        ax.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)  # on no point
    ax.axvline(LARGE_DIFFERENCE, color="#999999", linestyle="--", linewidth=1)
    ax.set_yticks(at, [short_name(name) for name in size.index], parse_math=False)
    most = float(np.nanmax(size.to_numpy(), initial=LARGE_DIFFERENCE))
    ax.set_xlim(-0.03 * most, 1.06 * most)  # no point on the frame
    ax.set_xlabel(f"largest standardised difference\nbetween two {what}s")
    return ax


class CalibrationDisplay(OneAxes):
    """Observed share against predicted propensity, one line per treatment, with 95 % bands.

    Parameters
    ----------
    table : DataFrame
        From :func:`policytree.diagnostics.calibration.calibration_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics.calibration import calibration_table
    >>> from policytree.plotting.diagnostics import CalibrationDisplay
    >>> T = ["drug", "drug", "none", "none"]
    >>> propensity = pd.DataFrame({"drug": [0.8, 0.6, 0.4, 0.2], "none": [0.2, 0.4, 0.6, 0.8]})
    >>> CalibrationDisplay(calibration_table(propensity, T, n_bins=2)).plot().ax_.get_xlabel()
    'propensity'
    """

    def __init__(self, table: pd.DataFrame):
        self.table = table

    def plot(self, *, ax: Any = None) -> CalibrationDisplay:
        """Draw; ``ax_`` and ``figure_`` are set."""
        ax = self._use(ax, 4.8, 4.8)
        for k, (label, part) in enumerate(self.table.groupby(level="treatment", sort=False)):
            error = 1.96 * part["standard_error"]
            style = MARKS | {"color": LINE_COLORS[k % len(LINE_COLORS)], "marker": "osD^v"[k // len(LINE_COLORS) % 5]}
            ax.errorbar(part["predicted"], part["observed"], yerr=error, label=str(label), **style)
        top = float(self.table[["predicted", "observed"]].max().max()) * 1.05
        ax.plot([0.0, top], [0.0, top], color="#999999", linestyle="--", linewidth=1)
        ax.set_xlabel("propensity")
        ax.set_ylabel("share that got the treatment")
        ax.legend(fontsize=8, frameon=False)
        return self


def calibration_display(propensity: pd.DataFrame, T: Column, **options: Any) -> CalibrationDisplay:
    """Of propensities, without the table's warnings; not drawn yet."""
    with warnings.catch_warnings():
        # the picture shows it
        warnings.filterwarnings("ignore", message="In .* bins the share", category=UserWarning)
        return CalibrationDisplay(calibration_table(propensity, T, **options))


class OutcomeFitDisplay:
    """Mean outcome against out-of-fold prediction, one panel per treatment, with 95 % intervals of the mean.

    Parameters
    ----------
    regression : DataFrame of shape (n, K)
        Out of fold, as ``RewardEstimator.regression_``.
    Y : column of n numbers
    T : column of n labels
    n_bins : int
        Bins of equal size by prediction.

    Attributes
    ----------
    table : DataFrame, see :func:`policytree.diagnostics.calibration.outcome_fit_table`
    bins : DataFrame, see :func:`policytree.diagnostics.calibration.outcome_calibration_table`
    figure_, axes_ : matplotlib Figure and array of K Axes, after :meth:`plot`

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.plotting.diagnostics import OutcomeFitDisplay
    >>> T = ["drug", "drug", "none", "none"]
    >>> regression = pd.DataFrame({"drug": [1.0, 3.0, 1.0, 3.0], "none": [0.0, 2.0, 0.0, 2.0]})
    >>> display = OutcomeFitDisplay(regression, [1.5, 3.5, 0.0, 2.0], T, n_bins=2).plot()
    >>> len(display.figure_.axes)
    2
    """

    @aligns_rows
    def __init__(self, regression: pd.DataFrame, Y: Column, T: Column, *, n_bins: int = 10):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The outcome model does not fit", category=UserWarning)
            self.table = outcome_fit_table(regression, Y, T)
        self.bins = outcome_calibration_table(regression, Y, T, n_bins=n_bins)

    def plot(self) -> OutcomeFitDisplay:
        """Draw one panel per treatment on a new figure."""
        import matplotlib.pyplot as plt

        shown = self.table[self.table["rows"] > 0]
        columns = min(3, len(shown))
        rows = -(-len(shown) // columns)
        self.figure_, axes = plt.subplots(
            rows, columns, figsize=(0.6 + 2.7 * columns, 0.4 + 2.7 * rows), layout="constrained", squeeze=False,
            sharex=True, sharey=True,
        )  # fmt: skip
        self.axes_ = axes.ravel()[: len(shown)]
        for spare in range(len(shown), axes.size):
            axes.ravel()[spare].remove()
            axes.ravel()[spare - columns].tick_params(labelbottom=True)  # now the lowest of its column
        for ax, (label, row) in zip(self.axes_, shown.iterrows(), strict=True):
            part = self.bins.loc[[label]]
            error = 1.96 * part["standard_error"].fillna(0.0)  # a bin of one row has no standard error
            ax.errorbar(part["predicted"], part["observed"], yerr=error, color=PALETTE[4], **MARKS)
            r2 = "" if np.isnan(row["r2"]) else f", R\N{SUPERSCRIPT TWO} {row['r2']:.2f}"
            ax.set_title(f"{label}: {row['rows']:.0f} rows{r2}", loc="left", fontsize=9)
        for ax in self.axes_:
            ax.axline((part["predicted"].iloc[0],) * 2, slope=1.0, color="#999999", linestyle="--", linewidth=1)
        self.figure_.supxlabel("predicted outcome, out of fold", fontsize=10)
        self.figure_.supylabel("mean outcome", fontsize=10)
        return self
