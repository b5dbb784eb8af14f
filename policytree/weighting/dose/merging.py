"""Doses of a grid that do not differ become one: tests of adjacent doses, and groups by complete linkage."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f as f_distribution

from policytree.data.views import Shown
from policytree.weighting.cluster_robust import covariance_of_means, mean_and_influence, n_units


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MergedDoses(Shown):
    """The doses of a grid that remain when those that do not differ are one; ``str()`` reports them.

    Attributes
    ----------
    rewards : DataFrame of shape (n, G)
        Rewards of the doses that stand for the groups, the columns of the grid's rewards that they have anyway.
    groups : DataFrame
        Index ``dose``: the one that stands for the group, its middle dose (of two in the middle, the smaller one).
        ``lowest``, ``highest``: the ends of the group; ``p_value``: the least p-value of a pair of its doses, NaN of a
        dose alone.
    steps : DataFrame
        Index ``lower``, ``upper``: adjacent doses of the grid. ``difference``: mean reward of the upper less the lower,
        with ``standard_error``; ``p_value`` of the test that they differ neither on average nor by what is predicted.
    level : float
        Pairs with a p-value above this do not differ.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.weighting import DoseRewards
    >>> rng = np.random.default_rng(2)
    >>> X = rng.uniform(size=(400, 1))
    >>> dose = rng.uniform(0, 10, size=400)
    >>> Y = np.minimum(dose, 5) + rng.normal(size=400)  # more than 5 does no more
    >>> merged = DoseRewards([1.0, 4.0, 7.0, 8.0, 9.0], random_state=0).fit(Y, dose, X=X).merge()
    >>> merged.groups.index.tolist()
    [1.0, 4.0, 8.0]
    """

    rewards: pd.DataFrame = field(repr=False)
    groups: pd.DataFrame
    steps: pd.DataFrame = field(repr=False)
    level: float

    def statements(self) -> tuple[str, ...]:
        """The groups of several doses in sentences, and by which rule they are one."""
        together = self.groups[self.groups["lowest"] < self.groups["highest"]]
        lines = [
            f"Doses {row.lowest:g} to {row.highest:g} are not shown to differ (p = {row.p_value:.2g} or more): "
            f"{dose:g} stands for them."
            for dose, row in zip(together.index, together.itertuples(), strict=True)
        ]
        rule = f"Doses are one where every two of them differ with a p-value above {self.level:g}"
        if not lines:
            lines = [f"All {len(self.groups)} doses of the grid differ from their neighbours."]
        return (*lines, f"{rule}, on average and by predicted differences; that they are the same is not shown.")

    def _shown(self) -> list[Any]:
        return [*self.statements(), self.groups]


def merge_doses(
    rewards: pd.DataFrame,
    predicted: np.ndarray,
    folds: np.ndarray,
    groups: np.ndarray | None,
    weight: np.ndarray,
    level: float,
) -> MergedDoses:
    """Merge adjacent doses, those with the largest p-value first.

    Two groups of doses become one while the least p-value of a pair of their doses, one of each, is above ``level``
    (complete linkage): otherwise a long slope, no step of which is significant, would become one dose.

    Parameters
    ----------
    rewards : DataFrame of shape (n, K)
        Columns are doses, ascending.
    predicted : ndarray of shape (n, K)
        Out-of-fold expected outcomes.
    folds : ndarray of shape (n,), int
        Which fold predicted each row. Predictions are compared within folds only: by how much the models of two folds
        differ is chance, and the rewards hold the same predictions.
    groups : ndarray of shape (n,), int, or None
    weight : ndarray of shape (n,)
    level : float
    """
    doses, values = rewards.columns.to_numpy(float), rewards.to_numpy()
    K = len(doses)
    predicted = predicted - _fold_means(predicted, folds, weight)
    p = np.ones((K, K))
    for a in range(K):
        for b in range(a + 1, K):
            difference, by = values[:, b] - values[:, a], predicted[:, b] - predicted[:, a]
            p[a, b] = p[b, a] = p_of_difference(difference, by, groups, weight)
    parts = [[k] for k in range(K)]
    while len(parts) > 1:
        joint = [p[np.ix_(a, b)].min() for a, b in pairwise(parts)]
        at = int(np.argmax(joint))
        if joint[at] <= level:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    middle = [part[(len(part) - 1) // 2] for part in parts]
    frame = pd.DataFrame({
        "lowest": [doses[part[0]] for part in parts],
        "highest": [doses[part[-1]] for part in parts],
        "p_value": [p[np.ix_(part, part)].min() if len(part) > 1 else np.nan for part in parts],
    }, index=pd.Index(doses[middle], name="dose"))  # fmt: skip
    return MergedDoses(rewards.iloc[:, middle], frame, _steps(doses, values, p, groups, weight), level)


def _fold_means(values: np.ndarray, folds: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """For every row the means over its fold, (n, K); zero in folds without weight."""
    out = np.zeros_like(values)
    for fold in np.unique(folds[weight > 0]):
        own = folds == fold
        out[own] = np.average(values[own], axis=0, weights=weight[own])
    return out


def _steps(doses, values, p, groups, weight) -> pd.DataFrame:
    """Adjacent doses: mean difference, its standard error and the p-value."""
    records = []
    for k in range(len(doses) - 1):
        mean, influence = mean_and_influence(values[:, k + 1] - values[:, k], weight)
        error = float(np.sqrt(covariance_of_means(influence[:, None], weight, groups)[0, 0]))
        records.append((doses[k], doses[k + 1], mean, error, p[k, k + 1]))
    columns = ["lower", "upper", "difference", "standard_error", "p_value"]
    return pd.DataFrame(records, columns=columns).set_index(["lower", "upper"])


def p_of_difference(
    difference: np.ndarray, predicted: np.ndarray, groups: np.ndarray | None, weight: np.ndarray
) -> float:
    """P-value of the test that two doses differ for nobody, as far as the predicted difference tells whom.

    Where nobody's outcomes differ, the mean of the reward differences is zero, and so is their mean times any function
    of the covariates, such as the out-of-fold predicted difference. Both are tested at once (Wald, F with clusters
    less two degrees of freedom).

    Parameters
    ----------
    difference, predicted : ndarray of shape (n,)
    groups : ndarray of shape (n,), int, or None
    weight : ndarray of shape (n,)
    """
    units = n_units(weight, groups)
    centred = predicted - np.average(predicted, weights=weight)
    spread = np.sqrt(np.average(centred**2, weights=weight))
    columns = [np.ones(len(difference))]
    if spread > 1e-6 * np.sqrt(np.average(difference**2, weights=weight)):
        columns.append(centred / spread)
    found = [mean_and_influence(difference * column, weight) for column in columns]
    means = np.array([mean for mean, _ in found])
    covariance = covariance_of_means(np.column_stack([influence for _, influence in found]), weight, groups)
    q = len(means)
    if units <= q + 1 or not covariance.any():
        return 1.0
    statistic = float(means @ np.linalg.pinv(covariance) @ means) / q
    return float(f_distribution.sf(statistic, q, units - q))
