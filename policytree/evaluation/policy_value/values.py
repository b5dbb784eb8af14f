"""What a policy is worth on given rewards: values and paired differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, Table
from policytree.estimators.chosen_rows import warn_if_chosen
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.inputs import policy_scores, reward_frame, rows_arguments
from policytree.exceptions import InputError


@aligns_rows
@shares_documentation(JUDGED)
def policy_value(
    policy: Column | Table | Any,
    rewards: Table,
    *,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> Estimate:
    """Value of a policy: the mean reward if everybody got what it recommends.

    Honest only if the rewards of a row, and the policy, come from models that have not seen the row: use held-out data,
    or :func:`policytree.cross_val_policy_value`. Where a tree of this process was fitted to these very rows, and is
    what is judged, a warning says so.

    Parameters
    ----------
    policy : array of shape (n,), one label, or array of shape (n, K)
        The recommended treatment of every row, one treatment for all, or the probability of each treatment (columns as
        in ``rewards``; a frame's columns are matched by name).

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If the policy names a treatment without rewards, shapes differ, values are missing or infinite, probabilities
        are no probabilities, or there are fewer than two clusters.

    References
    ----------
    Dudik, Langford and Li (2011), Doubly robust policy evaluation and learning, ICML. Athey and Wager (2021),
    Econometrica 89(1), 133-161.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree import policy_value
    >>> rewards = pd.DataFrame({"drug": [2.0, 0.0, 1.0, 3.0], "none": [0.0, 1.0, 1.0, 0.0]})
    >>> policy_value(["drug", "none", "none", "drug"], rewards).value
    1.75
    """
    table = reward_frame(rewards)
    scores = policy_scores(policy, table, "policy")
    warn_if_chosen(table.to_numpy(), scores, stacklevel=4)
    return checked_estimate(scores, groups, sample_weight, level)


@aligns_rows
@shares_documentation(JUDGED)
def policy_difference(
    a: Column | Table | Any,
    b: Column | Table | Any,
    rewards: Table,
    *,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> Estimate:
    """Value of policy ``a`` minus value of policy ``b`` on the same rows.

    Paired: the influence functions are subtracted, so rows on which both agree add no noise.

    Parameters
    ----------
    a, b : array of shape (n,), one label, or array of shape (n, K)
        The recommended treatment of every row, one treatment for all, or the probability of each treatment.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If a policy names a treatment without rewards, shapes differ, values are missing or infinite, or there are fewer
        than two clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree import policy_difference
    >>> rewards = pd.DataFrame({"drug": [2.0, 0.0, 1.0, 3.0], "none": [0.0, 1.0, 1.0, 0.0]})
    >>> policy_difference(["drug", "none", "none", "drug"], ["drug"] * 4, rewards).value
    0.25
    """
    table = reward_frame(rewards)
    first, second = policy_scores(a, table, "a"), policy_scores(b, table, "b")
    for scores in (first, second):
        warn_if_chosen(table.to_numpy(), scores, stacklevel=4)
    scores = first - second
    return checked_estimate(scores, groups, sample_weight, level)


def checked_estimate(scores: np.ndarray, groups, sample_weight, level: float) -> Estimate:
    """The mean of scores; refuses fewer than two rows or clusters."""
    codes, weight = rows_arguments(groups, sample_weight, len(scores))
    estimate = mean_estimate(scores, groups=codes, sample_weight=weight, level=level)
    if estimate.n_clusters < 2:
        unit = "rows" if groups is None else "clusters (groups)"
        raise InputError(f"A standard error needs at least two {unit} with positive weight; pass more data.")
    return estimate
