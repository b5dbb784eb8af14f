"""Models of hazards: a few learners of the time at risk, mixed by how well they predict rows that they did not see.

Counts of events in a bin, given the time at risk, have the likelihood of Poisson counts, so that every learner of rates
serves (Friedman 1982, Annals of Statistics 10(1), piecewise exponential models). There are four, as for outcomes:

- the rates of each arm, whatever the covariates;
- log-linear rates with a smooth time and effects of covariates that may change linearly over time, penalised, within
  every arm and over all of them;
- boosted trees of the covariates, the arm and the bin.

Rates are mixed by the squared error ``sum of at_risk * rate^2 - 2 * count * rate`` out of fold, the part of
``at_risk * (rate - truth)^2`` that depends on the rate. Leaves hold at least five expected events: flexible hazards of
fewer make products of them, the survival functions, too small or too large (measured in ``../shared/study-facts.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.polynomial.legendre import legvander
from sklearn.pipeline import Pipeline, make_pipeline

from policytree.model_selection.crossfit import CrossFit, FoldFits
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.boosting import boost
from policytree.weighting.stacking import (
    MOST_INTERACTIONS,
    ByArm,
    Interactions,
    OverArms,
    indicators,
    on_simplex,
    prepared,
)
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.survival_models import SurvivalModel, fit_survival_model
from policytree.weighting.time_to_event.tree_tables import TreeTables

ROUNDS = (3, 6, 10, 15, 22, 30, 45, 65, 100)
PENALTIES = (0.3, 3.0, 30.0)  # of a coefficient of a column of unit spread, against the log-likelihood of all rows
PENALTY_OF_TIME, PENALTY_OF_CHANGE = 0.01, 3.0  # of time itself, of effects that change over time; by those above
TIME_DEGREE = 4  # of the polynomial in the rank of the bin
LARGEST_LOG_RATE = 30.0
MOST_STEPS, TOLERANCE = 30, 1e-7
ROWS_AT_A_TIME = 1 << 12  # of boosted rates: what is added up, in all bins, then stays in the processor's cache
LEARNERS = ("rates", "linear", "linear over arms", "boosted over arms")


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates of every bin, whatever the covariates."""

    rates: np.ndarray

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.rates, (1, len(Z), len(self.rates)))

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return np.tile(self.rates, (len(Z), 1))


@dataclass(frozen=True, slots=True)
class _LogLinear:
    """Log-linear rates, a stage for every penalty to choose from; coefficients as :func:`_fit_log_linear` has them."""

    prepare: Pipeline
    time: np.ndarray
    coefficients: tuple[np.ndarray, ...]

    def stages(self, Z: np.ndarray) -> np.ndarray:
        X = self.prepare.transform(Z)
        return np.stack([self._rates(X, each) for each in self.coefficients])

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self._rates(self.prepare.transform(Z), self.coefficients[stage])

    def _rates(self, X: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(_log_rates(X, self.time, coefficients), LARGEST_LOG_RATE))


