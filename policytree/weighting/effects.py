"""Models of conditional average effects: cross-fitted doubly robust scores, regressed on covariates.

Outcome models are chosen by how well they predict outcomes, and what most of an outcome's variation comes from is often
the same under all treatments: the difference of two predictions then holds more of their errors than of the effect.
Regressing the rewards themselves on the covariates looks for what differs (the DR-learner; Kennedy 2023, "Towards
optimal doubly robust estimation of heterogeneous causal effects", Electronic Journal of Statistics 17(2)).

- Every arm's reward is taken less the mean of all arms' rewards, weighted by their shares, so that effects against any
  reference agree with each other. A row's weight is one over what the variance of that difference is where residuals
  are alike: ``1 / sum over arms j of (1{j = k} - share_j)^2 / e_j(x)``; of two arms ``e_0(x) e_1(x)`` up to a constant
  (Nie and Wager 2021, "Quasi-oracle estimation of heterogeneous treatment effects", Biometrika 108(2)).
- There are three members: the lasso, which may drop all covariates and then leaves the average effect; a forest of
  large leaves; and the difference of the outcome models. Where effects are small, held-out errors hardly tell the
  members apart, and their plain mean does best: the mixture of least error replaces it as far as it is surely better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import lasso_path
from sklearn.pipeline import Pipeline

from policytree.model_selection.crossfit import fit_mean
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.boosting import Forest, grow_forest
from policytree.weighting.stacking import on_simplex, prepared

ROWS_PER_LEAF = 150  # of the half of the rows that a tree of the forest sees
PENALTIES = np.geomspace(1.0, 0.01, 30)  # of the lasso, by the least that leaves only the mean
COST_OF_WEIGHTS = 4.0  # how much two free weights must reduce the squared error, in residual variances, to count


@dataclass(frozen=True, slots=True)
class _Lassos:
    """Lasso regressions of one table, a column of coefficients for every penalty."""

    prepare: Pipeline
    intercepts: np.ndarray
    coefficients: np.ndarray

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Of every penalty, (n, S)."""
        return self.prepare.transform(Z) @ self.coefficients + self.intercepts


def _lassos(Z: np.ndarray, y: np.ndarray, w: np.ndarray) -> _Lassos:
    prepare = prepared()
    A = prepare.fit_transform(Z)
    w = w / w.mean()
    centre, mean, root = np.average(A, axis=0, weights=w), np.average(y, weights=w), np.sqrt(w)
    A, b = (A - centre) * root[:, None], (y - mean) * root
    largest = np.abs(A.T @ b).max() / len(b)
    coefficients = np.zeros((A.shape[1], len(PENALTIES)))
    if largest > 0.0:
        coefficients = lasso_path(A, b, alphas=largest * PENALTIES)[1]
    return _Lassos(prepare, mean - centre @ coefficients, coefficients)


@dataclass(frozen=True, slots=True)
class _FoldEffects:
    """Models learnt without one fold."""

    lassos: _Lassos
    forest: Forest

    def predict(self, Z: np.ndarray, stage: int) -> np.ndarray:
        """(n, 2)."""
        return np.column_stack([self.lassos.predict(Z)[:, stage], self.forest.predict(Z)])


@dataclass(frozen=True, slots=True)
class _Contrast:
    """The default model of one arm's effect."""

    folds: tuple[_FoldEffects, ...]
    stage: int
    weights: np.ndarray

    def predict(self, Z: np.ndarray, base: np.ndarray | None) -> np.ndarray:
        """(n,); ``base`` (n,) is what the outcome models say, None without any."""
        members = np.mean([fold.predict(Z, self.stage) for fold in self.folds], axis=0)
        if base is not None:
            members = np.column_stack([members, base])
        return members @ self.weights


@dataclass(frozen=True, slots=True)
class _Learnt:
    """One arm's effect by a learner of the user's own, or without covariates."""

    model: Any

    def predict(self, Z: np.ndarray, base: np.ndarray | None) -> np.ndarray:
        return self.model.predict(Z)


def _contrast(Z, score, w, plan: FoldPlan, base: np.ndarray | None) -> _Contrast:
    kept = w > 0.0
    stages, forest, models = np.empty((len(Z), len(PENALTIES))), np.empty(len(Z)), []
    for train, test in plan.splits():
        train = train[kept[train]]
        model = _FoldEffects(
            _lassos(Z[train], score[train], w[train]), grow_forest(Z[train], score[train], w[train], ROWS_PER_LEAF)
        )
        stages[test], forest[test] = model.lassos.predict(Z[test]), model.forest.predict(Z[test])
        models.append(model)
    stage = int((w @ (stages - score[:, None]) ** 2).argmin())
    members = np.column_stack([stages[:, stage], forest] + ([] if base is None else [base]))
    return _Contrast(tuple(models), stage, shrunken_weights(members, score, w))


