"""Simulated trials and studies whose truth is known, and a light learner behind the library's own interface."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm, qmc
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor

from policytree import PolicyTree
from policytree.solvers.core.limits import Clock

N_FEATURES = 4
POPULATION = norm.ppf(qmc.Sobol(N_FEATURES, seed=1).random(2**12))


# --- what the truth is ---


def no_effect(X, n_arms):
    """All arms the same."""
    return np.zeros((len(X), n_arms))


def linear_effects(X, n_arms):
    """Two arms: .4 x0 + .3 for the second; further ones .3 - .4 x1 and .2."""
    columns = (0.0 * X[:, 0], 0.4 * X[:, 0] + 0.3, 0.3 - 0.4 * X[:, 1], 0.2 + 0.0 * X[:, 0])
    return np.column_stack(columns[:n_arms])


def wavy_effects(X, n_arms):
    """No outcome model of ours is right: steps, a product, heavy curvature."""
    columns = (
        0.0 * X[:, 0],
        0.5 * np.sign(X[:, 0] * X[:, 1]) + 0.1,
        0.6 * (np.abs(X[:, 2]) < 0.5),
        np.sin(2 * X[:, 3]) * 0.5,
    )
    return np.column_stack(columns[:n_arms])


@contextmanager
def unwatched():
    """Search without the thread that watches for Ctrl-C and time limits: it takes longer than these searches do."""
    before = Clock.watch
    Clock.watch = lambda self, search: search()
    try:
        yield
    finally:
        Clock.watch = before


@dataclass(frozen=True)
class Cell:
    """A kind of study to simulate."""

    name: str
    n: int
    n_arms: int = 2
    effects: object = linear_effects
    confounded: bool = False
    cluster_size: int = 1
    weighted: bool = False
    depth: int | str = 2
    learner: str = "linear"
    wavy: bool = False
    skewed: bool = False
    rounded: bool = False
    slope: float = 1.0
    shares: tuple[float, ...] = ()

    def draw(self, rng) -> dict:
        """A study: arguments of `cross_val_policy_value`."""
        n, size = self.n, self.cluster_size
        X = rng.standard_normal((n, N_FEATURES))
        if size > 1:  # half of the first two covariates' variance, and some of the outcome's, is of the cluster
            shared = np.repeat(rng.standard_normal((n // size, 2)), size, axis=0)
            X[:, :2] = (X[:, :2] + shared) / np.sqrt(2)
        if self.depth == 3:
            X = np.round(X, 1)  # fewer thresholds: depth three a thousand times over
        if self.rounded:
            X = np.floor(4 * X) / 4 + 0.125  # thresholds are whole quarters, as of people who are not rounded
        T, propensity = self._treat(X, rng)
        noise = rng.standard_exponential(n) - 1 if self.skewed else rng.standard_normal(n)
        base = np.cos(2 * X[:, 1]) + X[:, 2] ** 2 - 1 if self.wavy else self.slope * X[:, 1]
        y = base + self.effects(X, self.n_arms)[np.arange(n), T] + noise
        study = {"Y": y, "T": T, "X": X, "propensity": propensity}
        if size > 1:
            study["groups"] = np.repeat(np.arange(n // size), size)
            study["Y"] = y + 0.5 * np.repeat(rng.standard_normal(n // size), size)
        if self.weighted:
            study["sample_weight"] = np.exp(0.5 * X[:, 2]) * rng.uniform(0.5, 1.5, n)
        return study

    def _treat(self, X, rng):
        """Arms, by chance or confounded with the first two covariates (the learner then fits a logistic model)."""
        n, size = self.n, self.cluster_size
        if self.confounded:
            p = 1 / (1 + np.exp(-(0.5 * X[:, 0] + 0.5 * X[:, 1])))
            return (rng.random(n) < p).astype(int), None
        shares, units = self.shares or (1 / self.n_arms,) * self.n_arms, np.arange(n // size)
        dealt = units % self.n_arms
        if self.shares:
            dealt = np.searchsorted(np.cumsum(shares), (units + 0.5) / len(units))
        return np.repeat(rng.permuted(dealt), size), dict(enumerate(shares))  # clusters are randomised whole

    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """Expected outcome of every point of the population under every arm, and the points' weights."""
        X = POPULATION
        weight = np.exp(0.5 * X[:, 2]) if self.weighted else np.ones(len(X))
        base = np.cos(2 * X[:, 1]) + X[:, 2] ** 2 - 1 if self.wavy else self.slope * X[:, 1]
        return base[:, None] + self.effects(X, self.n_arms), weight / weight.sum()


