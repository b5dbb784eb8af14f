"""Shared test costs: a path pays for a test group, a feature or several ones, once."""

from __future__ import annotations

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.types import BinnedData, Problem


def shared_groups(problem: Problem, costs: np.ndarray | None = None, data: BinnedData | None = None) -> np.ndarray:
    """The test group of every column, from 0 on; -1 where no path could ask its group a second time, or it is free.

    Parameters
    ----------
    problem : Problem
    costs : ndarray of shape (n_features,), optional
        They stand in for those of the problem.
    data : BinnedData, optional
        Likewise.
    """
    data = problem.data if data is None else data
    columns, n_bins = data.columns, data.n_bins
    groups, costs = problem.feature_groups, problem.feature_costs if costs is None else costs
    owners = np.full(len(columns), -1, np.int64)
    if groups is None or costs is None or (problem.max_depth is not None and problem.max_depth < 2):
        return owners
    features = np.array([column.feature for column in columns], dtype=np.int64)
    _, group = np.unique(groups[features], return_inverse=True)
    group = group.reshape(-1)
    cuts = np.bincount(group, weights=np.asarray(n_bins) - 1)
    priced = np.bincount(group, weights=costs[features] > 0) > 0
    shared = (priced & (cuts > 1))[group]
    owners[shared] = np.unique(group[shared], return_inverse=True)[1].reshape(-1)
    return owners


def are_uneven(owners: np.ndarray, prices: np.ndarray) -> bool:
    """Whether columns of one test group differ in price; both (n_columns,), as ``kernels/base/layout.py::Rows``."""
    if owners.max(initial=-1) < 0:
        return False
    pairs = np.unique(np.stack([owners, prices])[:, owners >= 0], axis=1)
    return len(pairs[0]) > len(np.unique(pairs[0]))


def shares_test_costs(problem: Problem, costs: np.ndarray | None = None) -> bool:
    """Whether being paid for once makes a difference: some path could ask a priced group a second time."""
    return bool((shared_groups(problem, costs) >= 0).any())


def refuse_shared_costs(problem: Problem, what: str) -> None:
    """One sentence where trees are asked for in a way that charges every split."""
    if shares_test_costs(problem):
        raise InputError(f"{what} charge every split; set repeated_features='charged'.")