def fit_effects(
    learner: Any,
    Z: np.ndarray,
    rewards: np.ndarray,
    propensity: np.ndarray,
    weight: np.ndarray,
    plan: FoldPlan,
    outcomes: np.ndarray | None,
) -> EffectModels:
    """Regress doubly robust rewards on covariates.

    Parameters
    ----------
    learner : scikit-learn regressor, or None
        None for the default mixture.
    Z : ndarray of shape (n, q)
    rewards, propensity : ndarray of shape (n, K)
        Out of fold; propensities bounded away from zero.
    weight : ndarray of shape (n,)
        Of rows.
    plan : FoldPlan
        Folds by which the default mixture is chosen.
    outcomes : ndarray of shape (n, K), or None
        Out-of-fold expected outcomes, None where they were not fitted.
    """
    n_arms = rewards.shape[1]
    shares = np.average(propensity, axis=0, weights=weight)
    shares = shares / shares.sum()
    scores, base = _centred(rewards, shares), None if outcomes is None else _centred(outcomes, shares)
    models: list[_Contrast | _Learnt] = []
    for k in _modelled(n_arms):
        w = weight / (((np.arange(n_arms) == k) - shares) ** 2 / propensity).sum(axis=1)
        if learner is not None:
            models.append(_Learnt(fit_mean(learner, Z, scores[:, k], sample_weight=w)))
        elif Z.shape[1] == 0:
            models.append(_Learnt(fit_mean(DummyRegressor(), Z, scores[:, k], sample_weight=weight)))
        else:
            models.append(_contrast(Z, scores[:, k], w, plan, None if base is None else base[:, k]))
    return EffectModels(tuple(models), shares)


def _centred(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return values - (values @ shares)[:, None]


def _modelled(n_arms: int) -> range:
    """Arms that have a model: of two arms the second, since the first arm's centred effect follows from it."""
    return range(1, 2) if n_arms == 2 else range(n_arms)


@dataclass(frozen=True, slots=True)
class EffectModels:
    """Models of all arms' effects.

    Attributes
    ----------
    models : tuple of fitted models
    shares : ndarray of shape (K,)
        Of the arms, by which effects are centred.
    """

    models: tuple[_Contrast | _Learnt, ...]
    shares: np.ndarray

    def predict(self, Z: np.ndarray, outcomes: Callable[[], np.ndarray] | None, reference: int) -> np.ndarray:
        """Effects against the reference arm, (n, K).

        Parameters
        ----------
        Z : ndarray of shape (n, q)
        outcomes : callable or None
            Gives expected outcomes (n, K); None where they were not fitted.
        reference : int
        """
        n_arms, base = len(self.shares), None
        if outcomes is not None and any(isinstance(model, _Contrast) for model in self.models):
            base = _centred(outcomes(), self.shares)
        centred = np.empty((len(Z), n_arms))
        for k, model in zip(_modelled(n_arms), self.models, strict=True):
            centred[:, k] = model.predict(Z, None if base is None else base[:, k])
        if n_arms == 2:
            centred[:, 0] = -centred[:, 1] * self.shares[1] / self.shares[0]
        return centred - centred[:, [reference]]


def shrunken_weights(members: np.ndarray, score: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weights between equal ones and those of least squared error, by how much that error falls.

    Parameters
    ----------
    members : ndarray of shape (n, L)
        Held-out predictions.
    score : ndarray of shape (n,)
    w : ndarray of shape (n,)
        Weights of rows.

    Returns
    -------
    ndarray of shape (L,)
        At least 0; they sum to one.
    """
    equal = np.full(members.shape[1], 1.0 / members.shape[1])
    root = np.sqrt(w / w.mean())
    A, b = members * root[:, None], score * root
    best = on_simplex(A, b)
    of_equal, of_best = ((A @ weights - b) ** 2 for weights in (equal, best))
    variance = of_best.mean()
    gain = of_equal.sum() - of_best.sum()
    if gain <= COST_OF_WEIGHTS * variance:
        return equal
    return best + (equal - best) * COST_OF_WEIGHTS * variance / gain
