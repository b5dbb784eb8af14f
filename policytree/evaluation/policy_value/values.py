"""Values and costs of a policy on given rewards, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, Table
from policytree.common.validation import numbers, sorted_labels
from policytree.estimators.chosen_rows import warn_if_chosen
from policytree.evaluation.estimates import Estimate, by_unequal_rows, mean_estimate
from policytree.evaluation.inputs import column, labelled_table, policy_scores, reward_frame, rows_arguments
from policytree.exceptions import InputError, quoted
from policytree.weighting.costs import treatment_costs

MEAN_TOLERANCE = 1e-6


@aligns_rows
@shares_documentation(JUDGED)
def policy_value(
    policy: Column | Table | Any,
    rewards: Table | Mapping[Any, Any],
    *,
    baseline: Column | Table | Any = None,
    population: Column | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> Estimate:
    """Value of a policy: the mean reward if everybody got what it recommends; or how much more than under a baseline.

    Honest only if the rewards of a row, and the policy, come from models that have not seen the row: use held-out data,
    or :func:`policytree.cross_val_policy_value`. A difference is paired: the influence functions are subtracted, so
    that rows on which both agree add no noise. ``policy_value("drug", rewards, baseline="none")`` is the average effect
    of a treatment. A warning says so if a tree fitted to these very rows is judged by them.

    Parameters
    ----------
    policy : array of shape (n,), one label, or array of shape (n, K)
        The recommended treatment of every row, one treatment for all, or the probability of each treatment (columns as
        in ``rewards``; a frame's columns are matched by name).
    rewards : DataFrame or array of shape (n, K), or mapping
        Reward of every row under every treatment, in the outcome's unit, for example from
        :class:`policytree.RewardEstimator`. Columns are the treatment labels; those of an array are 0, ..., K - 1. Rows
        are matched by position. A mapping has a number, or n numbers, for treatments; others count as zero: with
        ``{"drug": 100.0}`` the value is what the policy spends per person where the drug costs 100, with ``{"drug":
        1.0}`` the share of people who get it. On the rows that chose a tree within a budget its spend is no estimate
        but a choice; ask on other rows.
    baseline : array of shape (n,), one label, or array of shape (n, K), optional
        Another policy, whose value is subtracted.
    population : array of shape (n,), optional
        ``RewardEstimator.population_``, for rewards with ``estimand="treated"`` and ``"overlap"``: the rows' share of
        the population, mean one. Without it the value is the same, with a standard error that is slightly off. With
        ``q`` these shares and ``theta`` the value, row ``i`` has the influence ``d_i - q_i theta``, since the size of
        the population is estimated from the same rows. Where rows stand for unequally many people, few of them may have
        most of the variance; the interval then takes fewer degrees of freedom (Satterthwaite), so that it is wider.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If a policy names a treatment without rewards, shapes differ, values are missing or infinite, probabilities
        are no probabilities, the mean of ``population`` is not one, or there are fewer than two clusters.

    References
    ----------
    Dudik, Langford and Li (2011), Doubly robust policy evaluation and learning, ICML. Athey and Wager (2021),
    Econometrica 89(1), 133-161. Hirano, Imbens & Ridder (2003), Econometrica 71(4), 1161-1189, for weighted average
    effects; van der Vaart (1998), Asymptotic Statistics, section 25.3, for the influence function of a ratio.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree import policy_value
    >>> rewards = pd.DataFrame({"drug": [2.0, 0.0, 1.0, 3.0], "none": [0.0, 1.0, 1.0, 0.0]})
    >>> rule = ["drug", "none", "none", "drug"]
    >>> policy_value(rule, rewards).value
    1.75
    >>> policy_value(rule, rewards, baseline="drug").value
    0.25
    >>> policy_value(rule, {"drug": 100.0}).value
    50.0
    """
    table = _as_frame([policy] if baseline is None else [policy, baseline], rewards)
    scores = policy_scores(policy, table, "policy")
    warn_if_chosen(table.to_numpy(), scores)
    if baseline is not None:
        other = policy_scores(baseline, table, "baseline")
        warn_if_chosen(table.to_numpy(), other)
        scores = scores - other
    plain = checked_estimate(scores, groups, sample_weight, level)
    if population is None:
        return plain
    q = numbers(population, "population", len(scores), "pass population_ as it is.", "rewards").to_numpy()
    mean = float(np.average(q, weights=None if sample_weight is None else np.asarray(sample_weight, dtype=float)))
    if abs(mean - 1.0) > MEAN_TOLERANCE:
        raise InputError(
            f"population has mean {mean:.6g}, not one; pass population_ of the RewardEstimator that made the rewards, "
            "with the same sample_weight."
        )
    shifted = checked_estimate(scores - (q - 1.0) * plain.value, groups, sample_weight, level)
    if np.ptp(q) == 0.0:
        return shifted
    return by_unequal_rows(shifted, rows_arguments(groups, sample_weight, len(q))[0])


def checked_estimate(scores: np.ndarray, groups, sample_weight, level: float) -> Estimate:
    """The mean of scores; refuses fewer than two rows or clusters."""
    codes, weight = rows_arguments(groups, sample_weight, len(scores))
    estimate = mean_estimate(scores, groups=codes, sample_weight=weight, level=level)
    if estimate.n_clusters < 2:
        unit = "rows" if groups is None else "clusters (groups)"
        raise InputError(f"A standard error needs at least two {unit} with positive weight; pass more data.")
    return estimate


def _as_frame(policies: list[Any], rewards: Any) -> pd.DataFrame:
    """Rewards as a frame whose columns are the labels; of a mapping, those that it or the policies name."""
    if not isinstance(rewards, Mapping):
        return reward_frame(rewards)
    columns = [policy for policy in policies if np.ndim(policy)]
    if not columns:
        raise InputError(
            f"policy must be a column of treatments, one a row, where rewards is a mapping; got {quoted(policies[0])}."
        )
    labels = list(dict.fromkeys([*(label for policy in policies for label in _labels(policy)), *rewards]))
    labels += [None] * (len(labels) == 1)  # a table of rewards has two columns at least
    return pd.DataFrame(treatment_costs(rewards, len(columns[0]), labels), columns=pd.Index(labels, dtype=object))


def _labels(policy: Any) -> list[Any]:
    """The treatments that a policy names."""
    if not np.ndim(policy):
        return [policy]
    probabilities = labelled_table(policy)
    if probabilities is not None and probabilities.shape[1] > 1:
        return list(probabilities.columns)
    return sorted_labels(column(policy, "policy", len(policy))).tolist()
