"""Optimism: what a rule is worth on the rows that chose it, less what it is worth on rows that had no say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate, influence_estimate, repeated_estimate
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """One refit of a rule: what it brings the rows that chose it, and the rows that judge it.

    Attributes
    ----------
    train, test : ndarray of shape (n_train,) and (n_test,)
        Positions of the rows.
    chosen_by : ndarray of shape (n_train,)
        Scores of the training rows, by the rewards that chose the rule.
    judged_by : ndarray of shape (n_test,)
        Held-out scores.
    """

    train: np.ndarray = field(repr=False)
    test: np.ndarray = field(repr=False)
    chosen_by: np.ndarray = field(repr=False)
    judged_by: np.ndarray = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class Optimism(Shown):
    """How much a rule's value on the rows that chose it exceeds its held-out value.

    Attributes
    ----------
    training_value : float
        Mean value on the rows that chose the rule; of several refits, weighted as their held-out values are.
    difference : Estimate
        Training value less held-out value, in the outcome's unit. Where larger outcomes are better it is positive for a
        flattered rule, otherwise negative.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, cross_val_policy_value
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> values = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    >>> optimism = values.optimism["policy tree"]
    >>> optimism.difference.value > 0.0  # the rows that chose the tree flatter it
    True
    """

    training_value: float
    difference: Estimate


def optimism(
    repetitions: Sequence[Sequence[Judgement]], seen: StudyData, n_folds: int, level: float = 0.95
) -> Optimism:
    """Optimism of one rule from its refits, repetition by repetition.

    Refit ``j`` judges rows of weight ``W_j``; with its training value ``t_j`` and held-out value ``h_j`` the optimism
    is ``sum_j (W_j / W) (t_j - h_j)``. A row enters the training values of the refits that it helped to choose, and the
    held-out value of the one that it did not: influences are added up row by row, so what a row brings to both cancels.
    Repetitions are put together as held-out values are (:func:`repeated_estimate`). It estimates the expected optimism
    of rules learnt from so many rows, of which one study's is a draw.

    Parameters
    ----------
    repetitions : sequence of sequences of Judgement
    seen : StudyData
        Of all rows.
    n_folds : int
    level : float

    Returns
    -------
    Optimism

    References
    ----------
    Efron (1986), Journal of the American Statistical Association 81(394), 461-470.
    """
    parts = [_one(list(judgements), seen, level) for judgements in repetitions]
    training = float(np.mean([value for value, _ in parts]))
    return Optimism(training, repeated_estimate([estimate for _, estimate in parts], n_folds))


def _one(judgements: list[Judgement], seen: StudyData, level: float) -> tuple[float, Estimate]:
    weight = seen.weight
    total = sum(float(weight[j.test].sum()) for j in judgements)
    influence, training, held_out = np.zeros(seen.n), 0.0, 0.0
    for j in judgements:
        w = weight[j.train]
        share, mean = float(weight[j.test].sum()) / total, float(np.average(j.chosen_by, weights=w))
        influence[j.train] += share * seen.n * w * (j.chosen_by - mean) / w.sum()
        training, held_out = training + share * mean, held_out + float(weight[j.test] @ j.judged_by) / total
    for j in judgements:
        influence[j.test] -= seen.n * weight[j.test] * (j.judged_by - held_out) / total
    own = seen.sample_weight
    estimate = influence_estimate(training - held_out, influence, groups=seen.groups, sample_weight=own, level=level)
    return training, estimate
