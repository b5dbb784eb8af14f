"""Plots of the nuisance models of a fitted RewardEstimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.exceptions import InputError

if TYPE_CHECKING:
    from policytree.plotting.diagnostics import (
        CalibrationDisplay,
        CovariateBalanceDisplay,
        OutcomeFitDisplay,
        OverlapDisplay,
    )


class NuisancePictures:
    """Pictures of overlap, balance, calibration and fit; of a DRPolicyTree, its ``reward_estimator_`` draws them."""

    min_propensity: float
    method: Any
    propensity_: pd.DataFrame | None
    regression_: pd.DataFrame | None

    def _drawn(self, name: str) -> pd.DataFrame:
        """``propensity_`` or ``regression_``, refused if the method uses none."""
        check_is_fitted(self, "rewards_")
        table = getattr(self, f"{name}_")
        if table is None:
            raise InputError(f"method={self.method!r} uses no {name}, so there is nothing to show.")
        return table

    @aligns_rows
    def plot_overlap(self, T: Column) -> OverlapDisplay:
        """Draw histograms of every treatment's propensity among those who got it and the others.

        Parameters
        ----------
        T : column of n labels
            The treatments of ``fit``.

        Returns
        -------
        OverlapDisplay
            Its ``table`` is that of :func:`policytree.diagnostics.overlap_table`.
        """
        from policytree.plotting.diagnostics import OverlapDisplay

        return OverlapDisplay(self._drawn("propensity"), T, floor=self.min_propensity).plot()

    @aligns_rows
    def plot_balance(self, T: Column, X: Table, *, ax: Any = None) -> CovariateBalanceDisplay:
        """Draw a love plot: how covariates differ between treatments, before and after weighting.

        Of a covariate with two values one is shown: the other differs as much. Where everybody had the same chances
        there is nothing to weight, so that only the differences as they are appear.

        Parameters
        ----------
        T : column of n labels
            The treatments of ``fit``.
        X : table of shape (n, p)
            The covariates to compare.
        ax : matplotlib Axes, optional

        Returns
        -------
        CovariateBalanceDisplay
            Its ``table`` is that of :func:`policytree.diagnostics.balance_table`.
        """
        from policytree.plotting.diagnostics import balance_display

        check_is_fitted(self, "rewards_")
        return balance_display(T, X, self.propensity_).plot(ax=ax)

    @aligns_rows
    def plot_calibration(
        self,
        T: Column,
        *,
        n_bins: int = 10,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        ax: Any = None,
    ) -> CalibrationDisplay:
        """Draw the observed share against the predicted propensity, one line per treatment, with 95 % bands.

        Parameters
        ----------
        T : column of n labels
            The treatments of ``fit``.
        n_bins : int, default 10
            Bins of equal size by prediction.
        sample_weight, groups : columns of shape (n,), optional
            Those of ``fit``.
        ax : matplotlib Axes, optional

        Returns
        -------
        CalibrationDisplay
            Its ``table`` is that of :func:`policytree.diagnostics.calibration.calibration_table`.
        """
        from policytree.plotting.diagnostics import calibration_display

        options: dict[str, Any] = {"n_bins": n_bins, "sample_weight": sample_weight, "groups": groups}
        return calibration_display(self._drawn("propensity"), T, **options).plot(ax=ax)

    @aligns_rows
    def plot_outcome_fit(self, Y: Column, T: Column, *, n_bins: int = 10) -> OutcomeFitDisplay:
        """Draw the mean outcome against the out-of-fold prediction, one panel per treatment, with 95 % intervals.

        Parameters
        ----------
        Y : column of n numbers
            The outcomes of ``fit``.
        T : column of n labels
            Its treatments.
        n_bins : int, default 10
            Bins of equal size by prediction.

        Returns
        -------
        OutcomeFitDisplay
            Its ``table`` and ``bins`` have the numbers.
        """
        from policytree.plotting.diagnostics import OutcomeFitDisplay

        return OutcomeFitDisplay(self._drawn("regression"), Y, T, n_bins=n_bins).plot()
