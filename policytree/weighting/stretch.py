"""Learning to stretch: how far apart people are, covariate by covariate, for outcomes to be alike nearby."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

EXACT_STRETCH = 1e3  # standard deviations that one mismatch of an exact covariate counts
N_STARTS = 8  # common stretches tried, each half the one before


@dataclass(frozen=True, slots=True)
class MetricColumns:
    """Columns of a matrix in which squared distances are sums, and the covariate each belongs to.

    A number is one column, in standard deviations. A category is one column per value, 1 / sqrt(2) where the row has
    it, so that two rows with different values lie at squared distance one.

    Attributes
    ----------
    Z : ndarray of shape (n, q)
    owner : ndarray of shape (q,), int64
        Covariate of each column.
    n_covariates : int
    """

    Z: np.ndarray
    owner: np.ndarray
    n_covariates: int


def metric_columns(X: np.ndarray, categorical: np.ndarray, scale: np.ndarray, n_values: np.ndarray) -> MetricColumns:
    """Columns for squared distances from encoded covariates.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Numbers; a category as its position 0, 1, ... (values outside ``range(n_values)``, NaN included, match nothing).
    categorical : ndarray of shape (p,), bool
    scale : ndarray of shape (p,)
        Length of one unit of distance, for numbers.
    n_values : ndarray of shape (p,), int
        Number of categories.

    Returns
    -------
    MetricColumns
    """
    parts, owner = [], []
    for j in range(X.shape[1]):
        x = X[:, [j]]
        parts.append((x == np.arange(n_values[j])) * np.sqrt(0.5) if categorical[j] else x / scale[j])
        owner += [j] * parts[-1].shape[1]
    return MetricColumns(np.hstack(parts), np.array(owner, dtype=np.int64), X.shape[1])


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances, shape (len(A), len(B)), never negative."""
    out = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * (A @ B.T)
    return np.maximum(out, 0.0, out=out)


def _leave_one_out(Z, y, w, s, blocked) -> tuple[float, np.ndarray]:
    """Weighted squared error of kernel predictions from the others, and its gradient in every column's s.

    Row i is predicted by the mean of the others' outcomes with weights ``w_l exp(-d2_il)``, ``d2_il = sum_q s_q (Z_iq -
    Z_lq)^2``; ``blocked`` marks pairs (own row, own cluster) that may not inform each other.
    """
    scaled = Z * np.sqrt(s)
    d2 = squared_distances(scaled, scaled)
    d2[blocked] = np.inf
    d2 -= d2.min(axis=1, keepdims=True)  # weights are ratios, so the nearest row may weigh one: no underflow
    P = np.exp(-d2) * w
    P /= P.sum(axis=1, keepdims=True)
    predicted = P @ y
    error = y - predicted
    # d error_i^2 / d d2_il = 2 error_i P_il (y_l - predicted_i)
    G = (2.0 * w * error)[:, None] * P * (y[None, :] - predicted[:, None])
    squares = Z**2
    gradient = squares.T @ G.sum(axis=1) + squares.T @ G.sum(axis=0) - 2.0 * (Z * (G @ Z)).sum(axis=0)
    return float(w @ error**2), gradient


def _blocked(groups: np.ndarray) -> np.ndarray:
    return groups[:, None] == groups[None, :]


def learn_stretch(
    columns: MetricColumns,
    y,
    arm,
    w,
    groups,
    exact: np.ndarray,
    *,
    n_neighbors: int,
    penalty: float,
    max_iter: int = 60,
) -> np.ndarray:
    """Squared stretches under which outcomes of the nearest people of the same treatment predict best.

    Minimises, over stretches m >= 0, ``sum over arms and rows of w_i (y_i - prediction of the others)^2 / (total weight
    * weighted variance of y) + penalty * sum m_j^2``, the predictions being kernel means with weights ``exp(-squared
    distance)``.

    Parameters
    ----------
    columns : MetricColumns
        Training rows.
    y, w : ndarray of shape (n,)
        Outcome, row weights.
    arm, groups : ndarray of shape (n,), int
    exact : ndarray of shape (p,), bool
        Covariates that must agree; their stretch is fixed at 1,000.
    n_neighbors : int
        The search starts at the best of common stretches of which the largest gives the n-th neighbour weight 1 / e.
    penalty : float >= 0
    max_iter : int
        L-BFGS-B iterations.

    Returns
    -------
    ndarray of shape (p,)
        Squared stretches, >= 0.

    References
    ----------
    Parikh, Rudin & Volfovsky (2022), MALTS, JMLR 23(240), eq. (6): there with hard nearest neighbours, here with smooth
    weights (Weinberger & Tesauro 2007, metric learning for kernel regression), which have a gradient.
    """
    parts = [np.flatnonzero((arm == k) & (w > 0.0)) for k in np.unique(arm)]  # without weight is without a say
    parts = [rows for rows in parts if len(np.unique(groups[rows])) >= 3]
    free = np.flatnonzero(~exact)
    fixed = np.where(exact, EXACT_STRETCH**2, 0.0)
    total = _total_variation(y, w)
    if not parts or not len(free) or total == 0.0:
        return np.where(exact, EXACT_STRETCH**2, 1.0)
    objective = _objective(columns, parts, y, w / total, groups, free, fixed, penalty)
    largest = 1.0 / _typical_distance(columns.Z, parts, n_neighbors)
    starts = [np.full(len(free), largest / 4.0**step) for step in range(N_STARTS)]
    found = minimize(
        objective,
        min(starts, key=lambda squares: objective(squares)[0]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(free),
        options={"maxiter": max_iter},
    )
    out = fixed.copy()
    out[free] = found.x
    return out


def _total_variation(y, w) -> float:
    """Weighted sum of squared deviations of y from its weighted mean; zero without any weight."""
    weight = w.sum()
    return float((w * (y - (w @ y) / weight) ** 2).sum()) if weight > 0.0 else 0.0


def _objective(columns: MetricColumns, parts, y, w, groups, free, fixed, penalty: float):
    """A function of the free squared stretches that gives the penalised error and its gradient.

    In the squares, since in the stretches themselves every zero is stationary, and a long step ends there for good.
    """
    data = [(columns.Z[rows], y[rows], w[rows], _blocked(groups[rows])) for rows in parts]

    def value_and_gradient(squares):
        s = fixed.copy()
        s[free] = squares
        loss, gradient = 0.0, np.zeros(len(s))
        for Z, y_part, w_part, blocked in data:
            error, by_column = _leave_one_out(Z, y_part, w_part, s[columns.owner], blocked)
            loss += error
            np.add.at(gradient, columns.owner, by_column)
        return loss + penalty * squares.sum(), gradient[free] + penalty

    return value_and_gradient


def _typical_distance(Z, parts, n_neighbors: int) -> float:
    """Median squared distance to the n-th neighbour under equal stretches."""
    nearest = []
    for rows in parts:
        d2 = squared_distances(Z[rows[:500]], Z[rows])
        k = min(n_neighbors, len(rows) - 1)
        nearest.append(np.partition(d2, k, axis=1)[:, k])
    middle = float(np.median(np.concatenate(nearest)))
    return middle if middle > 0.0 else 1.0
