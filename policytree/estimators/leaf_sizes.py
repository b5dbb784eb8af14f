"""The smallest leaves: those of a study where nobody asked for others, and errors where none can be so large."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from policytree.common.callers import stacklevel_outside
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Problem

if TYPE_CHECKING:
    from policytree.weighting.study_data import StudyData

AUTO = "auto"  # of an argument: the data decide
FEWEST_OF_ARM = 8  # the error of a difference between two means of so many rows each is half a standard deviation
FEWEST_SECOND = 2.0  # rows of an arm whose outcome is not the most frequent one
SMALLEST_SHARE = 0.01  # of all rows, that a leaf must hold
LARGEST_SHARE = 0.25  # of all rows, or of the rarest arm's: more is not asked for
ANY = {"min_samples_leaf": 1, "min_samples_per_treatment": 0}  # leaves of any size


def default_leaf_sizes(y: np.ndarray, arm: np.ndarray, n_arms: int) -> tuple[int, int]:
    """Fewest rows in a leaf, and of every treatment in it, so that a leaf rests on more than a few rows.

    Of every treatment, at least 8 rows: the standard error of a difference between two means is then half a standard
    deviation of the outcome; and so many that 2 are expected not to have the most frequent outcome, which makes more of
    a rare event. In a leaf, at least that of every treatment, and a hundredth of the rows. Neither asks for more than a
    quarter of what there is.

    Parameters
    ----------
    y : ndarray of shape (n,)
    arm : ndarray of shape (n,), int
    n_arms : int

    Returns
    -------
    min_samples_leaf, min_samples_per_treatment : int
    """
    counts = np.bincount(arm, minlength=n_arms)
    others = 1.0 - np.unique(y, return_counts=True)[1].max() / len(y)
    needed = FEWEST_OF_ARM if others <= 0.0 else max(FEWEST_OF_ARM, int(np.ceil(FEWEST_SECOND / others)))
    per_arm = int(min(needed, LARGEST_SHARE * counts.min()))
    leaf = int(min(max(n_arms * per_arm, np.ceil(SMALLEST_SHARE * len(y))), LARGEST_SHARE * len(y)))
    return max(leaf, 1), per_arm


def of_any_size(estimator: Any) -> dict[str, int]:
    """Leaves of any size for an estimator's "auto", which a study decides; empty where it has numbers."""
    return {name: size for name, size in ANY.items() if getattr(estimator, name, None) == AUTO}


def leaf_sizes(estimator: Any, seen: StudyData, people: int = 0) -> dict[str, int]:
    """The smallest leaves of an estimator, "auto" being decided by a study.

    "auto" is :func:`default_leaf_sizes`. People of a target have no treatment, and are counted in leaves together with
    the rows of the study.

    Parameters
    ----------
    estimator : object with ``min_samples_leaf`` and ``min_samples_per_treatment``, each a number or "auto"
    seen : StudyData
    people : int
        Of a target that ``seen`` does not hold.
    """
    rows, n_leaf, n_arm = seen.of_study(), estimator.min_samples_leaf, estimator.min_samples_per_treatment
    leaf, per_arm = default_leaf_sizes(_known_outcomes(rows), rows.arm, rows.n_arms)
    if people := people + seen.n - rows.n:
        leaf, per_arm = int(np.ceil(leaf * (1 + people / rows.n))), 0
    elif n_arm == 0:
        leaf = 1  # who wants no treatment in a leaf wants any leaf, unless they say how many rows
    return {
        "min_samples_leaf": leaf if n_leaf == AUTO else n_leaf,
        "min_samples_per_treatment": per_arm if n_arm == AUTO else n_arm,
    }


def price_of_leaf(max_depth: Any, regularization: Any) -> Any:
    """The price of a leaf; without one, "auto" where the depth is chosen by the data, else 0."""
    if regularization is not None:
        return regularization
    return AUTO if max_depth == AUTO else 0.0


def sized_for(estimator: Any, seen: StudyData) -> Any:
    """A copy, fitted as it was, with the smallest leaves of a study, which its refits on parts of the rows keep."""
    return copy.copy(estimator).set_params(**leaf_sizes(estimator, seen)) if of_any_size(estimator) else estimator


def _known_outcomes(seen: StudyData) -> np.ndarray:
    """Outcomes, (n,); rows whose outcome is not known have the most frequent one, since they show no other."""
    known, y = seen.seen, seen.y
    if seen.times is not None:
        known, y = seen.times.known, seen.times.observed_value
    if known is None:
        return y
    values, counts = np.unique(y[known], return_counts=True)
    return np.where(known, y, values[counts.argmax()])


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
        Sizes asked for, of all treatments together and of each.
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
        stacklevel=stacklevel_outside(),
    )


def rarest_treatment(problem: Problem, actions: tuple) -> tuple[int, str]:
    """Rows and label of the treatment with the fewest rows; (0, "") where treatments are not known."""
    if problem.arms is None:
        return 0, ""
    counts = np.bincount(problem.arms, minlength=problem.losses.shape[1])
    k = int(counts.argmin())
    return int(counts[k]), str(actions[k])
