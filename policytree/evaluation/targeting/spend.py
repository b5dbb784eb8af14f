"""What a policy spends, and to how many it gives what, on people who did not choose it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, PerTreatment, Table
from policytree.common.validation import as_series, sorted_labels
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.inputs import column, labelled_table, reward_frame
from policytree.evaluation.policy_value.values import checked_estimate, policy_value
from policytree.exceptions import InputError, quoted
from policytree.weighting.costs import treatment_costs


@aligns_rows
@shares_documentation(JUDGED)
def policy_spend(
    policy: Column | Table | Any,
    costs: PerTreatment,
    *,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> Estimate:
    """Estimate what a policy spends per person, with an interval for the population that the rows are drawn from.

    A tree never spends more than its budget on the rows that chose it; there its spend is no estimate but a choice, and
    the interval means nothing. Ask on other rows.

    Parameters
    ----------
    policy : array of shape (n,), or array of shape (n, K)
        The recommended treatment of every row, or the probability of each treatment.
    costs : mapping of label to number or (n,) numbers, or array or frame of shape (K,) or (n, K)
        What treatments cost, as ``budget_costs`` of :meth:`policytree.PolicyTree.fit`. Labels that a mapping leaves out
        cost nothing; those of an array are 0, ..., K - 1.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If the policy names a treatment that an array or frame of costs does not have, or as
        :func:`policytree.policy_value`.

    Examples
    --------
    >>> from policytree.evaluation import policy_spend
    >>> policy_spend(["drug", "none", "none", "drug"], {"drug": 100.0, "none": 0.0}).value
    50.0
    """
    if np.ndim(policy) == 0:
        raise InputError(f"policy must be a column of treatments, one a row, or a table; got {quoted(policy)}.")
    table = _cost_frame(policy, costs)
    return policy_value(policy, table, groups=groups, sample_weight=sample_weight, level=level)


@aligns_rows
@shares_documentation(JUDGED)
def policy_shares(
    policy: Column,
    *,
    treatments: Column | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimate the share of the people to whom a policy gives each treatment; see :func:`policy_spend`.

    Parameters
    ----------
    policy : array of shape (n,)
        The recommended treatment of every row.
    treatments : array-like of shape (K,), optional
        All treatments, in the order of the rows; by default those that occur.

    Returns
    -------
    DataFrame
        One row a treatment: share, standard_error, lower, upper.

    Examples
    --------
    >>> from policytree.evaluation import policy_shares
    >>> policy_shares(["drug"] * 60 + ["none"] * 40).round(2)
               share  standard_error  lower  upper
    treatment
    drug         0.6            0.05    0.5    0.7
    none         0.4            0.05    0.3    0.5
    """
    chosen = as_series(policy, "policy")
    chosen = column(chosen, "policy", len(chosen))
    labels = sorted_labels(chosen) if treatments is None else np.asarray(treatments)
    unknown = set(chosen.tolist()) - set(labels.tolist())
    if unknown:
        raise InputError(f"policy names treatment {min(map(str, unknown))}, which treatments does not; add it.")
    rows = []
    for label in labels.tolist():
        e = checked_estimate((chosen == label).astype(np.float64), groups, sample_weight, level)
        rows.append((e.value, e.standard_error, e.lower, e.upper))
    index = pd.Index(labels, name="treatment")
    return pd.DataFrame(rows, index=index, columns=["share", "standard_error", "lower", "upper"])


def _cost_frame(policy, costs) -> pd.DataFrame:
    """Costs as a frame whose columns are the labels."""
    table = labelled_table(costs)
    if table is not None:
        return reward_frame(table, "costs")
    if not isinstance(costs, Mapping):
        array = np.asarray(costs, dtype=object)
        K = array.shape[-1] if array.ndim else 0
        n = len(policy)
        return reward_frame(pd.DataFrame(treatment_costs(costs, n, list(range(K)))), "costs")
    probabilities = labelled_table(policy)
    if probabilities is not None and probabilities.shape[1] > 1:
        used = list(probabilities.columns)
    else:
        used = sorted_labels(column(policy, "policy", len(policy))).tolist()
    labels = [*used, *(label for label in costs if label not in used)]
    labels += [None] * (len(labels) == 1)  # a table of rewards has two columns at least
    return pd.DataFrame(treatment_costs(costs, len(policy), labels), columns=pd.Index(labels, dtype=object))
