"""Smallest leaves that nothing can meet: what was asked, which counts there are, what to do."""

from __future__ import annotations

import warnings

import numpy as np

from policytree.exceptions import InputError, SearchWarning
from policytree.types import Problem


def infeasible(problem: Problem, asked: int, per_arm: int, actions: tuple) -> InputError:
    """The error where not even a single leaf of all rows is large enough.

    Parameters
    ----------
    problem : Problem
    asked, per_arm : int
        ``min_samples_leaf`` and ``min_samples_per_treatment``.
    actions : tuple
        Labels of the arms.
    """
    n = problem.data.n_rows
    if asked > n:
        return too_few_rows(asked, n)
    counts = _arm_counts(problem)
    k = int(counts.argmin())
    return InputError(
        f"min_samples_per_treatment asks for more rows than there are ({per_arm:,}, but treatment {actions[k]!s} has "
        f"{counts[k]:,}); lower it."
    )


def too_few_rows(asked: int, n: int) -> InputError:
    """The error where a leaf needs more rows than the table has."""
    return InputError(f"min_samples_leaf asks for more rows than there are ({asked:,}, but there are {n:,}); lower it.")


def warn_if_no_split_fits(problem: Problem, actions: tuple) -> None:
    """Say so where the tree had to be a single leaf because no split leaves both sides enough rows.

    Cost: one count of every split column, O(columns x n x arms).

    Warns
    -----
    SearchWarning
    """
    if problem.max_depth == 0 or problem.max_leaf_nodes == 1 or not problem.data.n_bins.size:
        return
    if problem.min_leaf <= 1 and problem.min_leaf_per_arm <= 0:
        return
    if any(_some_cut_fits(problem, int(j)) for j in np.flatnonzero(problem.root_columns)):
        return
    rules, counts = [], [f"{problem.data.n_rows:,} rows in all"]
    if problem.min_leaf > 1:
        rules.append(f"{problem.min_leaf:,} rows")
    if problem.min_leaf_per_arm > 0:
        rules.append(f"{problem.min_leaf_per_arm:,} of every treatment")
        arms = _arm_counts(problem)
        k = int(arms.argmin())
        counts.append(f"{arms[k]:,} of {actions[k]!s}")
    remedy = "min_samples_leaf" if problem.min_leaf > 1 else "min_samples_per_treatment"
    warnings.warn(
        f"No split leaves {' and '.join(rules)} on both sides ({', '.join(counts)}), so the tree is a single leaf; "
        f"lower {remedy}.",
        SearchWarning,
        stacklevel=5,
    )


def _arm_counts(problem: Problem) -> np.ndarray:
    assert problem.arms is not None
    return np.bincount(problem.arms, minlength=problem.losses.shape[1])


def _some_cut_fits(problem: Problem, j: int) -> bool:
    """Whether a cut of a column leaves enough rows, of every arm, on both sides."""
    codes, bins = problem.data.codes[j], int(problem.data.n_bins[j])
    left = np.cumsum(np.bincount(codes, minlength=bins))[:-1]
    fits = (left >= problem.min_leaf) & (len(codes) - left >= problem.min_leaf)
    if problem.min_leaf_per_arm > 0 and fits.any():
        assert problem.arms is not None
        K = problem.losses.shape[1]
        table = np.bincount(codes.astype(np.int64) * K + problem.arms, minlength=bins * K).reshape(bins, K)
        sides = np.cumsum(table, axis=0)
        least = np.minimum(sides[:-1], sides[-1] - sides[:-1]).min(axis=1)
        fits &= least >= problem.min_leaf_per_arm
    return bool(fits.any())
