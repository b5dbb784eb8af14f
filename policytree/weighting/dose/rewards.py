"""DoseRewards: rewards of the doses of a grid from a continuous treatment, and of a little more for everybody."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self, TypedDict, Unpack, overload

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from policytree.common.callers import stacklevel_outside
from policytree.common.calls import either_order
from policytree.common.nested_parameters import NestedParameters
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Seed, Table
from policytree.common.validation import as_numbers, check_level, group_codes, is_real, is_whole, numbers, weights
from policytree.exceptions import InputError, OverlapWarning, quoted
from policytree.model_selection.crossfit import by_default_settings
from policytree.model_selection.folds import make_folds
from policytree.weighting.covariates import Covariates
from policytree.weighting.dose.density import DoseDensity, cross_fit_density, kernel
from policytree.weighting.dose.merging import MergedDoses, merge_doses
from policytree.weighting.dose.outcome import Mixture, cross_fit_outcome
from policytree.weighting.nuisances import resolve_learner

FEWEST_DOSES = 10  # different ones; fewer are treatments
FEWEST_NEAR = 5  # rows near a dose
FEWEST_EFFECTIVE = 30.0  # of them, before a warning
MOST_RAISED = 0.1  # share of people who had next to no chance of a dose, before a warning
CONSTANT = 3.5  # 1.5 of Silverman's, of Epanechnikov's kernel: rules are learnt with little variance
JUDGING = 0.4  # of the bandwidth: tests and values are of what is near indeed, so that standard errors tell errors
KEEP, RAISE = "keep", "raise"


class _NewRowArguments(TypedDict, total=False):
    """Arguments of ``predict_rewards`` beside Y, T and X, for type checkers."""

    W: Table | None


class _FitArguments(_NewRowArguments, total=False):
    """Arguments of ``fit`` beside Y, T and X."""

    sample_weight: Column | None
    groups: Column | None


@dataclass(eq=False, repr=False)
class DoseRewards(NestedParameters):
    """Estimate every person's reward under every dose of a grid, an (n, K) frame, where treatment is a number.

    With the dose ``t`` that a person got, the outcome ``y``, and the out-of-fold models ``m(x, t)`` of outcomes and
    ``f(t | x)`` of doses (the generalised propensity score), the reward of dose ``g`` is ``m(x, g) + k((t - g) / h) /
    E[k((t - g) / h) | x] (y - m(x, t))``: the expected outcome, and for people who got a dose near ``g`` what it
    missed, weighted by one over the chance of a dose so near. ``k`` is Epanechnikov's kernel. Residuals are those at
    the dose received, so that only errors of ``m`` are smoothed and not the outcome itself: rewards are right on
    average if ``m`` is right, or if ``f`` is and the error of ``m`` is smooth within a bandwidth.

    The rewards go to :class:`policytree.PolicyTree`; the leaves of its tree are doses. Every row is judged by models
    that saw neither the row nor its cluster.

    Parameters
    ----------
    grid : sequence of K increasing numbers, or int
        The doses to choose from, in the unit of T. A number: so many, at the middles of as many equal parts of the
        people by dose, rounded.
    bandwidth : "auto" or float
        ``h``, in the unit of T. "auto" is ``3.5 s n^(-1/5)`` with ``n`` rows (clusters) and ``s`` the standard
        deviation of the residuals of the dose, or their interquartile range over 1.349 where that is smaller (1.5 times
        Silverman's rule for this kernel). Rules are learnt with ``h``, which costs least regret; tests (:meth:`merge`)
        and the rewards of new rows, which judge, take ``0.4 h``: what more smoothing leaves of the outcome model's
        errors no standard error tells, and those of differences between adjacent doses were a third too small.
    model_outcome : "auto", or scikit-learn regressor or classifier
        E[Y | X, W, T], one model of covariates and dose (its last column). "auto" mixes penalised regressions (for 0/1
        outcomes: logistic) on products of two columns and on splines of the dose, and boosted trees, averaged over
        doses nearby, by their out-of-fold errors (:mod:`policytree.weighting.dose.outcome`).
    model_dose : "auto" or scikit-learn regressor
        E[T | X, W], the location of the density of doses; "auto" mixes ridge regression and boosted trees. The scale
        and the distribution of residuals follow (:mod:`policytree.weighting.dose.density`).
    min_propensity : float in (0, 0.5)
        Expected kernel weights below this are raised to it (``n_clipped_``).
    cv : int, splitter, list of (train, test) rows, or array of shape (n,)
        Folds of the cross-fitting.
    random_state : int, RandomState or None
        Draws the folds.

    Attributes
    ----------
    grid_ : ndarray of shape (K,)
    bandwidth_ : float
    bandwidth_rule_ : str
        How it was found, in words.
    judging_bandwidth_ : float
        0.4 times that, of :meth:`merge` and :meth:`predict_rewards`.
    rewards_ : DataFrame of shape (n, K)
        Rewards in the outcome's unit, one column per dose, rows as in Y.
    regression_ : DataFrame of shape (n, K)
        Out-of-fold expected outcomes ``m(x, g)``.
    propensity_ : DataFrame of shape (n, K)
        Out-of-fold expected kernel weights, after small ones were raised: the chance of a dose near ``g``, at most one.
    overlap_ : DataFrame
        Index ``dose``. ``near``: rows of positive weight within a bandwidth; ``effective_rows``: ``(sum v)^2 / sum
        v^2`` of their weights ``v``, sampling weights included; ``raised``: share of people (of weight) whose expected
        kernel weight was raised.
    n_clipped_ : int
        Rows with at least one raised.
    nudges_ : Series of shape (n,)
        Doubly robust scores of what one unit more of the dose brings, from where people are: ``dm(x, t) / dt - dlog f(t
        | x) / dt (y - m(x, t))``. Their mean is the average partial effect.
    folds_ : ndarray of shape (n,), int64
    models_outcome_, models_dose_ : tuple (folds) of fitted models

    References
    ----------
    Colangelo and Lee (2020), Double debiased machine learning nonparametric inference with continuous treatments,
    arXiv:2004.03036. Kallus and Zhou (2018), Policy evaluation and optimization with continuous treatments, AISTATS.
    Kennedy, Ma, McHugh and Small (2017), Journal of the Royal Statistical Society B 79(4), 1229-1245. Hirano and Imbens
    (2004), The propensity score with continuous treatments. Athey and Wager (2021), Econometrica 89(1), 133-161
    (nudges).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import PolicyTree
    >>> from policytree.weighting import DoseRewards
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(600, 1))  # age
    >>> dose = rng.uniform(0, 10, size=600)
    >>> best = np.where(X[:, 0] > 50, 3.0, 8.0)  # older people need less
    >>> Y = -0.1 * (dose - best) ** 2 + rng.normal(size=600)
    >>> estimator = DoseRewards([1.0, 3.0, 5.0, 8.0], random_state=0)
    >>> rewards = estimator.fit_predict(Y, dose, X=X)
    >>> tree = PolicyTree(max_depth=1).fit(X, rewards)
    >>> tree.predict([[30.0], [70.0]]).tolist()
    [8.0, 3.0]
    """

    grid: Sequence[float] | np.ndarray | int = 5
    _: KW_ONLY
    bandwidth: str | float = "auto"
    model_outcome: Any = "auto"
    model_dose: Any = "auto"
    min_propensity: float = 0.01
    cv: Any = 5
    random_state: Seed = None

    __metadata_request__fit: ClassVar = {"T": True}  # pipelines pass it on without being asked: nothing fits without

    @overload
    def fit(self, Y: Column, T: Column, *, X: Table, **rest: Unpack[_FitArguments]) -> Self: ...
    @overload
    def fit(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_FitArguments]) -> Self: ...

    @either_order
    @by_default_settings
    @aligns_rows
    def fit(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table,
        W: Table | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
    ) -> Self:
        """Cross-fit the models and estimate rewards.

        ``fit(Y, T, X=X)``, or ``fit(X, Y, T=T)`` as in scikit-learn; ``fit_predict`` too.

        Parameters
        ----------
        Y : array of shape (n,)
            Outcome, in its unit.
        T : array of shape (n,)
            Dose that each row received: numbers.
        X : DataFrame or array of shape (n, p)
            Covariates that a policy may use.
        W : DataFrame or array of shape (n, q), optional
            Further confounders, for adjustment only.
        sample_weight : array of shape (n,), optional
            Weights >= 0 of the rows, in fitting and in averages.
        groups : array of shape (n,), optional
            Clusters; never split between folds.

        Returns
        -------
        DoseRewards

        Raises
        ------
        InputError
            If an argument cannot be used, T holds few different doses, or nobody got a dose near one of the grid.

        Warns
        -----
        OverlapWarning
            If few people got a dose near one of the grid, or many had next to no chance of one.
        """
        y = numbers(Y, "Y")
        if not len(y):
            raise InputError("Y has no rows; pass at least some.")
        dose, n = numbers(T, "T", len(y)).to_numpy(), len(y)
        w, clusters = weights(sample_weight, n), group_codes(groups, n)
        self._check_parameters(dose)
        self._covariates = Covariates.fit(X, W)
        Z = self._covariates.matrix(X, W, n)
        if Z.shape[1] == 0:
            raise InputError("X has no columns to decide by; pass at least one.")
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        plan = make_folds(n, self.cv, groups=clusters, random_state=seed)
        own = resolve_learner(self.model_dose, "model_dose")
        self.models_dose_: tuple[DoseDensity, ...] = cross_fit_density(own, Z, dose, plan, w, clusters)
        own = resolve_learner(self.model_outcome, "model_outcome")
        values = y.to_numpy()
        self.models_outcome_: tuple[Mixture, ...] = cross_fit_outcome(own, Z, dose, values, plan, w, clusters)
        self._weight, self._groups = np.ones(n) if w is None else w, clusters
        self.folds_ = plan.fold
        self.grid_ = self._grid(dose)
        self.bandwidth_, self.bandwidth_rule_ = self._bandwidth(Z, dose, plan)

        self.judging_bandwidth_ = JUDGING * self.bandwidth_
        predicted, near, nearest = np.empty((3, n, len(self.grid_)))
        residual, nudges = np.empty((2, n))
        for f, (_, test) in enumerate(plan.splits()):
            part = self._of_models([f], Z[test], dose[test], values[test])
            predicted[test], near[test], nearest[test], residual[test], nudges[test] = part
        raised = near < self.min_propensity
        self.n_clipped_ = int(raised.any(axis=1).sum())
        near = np.maximum(near, self.min_propensity)
        self.regression_, self.propensity_ = self._frame(predicted, y.index), self._frame(near, y.index)
        self.overlap_ = self._overlap(dose, near, raised)
        self.rewards_ = self._frame(self._rewards(dose, predicted, near, residual, self.bandwidth_), y.index)
        nearest = np.maximum(nearest, self.min_propensity)
        self._judged = self._frame(self._rewards(dose, predicted, nearest, residual, self.judging_bandwidth_), y.index)
        self.nudges_ = pd.Series(nudges, index=y.index, name="nudge")
        return self

    @overload
    def fit_predict(self, Y: Column, T: Column, *, X: Table, **rest: Unpack[_FitArguments]) -> pd.DataFrame: ...
    @overload
    def fit_predict(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_FitArguments]) -> pd.DataFrame: ...

    @either_order
    @aligns_rows
    def fit_predict(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table,
        W: Table | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
    ) -> pd.DataFrame:
        """Fit, and return ``rewards_``; arguments as of :meth:`fit`."""
        return self.fit(Y, T, X=X, W=W, sample_weight=sample_weight, groups=groups).rewards_

    @by_default_settings
    @aligns_rows
    def predict_rewards(self, Y: Column, T: Column, *, X: Table, W: Table | None = None) -> pd.DataFrame:
        """Rewards of new rows, by the average of the models of all folds: what a rule is judged by.

        Kernel weights have ``judging_bandwidth_``.

        Parameters
        ----------
        Y, T : array of shape (n,)
            Outcomes, and the doses received.
        X, W : DataFrame or array
            Covariates, with the columns that ``fit`` was given.

        Returns
        -------
        DataFrame of shape (n, K)
        """
        check_is_fitted(self, "rewards_")
        y = numbers(Y, "Y")
        dose = numbers(T, "T", len(y)).to_numpy()
        Z = self._covariates.matrix(X, W, len(y))
        folds = range(len(self.models_outcome_))
        predicted, _, near, residual, _ = self._of_models(folds, Z, dose, y.to_numpy())
        near = np.maximum(near, self.min_propensity)
        return self._frame(self._rewards(dose, predicted, near, residual, self.judging_bandwidth_), y.index)

    def nudge_rewards(self, cost: float = 0.0) -> pd.DataFrame:
        """Rewards of leaving doses as they are ("keep"), and of one unit more, to first order ("raise").

        For rules that say who is to get a little more: ``PolicyTree().fit(X, estimator.nudge_rewards(0.2))``.

        Parameters
        ----------
        cost : float
            Of one unit more, in the outcome's unit.

        Returns
        -------
        DataFrame of shape (n, 2)

        References
        ----------
        Athey and Wager (2021), Econometrica 89(1), 133-161, sections 2.2 and 5.
        """
        check_is_fitted(self, "rewards_")
        if not is_real(cost) or not np.isfinite(cost):
            raise InputError(f"cost must be a finite number, in the outcome's unit; got {quoted(cost)}.")
        return pd.DataFrame({KEEP: 0.0, RAISE: self.nudges_ - cost}, index=self.nudges_.index)

    def merge(self, level: float = 0.05) -> MergedDoses:
        """Make one dose of adjacent ones that do not differ, on average or by predicted differences.

        Two doses differ if a joint test of both, by rewards with ``judging_bandwidth_``, has a p-value of at most
        ``level`` (Wald; see ``policytree/weighting/dose/merging.py``). Adjacent doses are merged, those with the
        largest p-value first, as long as no pair within a group differs; the dose in the middle stands for the group.

        Parameters
        ----------
        level : float

        Returns
        -------
        MergedDoses
            Its ``rewards`` go to :class:`policytree.PolicyTree`.

        Notes
        -----
        The test is somewhat liberal where the outcome bends or doses depend on covariates: at ``level=0.05`` doses that
        do not differ were kept apart in 4 to 17 % of pairs (24 draws of 1,000 rows), so that too many doses may remain.
        """
        check_is_fitted(self, "rewards_")
        check_level(level)
        found = merge_doses(self._judged, self.regression_.to_numpy(), self.folds_, self._groups, self._weight, level)
        return replace(found, rewards=self.rewards_[found.groups.index])

    def _check_parameters(self, dose: np.ndarray) -> None:
        distinct = np.unique(dose)
        if len(distinct) == 1:
            raise InputError(f"T holds one dose only, {distinct[0]:g}; at least two are needed to choose from.")
        if len(distinct) < FEWEST_DOSES:
            raise InputError(
                f"T holds only {len(distinct)} different doses; treat them as treatments: RewardEstimator takes "
                "them as they are."
            )
        if not is_real(self.min_propensity) or not 0.0 < self.min_propensity < 0.5:
            raise InputError(f"min_propensity must lie between 0 and 0.5; got {quoted(self.min_propensity)}.")
        h = self.bandwidth
        if not (isinstance(h, str) and h == "auto") and not (
            is_real(h) and not isinstance(h, bool) and np.isfinite(h) and h > 0
        ):
            raise InputError(f"bandwidth must be 'auto' or a positive number in the unit of T; got {quoted(h)}.")
        if is_whole(self.grid):
            if isinstance(self.grid, bool) or self.grid < 2:
                raise InputError(f"grid must hold at least two doses to choose from; got {quoted(self.grid)}.")
            return
        if isinstance(self.grid, str) or is_real(self.grid) or self.grid is None:
            raise InputError(f"grid must be a number of doses, or increasing doses; got {quoted(self.grid)}.")
        grid = as_numbers(self.grid, "grid")
        if grid.ndim != 1 or len(grid) < 2:
            raise InputError(f"grid must hold at least two doses to choose from; got {quoted(self.grid)}.")
        if not np.isfinite(grid).all():
            raise InputError("grid holds missing or infinite values; give doses.")
        if (np.diff(grid) <= 0).any():
            raise InputError(f"The doses of grid must increase; got {quoted(self.grid)}.")
        outside = grid[(grid < distinct[0]) | (grid > distinct[-1])]
        if len(outside):
            raise InputError(
                f"grid holds {outside[0]:g}, but the doses of T run from {distinct[0]:g} to {distinct[-1]:g}; nobody "
                "shows what a dose outside does, so leave it out."
            )

    def _grid(self, dose: np.ndarray) -> np.ndarray:
        """The doses to choose from, (K,)."""
        if not is_whole(self.grid):
            return as_numbers(self.grid, "grid")
        at, kept = (np.arange(self.grid) + 0.5) / self.grid, self._weight > 0
        grid = np.quantile(dose[kept], at)
        step = np.diff(grid)
        smallest = step[step > 0].min(initial=np.ptp(dose))
        rounded = np.unique(np.round(grid, int(np.ceil(1 - np.log10(smallest)))))
        inside = rounded[(rounded >= dose.min()) & (rounded <= dose.max())]
        if len(inside) < 2:
            raise InputError("Most rows of T have the same dose; name the doses of grid.")
        return inside

    def _bandwidth(self, Z: np.ndarray, dose: np.ndarray, plan) -> tuple[float, str]:
        """Bandwidth, and the rule in words."""
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth), "given"
        residual = np.empty(len(dose))
        for f, (_, test) in enumerate(plan.splits()):
            residual[test] = dose[test] - self.models_dose_[f].location.predict(Z[test])
        kept = self._weight > 0
        residual, w = residual[kept], self._weight[kept]
        spread = float(np.sqrt(np.average((residual - np.average(residual, weights=w)) ** 2, weights=w)))
        quartiles = float(np.subtract(*np.quantile(residual, [0.75, 0.25]))) / 1.349
        units = len(residual) if self._groups is None else len(np.unique(self._groups[kept]))
        s = min(spread, quartiles) if quartiles > 0 else spread
        if s <= 0.0:
            raise InputError("The covariates tell every dose exactly, so that nobody could have got another one.")
        h = CONSTANT * s * units ** (-1 / 5)
        what = "rows" if self._groups is None else "clusters"
        return h, f"{CONSTANT} x {s:.3g} (spread of the dose given covariates) x {units:,} {what} ^ (-1/5)"

    def _of_models(self, folds, Z, dose, y) -> tuple[np.ndarray, ...]:
        """Outcomes and kernel weights of both bandwidths (n, K), residuals and nudges (n,), averaged over folds."""
        parts, step = [], self.judging_bandwidth_
        for f in folds:
            outcome, density = self.models_outcome_[f], self.models_dose_[f]
            predicted = np.column_stack([outcome.at_dose(Z, g) for g in self.grid_])
            near, nearest = (density.near(Z, self.grid_, h) for h in (self.bandwidth_, self.judging_bandwidth_))
            residual = y - outcome.at_dose(Z, dose)
            slope = (outcome.at_dose(Z, dose + step) - outcome.at_dose(Z, dose - step)) / (2.0 * step)
            parts.append((predicted, near, nearest, residual, slope + density.score(Z, dose) * residual))
        return tuple(np.mean(each, axis=0) for each in zip(*parts, strict=True))

    def _rewards(self, dose, predicted, near, residual, bandwidth) -> np.ndarray:
        close = kernel((dose[:, None] - self.grid_) / bandwidth)
        return predicted + close / near * residual[:, None]

    def _frame(self, values: np.ndarray, index) -> pd.DataFrame:
        return pd.DataFrame(values, index=index, columns=self.grid_)

    def _overlap(self, dose, near, raised) -> pd.DataFrame:
        """How many people got a dose near each of the grid; refuses where hardly anybody did, and warns of few."""
        v = self._weight[:, None] * kernel((dose[:, None] - self.grid_) / self.bandwidth_) / near
        count, squares = (v > 0).sum(axis=0), (v**2).sum(axis=0)
        lonely = np.flatnonzero(count < FEWEST_NEAR)
        if len(lonely):
            raise InputError(
                f"Only {count[lonely[0]]} rows have a dose within {self.bandwidth_:.3g} of {self.grid_[lonely[0]]:g}; "
                "take it out of grid, or widen bandwidth."
            )
        out = pd.DataFrame({
            "near": count, "effective_rows": v.sum(axis=0) ** 2 / squares,
            "raised": np.average(raised, axis=0, weights=self._weight),
        }, index=pd.Index(self.grid_, name="dose"))  # fmt: skip
        weak = out[(out["effective_rows"] < FEWEST_EFFECTIVE) | (out["raised"] > MOST_RAISED)]
        if len(weak):
            said = "; ".join(
                f"{g:g}: {row.effective_rows:.0f} effective rows, {row.raised:.0%} of people with next to no chance"
                for g, row in zip(weak.index, weak.itertuples(), strict=True)
            )
            warnings.warn(
                f"Few people got, or could have got, a dose near some of grid ({said}). Rewards there rest on the "
                "model of outcomes; take such doses out of grid, or widen bandwidth.",
                OverlapWarning,
                stacklevel=stacklevel_outside(),
            )
        return out
