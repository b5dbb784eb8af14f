"""Rewards by matching after learning to stretch (MALTS): outcomes from people who are alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, TypedDict, Unpack, overload

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import either_order
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Seed, Table
from policytree.common.validation import LARGEST, check_choice, is_real, is_whole
from policytree.data.feature_encoder import FeatureEncoder
from policytree.data.features import CATEGORICAL
from policytree.exceptions import InputError, quoted
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.stretch import learn_stretch, metric_columns
from policytree.weighting.study_data import StudyData

CHUNK = 20_000  # rows whose local regressions are solved at once
MAX_CANDIDATES = 5_000_000  # neighbours held at once; many where clusters are large


@dataclass(frozen=True, slots=True)
class Pool:
    """The rows of one treatment that may be matched to, stretched."""

    rows: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    w: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True, slots=True)
class Matched:
    """The nearest rows of one pool.

    Attributes
    ----------
    index : ndarray of shape (n, k), int64
        Positions in the pool.
    distance : ndarray of shape (n, k)
        In stretched standard deviations, ascending.
    """

    index: np.ndarray
    distance: np.ndarray


def match(Z: np.ndarray, groups: np.ndarray, pool: Pool, n_neighbors: int) -> Matched:
    """The nearest rows of the pool outside each row's own cluster (and so never the row itself).

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Stretched columns.
    groups : ndarray of shape (n,), int
        Cluster codes; a code that the pool lacks excludes nothing.
    pool : Pool
    n_neighbors : int

    Returns
    -------
    Matched
    """
    sizes = np.bincount(pool.groups) if len(pool.groups) else np.zeros(1, dtype=np.int64)
    spare = int(sizes.max(initial=0))  # at most so many of the nearest can be of the own cluster
    wanted = min(n_neighbors + spare, len(pool.y))
    search = NearestNeighbors(n_neighbors=wanted).fit(pool.Z)
    step = max(1, MAX_CANDIDATES // wanted)
    parts = [
        _nearest(search, Z[at : at + step], groups[at : at + step], pool, n_neighbors) for at in range(0, len(Z), step)
    ]
    return Matched(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _nearest(search: NearestNeighbors, Z, groups, pool: Pool, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and distances of the nearest outside the own cluster, for some rows."""
    distance, index = search.kneighbors(Z)
    own = pool.groups[index] == groups[:, None]
    order = np.argsort(own, axis=1, kind="stable")[:, :n_neighbors]
    if np.take_along_axis(own, order, axis=1).any() or order.shape[1] < n_neighbors:
        raise InputError(
            f"Some row has fewer than n_neighbors={n_neighbors} people of some treatment outside its own cluster to be "
            "matched with; use fewer neighbours or fewer splits."
        )
    return np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)


def group_means(matched: Matched, pool: Pool) -> np.ndarray:
    """Weighted mean outcome of every matched group, shape (n,)."""
    w = pool.w[matched.index]  # positive: rows without weight are in no pool
    return (w * pool.y[matched.index]).sum(axis=1) / w.sum(axis=1)


def group_regressions(Z: np.ndarray, matched: Matched, pool: Pool) -> np.ndarray:
    """Ridge regression (penalty 1 on stretched columns) within every matched group, at the row's own covariates; (n,).

    Centred at the row, so that the prediction is the unpenalised intercept.
    """
    out = np.empty(len(Z))
    for start in range(0, len(Z), CHUNK):
        at = slice(start, start + CHUNK)
        index = matched.index[at]
        w, y = pool.w[index], pool.y[index]
        offset = pool.Z[index] - Z[at, None, :]
        centre, middle = _mean(offset, w), _mean(y[..., None], w)[:, 0]
        D = offset - centre[:, None, :]
        A = np.einsum("nkp,nk,nkq->npq", D, w, D, optimize=True)
        A[:, np.arange(A.shape[1]), np.arange(A.shape[1])] += 1.0
        b = np.einsum("nkp,nk,nk->np", D, w, y - middle[:, None], optimize=True)
        slope = np.linalg.solve(A, b[..., None])[..., 0]
        out[at] = middle - (slope * centre).sum(axis=1)
    return out


