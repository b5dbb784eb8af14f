"""Resamples of a study, and what a learner makes of one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from policytree.common.validation import check_choice, check_count, is_real
from policytree.data.features import CATEGORICAL
from policytree.evaluation.inputs import generator
from policytree.evaluation.policy_value.refits import Data, finished, policy_codes
from policytree.exceptions import InputError, UnseenValueWarning, quoted
from policytree.trees.tree import Tree
from policytree.weighting.study_data import by_columns

BOOTSTRAP, SUBSAMPLE = "bootstrap", "subsample"


@dataclass(frozen=True, slots=True)
class Split:
    """A question of a tree.

    Attributes
    ----------
    feature : str
    depth : int
        Questions before it on its path; the root's is 0.
    threshold : float
        For numbers: ``feature <= threshold`` (inf: is known); NaN for categories.
    category : str or None
        For categories: ``feature = category``.
    """

    feature: str
    depth: int
    threshold: float
    category: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """The tree and the decisions that were learnt from one resample.

    Attributes
    ----------
    policy : ndarray of shape (n,), int16
        Position of the treatment that each row of the whole study would get.
    splits : tuple of Split
    n_leaves : int
        0 if the learner is no tree.
    warnings : tuple of WarningMessage
    """

    policy: np.ndarray
    splits: tuple[Split, ...]
    n_leaves: int
    warnings: tuple[warnings.WarningMessage, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """The error that a resample raised."""

    error: Exception


def splits_of(tree: Tree) -> tuple[Split, ...]:
    """The questions of a tree, from the root down."""
    depths, out = tree.node_depths(), []
    for node in np.flatnonzero(~tree.is_leaf):
        feature, threshold = tree.features[tree.feature[node]], float(tree.threshold[node])
        depth = int(depths[node])
        if feature.kind == CATEGORICAL:
            levels = [str(feature.categories[k]) for k in feature.levels_at(threshold)]
            value = ", ".join(levels) if levels else "missing"
            out.append(Split(feature.name, depth, np.nan, value))
        else:
            out.append(Split(feature.name, depth, threshold))
    return tuple(out)


def draw_rows(method: str, share: float, units: np.ndarray, n_resamples, random_state) -> list[np.ndarray]:
    """Rows of every resample; clusters are drawn whole.

    Raises
    ------
    InputError
        If an argument is unknown.
    """
    check_choice(method, "method", (BOOTSTRAP, SUBSAMPLE))
    check_count(n_resamples, "n_resamples", 2)
    if not is_real(share) or not 0.1 <= share <= 0.9:
        raise InputError(f"share must lie between 0.1 and 0.9; got {quoted(share)}.")
    rng = generator(random_state)
    _, unit = np.unique(units, return_inverse=True)
    order, size = np.argsort(unit, kind="stable"), np.bincount(unit)
    start, n_units = np.concatenate([[0], np.cumsum(size)]), len(size)
    out = []
    for _ in range(n_resamples):
        if method == BOOTSTRAP:
            chosen = np.sort(rng.randint(n_units, size=n_units))
        else:
            chosen = np.sort(rng.permutation(n_units)[: max(1, round(share * n_units))])
        out.append(np.concatenate([order[start[u] : start[u + 1]] for u in chosen]))
    return out


def try_rows(estimator, rows: np.ndarray, *, data: Data, units: np.ndarray) -> Refitted | Failure:
    """Fit to these rows, or return the error: a treatment lacks rows, or a learner finds no solution."""
    try:
        return refit_rows(estimator, rows, data=data, units=units)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Failure(error)


def refit_rows(estimator, rows: np.ndarray, *, data: Data, units: np.ndarray) -> Refitted:
    """Fit to these rows and decide for everybody; copies of a row, and rows of a cluster, stay in one fold.

    Raises
    ------
    KeyboardInterrupt
        Where a search answered Ctrl-C by keeping its best tree.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", UnseenValueWarning)  # rare categories that a resample lacks
        arguments = data.fit_arguments(rows)
        fitted = finished(by_columns(clone(estimator).fit, **{**arguments, "groups": units[rows]}))
        everybody = data.covariates(np.arange(data.seen.n))["X"]
        policy = policy_codes(fitted, everybody, pd.Index(data.seen.treatments)).astype(np.int16)
    tree = getattr(getattr(fitted, "policy_tree_", fitted), "tree_", None)
    splits, n_leaves = (splits_of(tree), tree.n_leaves) if isinstance(tree, Tree) else ((), 0)
    return Refitted(policy, splits, n_leaves, tuple(heard))


def codes_of(labels: Sequence[Any] | np.ndarray | None, treatments: np.ndarray) -> np.ndarray | None:
    """Positions of labels among the treatments."""
    return None if labels is None else pd.Index(treatments).get_indexer(pd.Index(labels))
