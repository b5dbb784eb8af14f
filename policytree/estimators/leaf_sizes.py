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
    count, label = rarest_treatment(problem, actions)
    return InputError(
        f"min_samples_per_treatment asks for more rows than there are ({per_arm:,}, but treatment {label} has "
        f"{count:,}); lower it."
    )


def too_few_rows(asked: int, n: int) -> InputError:
    """The error where a leaf needs more rows than the table has."""
    return InputError(f"min_samples_leaf asks for more rows than there are ({asked:,}, but there are {n:,}); lower it.")


def warn_of_no_split(n_rows: int, min_leaf: int, per_arm: int = 0, rarest: tuple[int, str] = (0, "")) -> None:
    """Say that the tree had to be a single leaf because no split leaves both sides enough rows.

    Called by what ``fit`` calls next but one: the warning then points at the caller of ``fit``.

    Parameters
    ----------
    n_rows : int
    min_leaf, per_arm : int
        What was asked, of all treatments together and of each.
    rarest : tuple of int and str
        Rows and label of the rarest treatment, where ``per_arm`` is positive.

    Warns
    -----
    SearchWarning
    """
    rules, counts = [], [f"{n_rows:,} rows in all"]
    if min_leaf > 1:
        rules.append(f"{min_leaf:,} rows")
    if per_arm > 0:
        rules.append(f"{per_arm:,} of every treatment")
        counts.append(f"{rarest[0]:,} of {rarest[1]}")
    remedy = "min_samples_leaf" if min_leaf > 1 else "min_samples_per_treatment"
    warnings.warn(
        f"No split leaves {' and '.join(rules)} on both sides ({', '.join(counts)}), so the tree is a single leaf; "
        f"lower {remedy}.",
        SearchWarning,
        stacklevel=5,
    )


def rarest_treatment(problem: Problem, actions: tuple) -> tuple[int, str]:
    """Rows and label of the treatment with the fewest rows; (0, "") where treatments are not known."""
    if problem.arms is None:
        return 0, ""
    counts = np.bincount(problem.arms, minlength=problem.losses.shape[1])
    k = int(counts.argmin())
    return int(counts[k]), str(actions[k])