def _mean(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weighted mean over neighbours of (n, k, q) values; (n, q)."""
    return (values * w[..., None]).sum(axis=1) / w.sum(axis=1)[:, None]


@dataclass(frozen=True, slots=True)
class _Split:
    """One honest split: the metric learnt on some rows, the pools of the others."""

    stretch: np.ndarray
    pools: tuple[Pool, ...]
    estimation: np.ndarray


class _FitArguments(TypedDict, total=False):
    """Arguments of ``fit`` beside Y, T and X, for type checkers."""

    sample_weight: Column | None
    groups: Column | None


@dataclass(eq=False, repr=False)
class MatchingRewards(BaseEstimator):
    """Potential outcomes of everybody under every treatment, by matching after learning to stretch (MALTS).

    The data are split; on one part a stretch of every covariate is learnt, such that outcomes of the nearest people of
    the same treatment predict best; in the rest, every person is matched to the ``n_neighbors`` nearest of every
    treatment, never to himself or his cluster. Each part is the learning part once, and everybody's estimates are
    averaged over the splits in which he was not in it.

    Parameters
    ----------
    n_neighbors : int
        Matches per treatment. Few is local and noisy.
    estimate : {"mean", "linear"}
        Mean of the matched outcomes, or ridge regression within the matched group.
    n_splits : int
        Parts. The metric is learnt on one part of ``1 / n_splits`` of the rows.
    exact : sequence of column names (or positions), or "none" or "categories"
        Covariates on which matches must agree (a mismatch counts 1,000 standard deviations, so it is accepted only if
        too few agree). "none" learns a weight for every covariate, "categories" demands it of text and categorical
        columns.
    penalty : float
        Price of a squared stretch, in shares of the outcome's variance: keeps irrelevant covariates from mattering.
    max_learning_rows : int
        Rows per split that the metric is learnt on at most (time and memory grow with its square).
    random_state : int, RandomState or None

    Attributes
    ----------
    treatments_ : ndarray of shape (K,)
    rewards_ : DataFrame of shape (n, K)
        Estimated potential outcomes, in the outcome's unit.
    diameters_ : DataFrame of shape (n, K)
        Distance to the farthest match, averaged over splits: large where nobody is alike.
    spread_ : DataFrame of shape (n, K)
        Standard deviation of the estimates over splits.
    stretch_ : DataFrame of shape (n_splits, p)
        Learnt stretches, per standard deviation of a number or per mismatch of a category.

    Notes
    -----
    Where several people are equally far away, which of them is the last match follows from the order of rows and, by
    rounding, of columns: with few distinct covariates, another order may change some people's estimates by as much as
    two outcomes differ, divided by ``n_neighbors``.

    References
    ----------
    Parikh, Rudin & Volfovsky (2022), MALTS: Matching After Learning to Stretch, JMLR 23(240).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.weighting import MatchingRewards
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> rewards = MatchingRewards(n_splits=2, random_state=0).fit_predict(Y, T, X=X)
    >>> list(rewards.columns), rewards.shape
    (['drug', 'none'], (200, 2))
    """

    n_neighbors: int = 10
    _: KW_ONLY
    estimate: str = "mean"
    n_splits: int = 5
    exact: Any = "none"
    penalty: float = 1e-3
    max_learning_rows: int = 2_000
    random_state: Seed = None

    __metadata_request__fit: ClassVar = {"T": True}  # pipelines pass it on without being asked: nothing fits without

    @overload
    def fit(self, Y: Column, T: Column, *, X: Table, **rest: Unpack[_FitArguments]) -> Self: ...
    @overload
    def fit(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_FitArguments]) -> Self: ...

    @either_order
    @aligns_rows
    def fit(
        self, Y: Column, T: Column, *, X: Table, sample_weight: Column | None = None, groups: Column | None = None
    ) -> Self:
        """Learn the metrics and estimate potential outcomes of these rows.

        ``fit(Y, T, X=X)``, or ``fit(X, Y, T=T)`` as in scikit-learn; ``fit_predict`` too.

        Parameters
        ----------
        Y : column of n numbers
        T : column of n labels
        X : table of shape (n, p)
            Everything to match on, without missing values.
        sample_weight : column of n numbers, optional
            Weighs rows in the metric's error and in the matched groups.
        groups : column of n cluster labels, optional
            Nobody is matched to his own cluster, and clusters are not split between learning and matching.

        Returns
        -------
        MatchingRewards

        Raises
        ------
        InputError
            If an argument cannot be used, or some treatment has too few people to match to.
        """
        self._check_parameters()
        observed = StudyData.of(Y, T, sample_weight=sample_weight, groups=groups)
        self.treatments_ = observed.treatments
        columns = self._fit_columns(X, observed.n)
        random_state = check_random_state(self.random_state)
        plan = observed.folds(self.n_splits, random_state.randint(2**31 - 1), "n_splits")
        self._splits = self._learn(columns, observed, plan, random_state)
        self.stretch_ = pd.DataFrame(np.sqrt([s.stretch for s in self._splits]), columns=self._names)
        estimates, diameters = self._estimate_training(columns.Z, observed)
        self.rewards_ = observed.frame(np.nanmean(estimates, axis=0))
        self.spread_ = observed.frame(np.nanstd(estimates, axis=0))
        self.diameters_ = observed.frame(np.nanmean(diameters, axis=0))
        return self

    @overload
    def fit_predict(self, Y: Column, T: Column, *, X: Table, **rest: Unpack[_FitArguments]) -> pd.DataFrame: ...
    @overload
    def fit_predict(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_FitArguments]) -> pd.DataFrame: ...

    @either_order
    @aligns_rows
    def fit_predict(
        self, Y: Column, T: Column, *, X: Table, sample_weight: Column | None = None, groups: Column | None = None
    ) -> pd.DataFrame:
        """``fit``, then ``rewards_``: an (n, K) DataFrame."""
        return self.fit(Y, T, X=X, sample_weight=sample_weight, groups=groups).rewards_

    def predict_outcomes(self, *, X: Table) -> pd.DataFrame:
        """Potential outcomes of new rows, averaged over the splits; DataFrame of shape (n, K)."""
        check_is_fitted(self, "rewards_")
        Z = self._columns(X).Z
        if not len(Z):
            raise InputError("X has no rows; pass at least one.")
        nobody = np.full(len(Z), -1, dtype=np.int64)
        values = np.mean([self._estimate(Z, nobody, split)[0] for split in self._splits], axis=0)
        return pd.DataFrame(values, index=getattr(X, "index", None), columns=self.treatments_)

    def matched_group(self, position: int, *, split: int | None = None) -> pd.DataFrame:
        """Whom a row of the fit is matched with, in one split where it was not used to learn.

        Parameters
        ----------
        position : int
            Row number, from 0.
        split : int, optional
            The first possible one by default.

        Returns
        -------
        DataFrame
            One row per match: treatment, row number, distance, outcome; nearest first within a treatment.

        Raises
        ------
        InputError
            If there is no such row, or the split's metric was learnt on it.
        """
        check_is_fitted(self, "rewards_")
        if not is_whole(position) or not 0 <= position < len(self._training_Z):
            raise InputError(f"There is no row {position!r}; the fit had {len(self._training_Z)} rows, counted from 0.")
        possible = [s for s, part in enumerate(self._splits) if part.estimation[position]]
        if split is not None and split not in possible:
            raise InputError(f"Row {position} was used to learn the metric of split {split}; use one of {possible}.")
        part = self._splits[possible[0] if split is None else split]
        Z = self._training_Z[[position]] * np.sqrt(part.stretch[self._owner])
        frames = []
        for label, pool in zip(self.treatments_, part.pools, strict=True):
            found = match(Z, self._training_groups[[position]], pool, self.n_neighbors)
            at = found.index[0]
            content = {"treatment": label, "row": pool.rows[at], "distance": found.distance[0], "outcome": pool.y[at]}
            frames.append(pd.DataFrame(content))
        return pd.concat(frames, ignore_index=True)

    def _check_parameters(self) -> None:
        check_choice(self.estimate, "estimate", ("mean", "linear"))
        for name in ("n_neighbors", "max_learning_rows"):
            value = getattr(self, name)
            if not is_whole(value) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be at least 1 and whole; got {quoted(value)}.")
        if not is_real(self.penalty) or not 0.0 <= self.penalty <= LARGEST:
            raise InputError(f"penalty must be a finite number >= 0; got {quoted(self.penalty)}.")

    def _fit_columns(self, X, n: int):
        self._encoder = FeatureEncoder.fit(X)
        features = self._encoder.features
        if not features:
            raise InputError("X has no columns to match on; pass at least one covariate.")
        self._names = [f.name for f in features]
        self._categorical = np.array([f.kind == CATEGORICAL for f in features], dtype=bool)
        self._n_values = np.array([len(f.categories) for f in features])
        encoded = self._encoder.encode(X)
        if len(encoded) != n:
            raise InputError(f"X has {len(encoded)} rows, but Y has {n}; give one row per row.")
        self._refuse_gaps(encoded, np.ones(len(features), dtype=bool))
        large = np.flatnonzero((np.abs(encoded) > LARGEST).any(axis=0))
        if len(large):
            raise InputError(f"Column {self._names[large[0]]!r} of X holds values beyond {LARGEST:g}; rescale it.")
        deviation = encoded.std(axis=0)
        self._scale = np.where(deviation > 0.0, deviation, 1.0)
        return self._columns(encoded, encoded=True)

    def _columns(self, X, *, encoded: bool = False):
        matrix = X if encoded else self._encoder.encode(X)
        self._refuse_gaps(matrix, ~self._categorical)  # an unknown category is far from all, and no gap
        return metric_columns(matrix, self._categorical, self._scale, self._n_values)

    def _refuse_gaps(self, matrix: np.ndarray, looked_at: np.ndarray) -> None:
        gaps = np.flatnonzero(np.isnan(matrix).any(axis=0) & looked_at)
        if len(gaps):
            raise InputError(
                f"Column {self._names[gaps[0]]!r} of X has missing values, which cannot be matched on; fill or drop "
                "them."
            )

    def _exact_mask(self) -> np.ndarray:
        if isinstance(self.exact, str):
            if self.exact not in ("none", "categories"):
                raise InputError(f"exact must be 'none', 'categories' or a list of columns; got {quoted(self.exact)}.")
            return self._categorical & (self.exact == "categories")
        if not isinstance(self.exact, Iterable):
            raise InputError(f"exact must be 'none', 'categories' or a list of columns; got {quoted(self.exact)}.")
        mask = np.zeros(len(self._names), dtype=bool)
        for column in self.exact:
            if column not in self._names and column not in range(len(self._names)):
                raise InputError(f"exact names column {column!r}, which X lacks.")
            mask[self._names.index(column) if column in self._names else column] = True
        return mask

    def _learn(self, columns, observed: StudyData, plan: FoldPlan, random_state) -> list[_Split]:
        groups = np.arange(observed.n) if observed.groups is None else observed.groups
        w = np.ones(observed.n) if observed.sample_weight is None else observed.sample_weight
        self._training_Z, self._training_groups, self._owner = columns.Z, groups, columns.owner
        exact, splits = self._exact_mask(), []
        for rest, learning in plan.splits():
            if len(learning) > self.max_learning_rows:
                learning = np.sort(random_state.choice(learning, self.max_learning_rows, replace=False))
            part = type(columns)(columns.Z[learning], columns.owner, columns.n_covariates)
            stretch = learn_stretch(
                part,
                observed.y[learning],
                observed.arm[learning],
                w[learning],
                groups[learning],
                exact,
                n_neighbors=self.n_neighbors,
                penalty=self.penalty,
            )
            scaled = columns.Z * np.sqrt(stretch[columns.owner])
            pools = []
            for k in range(observed.n_arms):
                rows = rest[(observed.arm[rest] == k) & (w[rest] > 0.0)]
                pools.append(Pool(rows, scaled[rows], observed.y[rows], w[rows], groups[rows]))
            estimation = np.zeros(observed.n, dtype=bool)
            estimation[rest] = True
            splits.append(_Split(stretch, tuple(pools), estimation))
        return splits

    def _estimate(self, Z, groups, split: _Split) -> tuple[np.ndarray, np.ndarray]:
        """Potential outcomes and diameters, both (n, K), within one split."""
        scaled = Z * np.sqrt(split.stretch[self._owner])
        values, diameters = np.empty((2, len(Z), len(split.pools)))
        for k, pool in enumerate(split.pools):
            if len(pool.y) < self.n_neighbors:
                raise InputError(
                    f"Treatment {self.treatments_[k]!s} has {len(pool.y)} rows to match to, fewer than n_neighbors="
                    f"{self.n_neighbors}; use fewer neighbours."
                )
            found = match(scaled, groups, pool, self.n_neighbors)
            linear = self.estimate == "linear"
            values[:, k] = group_regressions(scaled, found, pool) if linear else group_means(found, pool)
            diameters[:, k] = found.distance[:, -1]
        return values, diameters

    def _estimate_training(self, Z, observed: StudyData) -> tuple[np.ndarray, np.ndarray]:
        """Estimates per split, both (n_splits, n, K); NaN where a row helped to learn the metric."""
        values, diameters = np.full((2, len(self._splits), observed.n, observed.n_arms), np.nan)
        for s, split in enumerate(self._splits):
            rows = split.estimation
            values[s, rows], diameters[s, rows] = self._estimate(Z[rows], self._training_groups[rows], split)
        return values, diameters
