"""Pictures of the diagnostics: overlap, balance (love plot), calibration."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from policytree.diagnostics import LARGE_DIFFERENCE, balance_table, calibration_table, overlap_table
from policytree.exceptions import InputError, OverlapWarning
from policytree.plotting import PALETTE
from policytree.weighting.inputs import treatment_codes


def _axes(ax, width: float = 6.4, height: float = 4.0):
    """The given axes, or those of a new figure (matplotlib is imported here, not with the package)."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


class OverlapDisplay:
    """Histograms of every treatment's propensity among those who got it and the others.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
    T : column of n labels

    Attributes
    ----------
    table : DataFrame, see :func:`overlap_table`
    figure_, axes_ : matplotlib Figure and array of K Axes, after :meth:`plot`
    """

    def __init__(self, propensity: pd.DataFrame, T, *, floor: float = 0.01):
        self.propensity, self.floor = propensity, floor
        self._arm = treatment_codes(T, len(propensity), propensity.columns.to_numpy())[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)  # the picture shows it
            self.table = overlap_table(propensity, T, floor=floor)

    @classmethod
    def from_estimator(cls, estimator, T) -> OverlapDisplay:
        """Of a fitted RewardEstimator and the treatments it was fitted on."""
        if estimator.propensity_ is None:
            raise InputError(f"method={estimator.method!r} uses no propensities, so there is no overlap to show.")
        return cls(estimator.propensity_, T, floor=estimator.min_propensity).plot()

    def plot(self, *, bins: int = 30) -> OverlapDisplay:
        """Draw one panel per treatment on a new figure."""
        import matplotlib.pyplot as plt

        labels = self.propensity.columns
        self.figure_, self.axes_ = plt.subplots(
            len(labels), 1, figsize=(6.4, 1.2 + 1.3 * len(labels)), sharex=True, layout="constrained", squeeze=False
        )
        self.axes_ = self.axes_[:, 0]
        edges = np.linspace(0.0, max(1e-9, float(self.propensity.to_numpy().max())), bins + 1)
        for k, (label, ax) in enumerate(zip(labels, self.axes_, strict=True)):
            got = self._arm == k
            values = self.propensity[label].to_numpy()
            ax.hist(values[~got], edges, density=True, color="#BBBBBB", label="others")
            ax.hist(values[got], edges, density=True, histtype="step", linewidth=1.8, color=PALETTE[4], label="got it")
            ax.axvline(self.floor, color=PALETTE[5], linewidth=1, linestyle="--", label="min_propensity")
            row = self.table.iloc[k]
            ax.set_title(
                f"{label}: {row['rows']:.0f} rows, as good as {row['effective_rows']:.0f}", loc="left", fontsize=9
            )
            ax.set_yticks([])
        self.axes_[0].legend(fontsize=8, frameon=False)
        self.axes_[-1].set_xlabel("propensity")
        return self


class CovariateBalanceDisplay:
    """Love plot: absolute standardised differences before and after weighting, the largest over all comparisons.

    Parameters
    ----------
    table : DataFrame
        From :func:`balance_table`.
    """

    def __init__(self, table: pd.DataFrame):
        self.table = table

    @classmethod
    def from_estimator(cls, estimator, T, X, *, ax=None) -> CovariateBalanceDisplay:
        """Of a fitted RewardEstimator, the treatments and the covariates to compare."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the picture shows it
            table = balance_table(X, T, propensity=estimator.propensity_)
        return cls(table).plot(ax=ax)

    def plot(self, *, ax=None) -> CovariateBalanceDisplay:
        """Draw; ``ax_`` and ``figure_`` are set."""
        size = self.table.filter(like="difference_").abs().groupby(level="covariate", sort=False).max()
        size = size.sort_values("difference_before")
        self.ax_ = ax = _axes(ax, height=1.2 + 0.22 * len(size))
        self.figure_ = ax.figure
        at = np.arange(len(size))
        ax.scatter(size["difference_before"], at, facecolors="none", edgecolors=PALETTE[5], label="before weighting")
        if "difference_after" in size:
            ax.scatter(size["difference_after"], at, color=PALETTE[4], label="after weighting")
        ax.axvline(LARGE_DIFFERENCE, color="#999999", linestyle="--", linewidth=1)
        ax.set_yticks(at, size.index)
        ax.set_xlim(left=0.0)
        ax.set_xlabel("largest standardised difference between two treatments")
        ax.legend(fontsize=8, frameon=False, loc="lower right")
        return self


class CalibrationDisplay:
    """Observed share against predicted propensity, one line per treatment, with 95 % bands of the prediction.

    Parameters
    ----------
    table : DataFrame
        From :func:`calibration_table`.
    """

    def __init__(self, table: pd.DataFrame):
        self.table = table

    @classmethod
    def from_estimator(cls, estimator, T, *, n_bins: int = 10, ax=None) -> CalibrationDisplay:
        """Of a fitted RewardEstimator and the treatments it was fitted on."""
        return cls(calibration_table(estimator.propensity_, T, n_bins=n_bins)).plot(ax=ax)

    def plot(self, *, ax=None) -> CalibrationDisplay:
        """Draw; ``ax_`` and ``figure_`` are set."""
        self.ax_ = ax = _axes(ax, 4.8, 4.8)
        self.figure_ = ax.figure
        for k, (label, part) in enumerate(self.table.groupby(level="treatment", sort=False)):
            error = 1.96 * part["standard_error"]
            style = {"marker": "o", "markersize": 3, "capsize": 2, "linewidth": 1, "color": PALETTE[k % len(PALETTE)]}
            ax.errorbar(part["predicted"], part["observed"], yerr=error, label=str(label), **style)
        top = float(self.table[["predicted", "observed"]].max().max()) * 1.05
        ax.plot([0.0, top], [0.0, top], color="#999999", linestyle="--", linewidth=1)
        ax.set_xlabel("propensity")
        ax.set_ylabel("share that got the treatment")
        ax.legend(fontsize=8, frameon=False)
        return self