def _log_rates(X: np.ndarray, time: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    m, p = time.shape[1], X.shape[1]
    of_time, fixed, changing = np.split(coefficients, [m, m + p])
    return time @ of_time + (X @ fixed)[:, None] + np.outer(X @ changing, _change(time))


def _change(time: np.ndarray) -> np.ndarray:
    """The function of time by which effects of covariates change: its rank, from -1 to 1."""
    return time[:, 1] if time.shape[1] > 1 else np.zeros(len(time))


def _time_basis(n_bins: int) -> np.ndarray:
    """Polynomials in the rank of the bin, (J, m)."""
    rank = np.linspace(-1.0, 1.0, n_bins) if n_bins > 1 else np.zeros(1)
    return legvander(rank, min(TIME_DEGREE, n_bins - 1))


def _fit_log_linear(prepare: Pipeline, Z: np.ndarray, at_risk: np.ndarray, counts: np.ndarray) -> _LogLinear:
    """Poisson regressions of all penalties by Newton's method, each beginning at the one before.

    Rows and bins need not be written out: sums over a row's bins of the expected counts, alone and times one or two
    functions of time, are all that the gradient and the Hessian need.
    """
    X, time = prepare.fit_transform(Z), _time_basis(at_risk.shape[1])
    m, p = time.shape[1], X.shape[1]
    start = np.zeros(m + 2 * p)
    # The intercept is penalised like a function of time, around the mean rate, so that a bin without events is finite.
    centre = np.log(counts.sum() / at_risk.sum())
    found = []
    shape = np.concatenate([np.full(m, PENALTY_OF_TIME), np.ones(p), np.full(p, PENALTY_OF_CHANGE)])
    for penalty in reversed(PENALTIES):
        start = _newton(X, time, at_risk * np.exp(centre), counts, shape * penalty, start)
        found.append(start + centre * (np.arange(len(start)) == 0))
    return _LogLinear(prepare, time, tuple(reversed(found)))


def _newton(X, time, at_risk, counts, penalty, coefficients) -> np.ndarray:
    change = _change(time)

    def loss_at(trial: np.ndarray) -> tuple[float, np.ndarray]:
        log_rates = np.minimum(_log_rates(X, time, trial), LARGEST_LOG_RATE)
        expected = at_risk * np.exp(log_rates)
        return float(expected.sum() - (counts * log_rates).sum() + penalty @ trial**2 / 2.0), expected

    loss, expected = loss_at(coefficients)
    for _ in range(MOST_STEPS):
        gradient = _gradient(X, time, change, expected - counts) + penalty * coefficients
        step = np.linalg.solve(_hessian(X, time, change, expected) + np.diag(penalty), gradient)
        length, before = 1.0, loss
        while True:
            trial = coefficients - length * step
            loss, expected = loss_at(trial)
            if loss <= before or length < 1e-6:
                break
            length /= 2.0
        if loss > before:  # no step in that direction is better: as good as it gets in floating point
            break
        coefficients = trial
        if before - loss <= TOLERANCE * max(1.0, abs(before)):
            break
    return coefficients


def _gradient(X, time, change, residual: np.ndarray) -> np.ndarray:
    return np.concatenate([time.T @ residual.sum(axis=0), X.T @ residual.sum(axis=1), X.T @ (residual @ change)])


def _hessian(X, time, change, expected: np.ndarray) -> np.ndarray:
    m, p = time.shape[1], X.shape[1]
    out = np.empty((m + 2 * p, m + 2 * p))
    by_row = [expected.sum(axis=1), expected @ change, expected @ change**2]
    out[:m, :m] = time.T @ (time * expected.sum(axis=0)[:, None])
    out[:m, m : m + p] = (expected @ time).T @ X
    out[:m, m + p :] = (expected @ (time * change[:, None])).T @ X
    out[m : m + p, m : m + p] = X.T @ (X * by_row[0][:, None])
    out[m : m + p, m + p :] = X.T @ (X * by_row[1][:, None])
    out[m + p :, m + p :] = X.T @ (X * by_row[2][:, None])
    out[m + p :, m : m + p] = out[m : m + p, m + p :].T
    out[m:, :m] = out[:m, m:].T
    return out


@dataclass(frozen=True, slots=True)
class _BoostedRates:
    """Boosted rates of the covariates, the arm and the bin, a stage for every number of rounds to choose from.

    Attributes
    ----------
    trees : TreeTables
        Their sums are logarithms of rates, divided by ``scale``.
    scale : float
    """

    trees: TreeTables
    scale: float

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return self._rates(Z, ROUNDS)

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self._rates(Z, ROUNDS[stage : stage + 1])[0]

    def _rates(self, Z: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
        out = np.empty((len(rounds), len(Z), self.trees.n_bins))
        for first in range(0, len(Z), ROWS_AT_A_TIME):
            part = slice(first, first + ROWS_AT_A_TIME)
            out[:, part] = self.trees.stages(Z[part], rounds)
        np.exp(out, out=out)
        out *= self.scale
        return out


def _fit_boosted(Z: np.ndarray, at_risk: np.ndarray, counts: np.ndarray) -> _BoostedRates:
    row, bins = np.nonzero(at_risk)
    time, count = at_risk[row, bins], counts[row, bins]
    table = np.column_stack([Z[row], bins.astype(np.float64)])
    boosted = boost(table, count / time, time, "poisson", ROUNDS[-1])
    return _BoostedRates(TreeTables.of(boosted.booster, at_risk.shape[1]), boosted.scale)


def _mean_rates(at_risk: np.ndarray, counts: np.ndarray) -> _Rates:
    total = at_risk.sum(axis=0)
    return _Rates(np.divide(counts.sum(axis=0), total, out=np.zeros_like(total), where=total > 0.0))


def _fit_hazard(kind: str, n_arms: int, ZA: np.ndarray, y: np.ndarray, sample_weight=None, groups=None):
    """One of the learners, fitted to a table whose last column is the arm; ``y`` (n, 2 J): time at risk, and counts."""
    weighted = y if sample_weight is None else y * (sample_weight / sample_weight.mean())[:, None]
    at_risk, counts = np.hsplit(weighted, 2)
    arm = ZA[:, -1].astype(np.int64)
    if not counts.any():  # no event to learn from: as many stages as the other folds have
        stages = {"rates": 1, "boosted over arms": len(ROUNDS)}.get(kind, len(PENALTIES))
        return ByArm(tuple(_Repeated(_mean_rates(at_risk, counts), stages) for _ in range(n_arms)))
    if kind == "linear over arms":
        return OverArms(_fit_log_linear(make_pipeline(Interactions(n_arms)), ZA, at_risk, counts), n_arms, False)
    if kind == "boosted over arms":
        Z = np.hstack([ZA[:, :-1], indicators(arm, n_arms)])
        return OverArms(_fit_boosted(Z, at_risk, counts), n_arms, True)
    models: list[Any] = []
    for k in range(n_arms):
        own = arm == k
        if kind == "rates" or not counts[own].any():
            models.append(_mean_rates(at_risk[own], counts[own]))
        else:
            models.append(_fit_log_linear(prepared(), ZA[own, :-1], at_risk[own], counts[own]))
    if kind == "linear":  # an arm without events has one stage, as many as others have
        models = [_Repeated(model, len(PENALTIES)) if isinstance(model, _Rates) else model for model in models]
    return ByArm(tuple(models))


@dataclass(frozen=True, slots=True)
class _Repeated:
    """One stage in place of several."""

    model: _Rates
    n_stages: int

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return np.repeat(self.model.stages(Z), self.n_stages, axis=0)

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self.model.at(Z, 0)


@dataclass(frozen=True, slots=True)
class StackedHazards:
    """The mixture of one fold's models of a hazard.

    Attributes
    ----------
    models : tuple of L fitted learners
    stages : ndarray of shape (L, K), int
        The stage of each learner that an arm uses.
    weights : ndarray of shape (L, K)
        At least 0; every arm's sum to one.
    """

    models: tuple[Any, ...]
    stages: np.ndarray
    weights: np.ndarray

    def of_arm(self, Z: np.ndarray, k: int) -> np.ndarray:
        """Hazards under one arm, (n, J)."""
        parts = [
            weights[k] * model.of_arm(Z, k, int(stages[k]))
            for model, stages, weights in zip(self.models, self.stages, self.weights, strict=True)
            if weights[k] > 0.0
        ]
        return np.sum(parts, axis=0)

    def of_own(self, Z: np.ndarray, arm: np.ndarray) -> np.ndarray:
        """Hazards under the arm that every row got, (n, J)."""
        out: np.ndarray | None = None
        for k in np.unique(arm):
            own = arm == k
            found = self.of_arm(Z[own], int(k))
            out = np.empty((len(Z), found.shape[1])) if out is None else out
            out[own] = found
        assert out is not None, "there are rows"
        return out


@dataclass(frozen=True, slots=True)
class HazardStack:
    """Models of one hazard, before they are fitted.

    Attributes
    ----------
    model : SurvivalModel or None
        The user's, fitted within every arm; None for the mixture of ``LEARNERS``.
    """

    model: SurvivalModel | None = None

    def fits(
        self, Z: np.ndarray, observed: StudyData, plan: FoldPlan, at_risk: np.ndarray, counts: np.ndarray, edges, tied
    ) -> list[FoldFits]:
        """List the fits: every learner in every fold; ``at_risk`` and ``counts`` (n, J)."""
        K, ZA = observed.n_arms, np.column_stack([Z, observed.arm.astype(np.float64)])
        y = np.hstack([at_risk, counts])
        kinds: Sequence[Any]
        if self.model is not None:
            kinds = [partial(fit_survival_model, self.model, K, edges, tied)]
        else:
            names = list(LEARNERS)
            if len(Z) * (Z.shape[1] + 1) * (K + 1) > MOST_INTERACTIONS:
                names.remove("linear over arms")
            kinds = [partial(_fit_hazard, name, K) for name in names]
        return [FoldFits(fit, ZA, y, plan, None, observed.sample_weight) for fit in kinds]

    def mixed(
        self, fits: list[CrossFit], observed: StudyData, at_risk: np.ndarray, counts: np.ndarray
    ) -> tuple[StackedHazards, ...]:
        """The mixture of least squared error out of fold, one for each fold.

        Parameters
        ----------
        fits : list of CrossFit
            Of :meth:`fits`, with (n, J, S) out-of-fold rates under the arm that each row got.
        observed : StudyData
        at_risk, counts : ndarray of shape (n, J)
        """
        stages, weights = np.zeros((2, len(fits), observed.n_arms))
        for k in range(observed.n_arms):
            own = np.flatnonzero((observed.arm == k) & (observed.weight > 0.0))
            weight = observed.weight[own, None]
            time, count = at_risk[own] * weight, counts[own] * weight
            best = []
            for place, fit in enumerate(fits):
                rates = fit.predictions[own]
                errors = np.einsum("ij,ijs->s", time, rates**2) - 2.0 * np.einsum("ij,ijs->s", count, rates)
                stages[place, k] = errors.argmin()
                best.append(rates[:, :, int(stages[place, k])].ravel())
            weights[:, k] = _least_error(np.stack(best), time.ravel(), count.ravel())
        return tuple(
            StackedHazards(tuple(fit.models[f] for fit in fits), stages.astype(np.int64), weights)
            for f in range(fits[0].folds.n_folds)
        )


def _least_error(rates: np.ndarray, time: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Weights of the rows of ``rates`` (L, n J), at least 0 and summing to one, of least squared error."""
    gram, product = (rates * time) @ rates.T, rates @ count
    scale = np.trace(gram) / len(gram)
    if scale == 0.0:
        return np.full(len(rates), 1.0 / len(rates))
    # The ridge restores what rounding may take from the smallest eigenvalue of nearly equal learners.
    root = np.linalg.cholesky(gram / scale + 1e-10 * np.eye(len(gram))).T
    return on_simplex(root, np.linalg.solve(root.T, product / scale))