def cells() -> list[Cell]:
    """The twelve of the acceptance, then others."""
    out = [
        Cell(f"{name}, n={n}, {arms} arms", n, arms, effects)
        for name, effects in (("no effect", no_effect), ("effects", linear_effects))
        for n in (300, 1_000)
        for arms in (2, 4)
    ]
    out += [
        Cell("confounded, n=1000", 1_000, confounded=True),
        Cell("60 clusters of 25", 1_500, cluster_size=25),
        Cell("weights, n=1000", 1_000, weighted=True),
        Cell("depth 3, n=1000", 1_000, depth=3),
        Cell("other: boosting, non-linear, skewed, n=1000", 1_000, 2, wavy_effects, learner="boosting", wavy=True,
             skewed=True),
        Cell("other: wrong linear model, 4 arms, n=600", 600, 4, wavy_effects, wavy=True, skewed=True),
        Cell("other: no effect, confounded, n=1000", 1_000, 2, no_effect, confounded=True),
        Cell("other: no effect, 60 clusters of 25", 1_500, 2, no_effect, cluster_size=25),
        Cell("other: no effect, n=300, depth chosen", 300, 2, no_effect, depth="auto"),
        Cell("other: effects, n=300, depth chosen", 300, depth="auto"),
        Cell("other: no effect, n=300, default rewards", 300, 2, no_effect, learner="default"),
        Cell("other: effects, confounded, n=500, default rewards", 500, confounded=True, learner="default"),
    ]  # fmt: skip
    return out


# --- a light learner behind the library's own interface ---


class Scores:
    """Doubly robust scores of new rows by the models of two folds; what `reward_estimator_` must offer."""

    def __init__(self, arms, models, logits):
        self._arms, self._models, self._logits = arms, models, logits

    def means(self, X, fold=None):
        """Expected outcomes (n, K)."""
        chosen = self._models if fold is None else [self._models[fold]]
        return np.mean([np.column_stack([predict(X) for predict in models]) for models in chosen], axis=0)

    def probabilities(self, X, propensity, fold=None):
        """Probabilities of the arms (n, K)."""
        if propensity is not None:
            return np.tile([propensity[k] for k in self._arms], (len(X), 1))
        chosen = self._logits if fold is None else [self._logits[fold]]
        p = np.mean([1 / (1 + np.exp(-_with_one(X) @ b)) for b in chosen], axis=0)
        return np.clip(np.column_stack([1 - p, p]), 0.01, 0.99)

    def scores(self, Y, T, X, propensity, fold=None):
        """Scores (n, K)."""
        out, p, rows = self.means(X, fold), self.probabilities(X, propensity, fold), np.arange(len(Y))
        out[rows, T] += (Y - out[rows, T]) / p[rows, T]
        return out

    def predict_rewards(self, Y, T, *, X, W, propensity):
        """Scores as a frame."""
        return pd.DataFrame(self.scores(Y, T, X, propensity), columns=self._arms)

    def predict_outcomes(self, *, X, W):
        """Expected outcomes as a frame."""
        return pd.DataFrame(self.means(X), columns=self._arms)


def _with_one(X):
    return np.column_stack([np.ones(len(X)), X])


def least_squares(X, y, w):
    """A linear outcome model."""
    A = _with_one(X)
    b = np.linalg.solve(A.T @ (w[:, None] * A) + 1e-9 * np.eye(A.shape[1]), A.T @ (w * y))
    return lambda X: _with_one(X) @ b


def boosting(X, y, w):
    """Boosted trees."""
    model = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=8, learning_rate=0.15, early_stopping=False)
    return model.fit(X, y, w).predict


def logistic(X, t, w):
    """Coefficients of a logistic regression by Newton's method."""
    A, b = _with_one(X), np.zeros(X.shape[1] + 1)
    for _ in range(6):
        p = 1 / (1 + np.exp(-A @ b))
        b += np.linalg.solve(A.T @ ((w * p * (1 - p))[:, None] * A) + 1e-6 * np.eye(len(b)), A.T @ (w * (t - p)))
    return b


class LinearLearner(BaseEstimator):
    """Least squares per arm in two folds, doubly robust scores, the exact tree."""

    def __init__(self, max_depth=2, outcome=least_squares, direction="maximize", min_samples_leaf=1):
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.outcome = outcome
        self.direction = direction

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        """Scores out of fold, and the tree for them."""
        n = len(Y)
        w = np.ones(n) if sample_weight is None else sample_weight
        units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
        fold = np.random.default_rng(0).permutation(units.max() + 1)[units] % 2
        arms = np.unique(T)
        models, logits = [], []
        for f in (0, 1):
            use = fold != f
            models.append([self.outcome(X[use & (k == T)], Y[use & (k == T)], w[use & (k == T)]) for k in arms])
            logits.append(None if propensity is not None else logistic(X[use], T[use], w[use]))
        self.reward_estimator_ = Scores(arms, models, logits)
        rewards = np.empty((n, len(arms)))
        for f in (0, 1):
            rows = fold == f
            rewards[rows] = self.reward_estimator_.scores(Y[rows], T[rows], X[rows], propensity, f)
        tree = PolicyTree(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=0)
        self.policy_tree_ = tree.fit(X, rewards, sample_weight=sample_weight)
        self.rewards_ = rewards
        return self

    def apply(self, X):
        """Leaves."""
        return self.policy_tree_.apply(X)

    def predict(self, X):
        """Arms."""
        return self.policy_tree_.predict(X)
