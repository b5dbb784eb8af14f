"""Simulated studies whose truth is known: Zhou, Athey and Wager's three arms, and trials that greedy trees fail on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

TRUTH_ROWS = 10_000  # rows whose true means choose the best tree, as published
NEW_ROWS = 15_000  # rows that judge every rule, as published
LEVELS = 20  # different values of a covariate in the designs of our own


@dataclass(frozen=True)
class Draw:
    """One simulated study.

    Attributes
    ----------
    X : DataFrame of shape (n, p)
    T : ndarray of shape (n,), int
        Arm of every row, drawn by the design's probabilities.
    Y : ndarray of shape (n,), float64
    propensity : mapping of arm to probability, or None
        Known in a trial; None if it has to be estimated.
    """

    X: pd.DataFrame
    T: np.ndarray
    Y: np.ndarray
    propensity: dict[int, float] | None


@dataclass(frozen=True)
class Design:
    """How studies of one kind are drawn.

    Attributes
    ----------
    means : callable, X of shape (n, p) to (n, K)
        Expected outcome under every arm.
    chances : callable, X to (n, K)
        Probabilities of the arms.
    noise : float
        Standard deviation of the outcome given covariates and arm.
    best_depth : int
        Depth of the tree that regret is measured against.
    levels : int or None
        Number of values of every covariate, evenly spaced; None: continuous.
    trial : bool
        Whether the probabilities are told to the learner.
    """

    name: str
    n_features: int
    means: Callable[[np.ndarray], np.ndarray]
    chances: Callable[[np.ndarray], np.ndarray]
    noise: float
    best_depth: int
    levels: int | None = None
    trial: bool = False

    def covariates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Uniform on the unit cube, (n, p)."""
        X = rng.uniform(size=(n, self.n_features))
        return X if self.levels is None else (np.floor(X * self.levels) + 0.5) / self.levels

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """Draw a study of n rows."""
        X = self.covariates(n, rng)
        means, chances = self.means(X), self.chances(X)
        T = (rng.uniform(size=n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
        Y = means[np.arange(n), T] + self.noise * rng.standard_normal(n)
        known = dict(enumerate(chances[0])) if self.trial else None
        return Draw(self.table(X), T, Y, known)

    def table(self, X: np.ndarray) -> pd.DataFrame:
        """Name the covariates x1, x2, ..."""
        return pd.DataFrame(X, columns=[f"x{j}" for j in range(1, self.n_features + 1)])


# --- Zhou, Athey and Wager (2023), section 6.4.1 ---

MEANS = np.array([[3.0, 2.0, 1.0], [1.5, 2.0, 1.5], [-1.5, 0.0, 1.5]])  # region by arm
CHANCES = np.array([[0.2, 0.6, 0.2], [0.2, 0.6, 0.2], [0.4, 0.2, 0.4]])


def regions(X: np.ndarray) -> np.ndarray:
    """Region 0, 1 or 2 of every row; only x5 and x7 matter."""
    x5, x7 = X[:, 4], X[:, 6]
    low = (x5 / 0.6) ** 2 + (x7 / 0.35) ** 2 < 1
    high = ((x5 - 1) / 0.4) ** 2 + ((x7 - 1) / 0.35) ** 2 < 1
    return np.select([low | high, (x5 < 0.6) & (x7 > 0.35)], [2, 0], 1)


@cache
def three_arms() -> Design:
    """The published design: ten covariates, arms that depend on the region, noise of variance 4."""
    return Design("three arms", 10, lambda X: MEANS[regions(X)], lambda X: CHANCES[regions(X)], 2.0, 2)


@cache
def three_arms_no_effect() -> Design:
    """The same people and arms, but every arm brings what the three bring on average."""
    average = np.repeat(MEANS.mean(axis=1, keepdims=True), 3, axis=1)
    return Design("no effect", 10, lambda X: average[regions(X)], lambda X: CHANCES[regions(X)], 2.0, 2)


# --- our own: two arms at random, effect of the second +1 or -1 ---


def _sides(X: np.ndarray, *columns: int) -> np.ndarray:
    """Product of the signs of x - 1/2."""
    return np.prod(np.sign(X[:, list(columns)] - 0.5), axis=1)


def _trial(name: str, effect: Callable[[np.ndarray], np.ndarray], depth: int) -> Design:
    def means(X):
        return np.column_stack([np.zeros(len(X)), effect(X)])

    def chances(X):
        return np.full((len(X), 2), 0.5)

    return Design(name, 6, means, chances, 2.0, depth, LEVELS, trial=True)


@cache
def own_designs() -> tuple[Design, ...]:
    """Designs in which the first split of the best tree brings nothing by itself."""
    return (
        _trial("exclusive or", lambda X: -_sides(X, 0, 1), 2),
        _trial("exclusive or, decoy", lambda X: -_sides(X, 0, 1) + 0.4 * _sides(X, 2), 2),
        _trial("parity of three", lambda X: -_sides(X, 0, 1, 2), 3),
    )


# --- the truth ---


@dataclass(frozen=True)
class Truth:
    """New rows with their true means, and the arms that the best tree gives them.

    Attributes
    ----------
    X : DataFrame of shape (m, p)
    means : ndarray of shape (m, K)
    best : ndarray of shape (m,), int
    """

    X: pd.DataFrame
    means: np.ndarray
    best: np.ndarray

    def value(self, arms: np.ndarray) -> float:
        """Mean outcome of the first rows if they got these arms."""
        return float(self.means[np.arange(len(arms)), arms].mean())

    def regret(self, arms: np.ndarray) -> float:
        """Return the best tree's value on these rows less the arms'; fewer arms than rows are of the first rows."""
        return self.value(self.best[: len(arms)]) - self.value(arms)
