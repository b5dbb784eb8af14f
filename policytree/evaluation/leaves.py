"""Who is in each leaf of a tree, and what each treatment is worth there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from policytree.evaluation.estimates import mean_estimate
from policytree.evaluation.inputs import arm_codes, column, reward_frame, rows_arguments
from policytree.exceptions import InputError


def leaf_summary(
    leaves, policy, rewards, *, groups=None, sample_weight=None, direction: str = "maximize"
) -> pd.DataFrame:
    """Who is in each leaf, what they get, and what each treatment would be worth there.

    Parameters
    ----------
    leaves : array of shape (n,)
        Leaf of every row, from a tree's ``apply``.
    policy : array of shape (n,), or one label
        The treatment recommended to every row, from its ``predict``; the same for all rows of a leaf.
    rewards, groups, sample_weight
        As in :func:`policy_value`. On the rows the tree was grown on, the chosen arm's value is flattered.
    direction : {"maximize", "minimize"}
        Which way rewards are better; it decides the second-best arm.

    Returns
    -------
    DataFrame
        One row per leaf, sorted by leaf id; two column levels. ``("n", "")``: rows. ``("share", "")``: share of the
        total weight. ``("arm", "")``: the chosen arm. ``("second_best", "")``: the best other arm. ``("value", arm)``,
        ``("standard_error", arm)``: every arm's value. ``("gain", "value")`` and ``("gain", "standard_error")``: the
        chosen arm's value minus the second best's (paired; negative is better when minimising). Standard errors are
        cluster-robust within the leaf, and NaN where a leaf holds fewer than two clusters.

    Raises
    ------
    InputError
        As :func:`policy_value`, and if a leaf gives more than one treatment, or has no weight.
    """
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
    table = reward_frame(rewards)
    arm = arm_codes(policy, table.columns, len(table), "policy")
    codes, weight = rows_arguments(groups, sample_weight, len(table))
    weight = np.ones(len(table)) if weight is None else weight
    ids, leaf_of = np.unique(column(leaves, "leaves", len(table)), return_inverse=True)
    records = {}
    for position, leaf in enumerate(ids):
        rows = np.flatnonzero(leaf_of == position)
        chosen = np.unique(arm[rows])
        if len(chosen) > 1:
            names = ", ".join(str(table.columns[k]) for k in chosen)
            raise InputError(f"policy gives leaf {leaf} more than one treatment ({names}); pass the same tree's rows.")
        if not weight[rows].any():
            raise InputError(f"All rows of leaf {leaf} have sample_weight zero; leave them out.")
        row_codes = None if codes is None else codes[rows]
        records[leaf] = {
            ("n", ""): len(rows),
            ("share", ""): weight[rows].sum() / weight.sum(),
            **_leaf_record(table.iloc[rows], int(chosen[0]), row_codes, weight[rows], direction),
        }
    columns = pd.MultiIndex.from_tuples(next(iter(records.values())))
    return pd.DataFrame(records.values(), index=pd.Index(ids, name="leaf"), columns=columns)


def _leaf_record(rewards: pd.DataFrame, chosen: int, groups, weight, direction: str) -> dict:
    """Values of all arms in one leaf, and the paired gain over the best other arm."""
    scores, labels = rewards.to_numpy(), list(rewards.columns)
    arms = [mean_estimate(scores[:, k], groups=groups, sample_weight=weight) for k in range(len(labels))]
    record: dict = {("arm", ""): labels[chosen]}
    others = [k for k in range(len(labels)) if k != chosen]
    pick = max if direction == "maximize" else min
    second = pick(others, key=lambda k: arms[k].value)
    gain = mean_estimate(scores[:, chosen] - scores[:, second], groups=groups, sample_weight=weight)
    record[("second_best", "")] = labels[second]
    record |= {("value", label): estimate.value for label, estimate in zip(labels, arms, strict=True)}
    record |= {("standard_error", label): estimate.standard_error for label, estimate in zip(labels, arms, strict=True)}
    record |= {("gain", "value"): gain.value, ("gain", "standard_error"): gain.standard_error}
    return record
