"""Fold plans: which rows are held out together, balanced over arms and never splitting a cluster."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from policytree.exceptions import InputError, quoted


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which fold each row is held out in.

    Attributes
    ----------
    fold : ndarray of shape (n,), int64
        Row ``i`` is predicted by the model trained without fold ``fold[i]``.
    n_folds : int
    """

    fold: np.ndarray
    n_folds: int

    def splits(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row indices (train, test) of every fold."""
        for f in range(self.n_folds):
            held_out = self.fold == f
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def make_folds(
    n: int,
    cv: Any = 5,
    *,
    strata=None,
    stratum_names=None,
    design=None,
    groups=None,
    random_state=None,
    what: str = "Treatment",
    argument: str = "cv",
    whose: str = "",
    target: str | None = None,
) -> FoldPlan:
    """Split rows into folds, balanced over strata, never splitting a cluster.

    Parameters
    ----------
    n : int
        Number of rows.
    cv : int, scikit-learn splitter, list of (train, test) rows, or array of shape (n,)
        Number of folds (shuffled by ``random_state``), an object with ``split(X, y, groups)``, its splits, or each
        row's fold.
    strata : ndarray of shape (n,), int, optional
        Codes 0, 1, ... (the arms). Every training part must hold every stratum.
    stratum_names : sequence, optional
        Names of the strata, for messages.
    design : ndarray of shape (n,), int, optional
        Codes 0, 1, ... of the blocks within which treatment was assigned (sites, say). Drawn folds hold each stratum of
        each block in equal numbers, as far as its size and the clusters allow; a small one may be lacking in some fold.
    groups : ndarray of shape (n,), int, optional
        Cluster codes 0, 1, ...; rows of one cluster stand in one fold.
    random_state : int, RandomState or None
    what : str
        Name of a stratum in messages.
    argument, whose : str
        Name of ``cv`` in messages, and whose it is (" of DRPolicyTree"): a fit inside an evaluation knows two of them.
    target : str, optional
        Where the last stratum holds the people of a target, the name that messages have for it.

    Returns
    -------
    FoldPlan

    Raises
    ------
    InputError
        If there are too few rows (or clusters) of some stratum, or ``cv`` cannot be used.
    """
    words = _Words(what, argument, whose, target)
    names = np.unique(strata) if stratum_names is None and strata is not None else stratum_names
    if _is_splits(cv):
        from sklearn.model_selection import check_cv

        cv = check_cv(cv)
    if not hasattr(cv, "split") and np.ndim(cv) == 1:
        plan = _given_folds(np.asarray(cv), n, groups)
    elif isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        plan = _drawn_folds(n, int(cv), strata, names, design, groups, random_state, words)
    elif hasattr(cv, "split") and not isinstance(cv, (str, bytes)):
        y = _cells(n, strata, design)[0]
        try:
            plan = _folds_of_splitter(cv, n, y, groups)
        except InputError:
            raise
        except (TypeError, ValueError) as error:  # raised by splitters for rows that they cannot divide
            raise InputError(f"{words.owned}={quoted(cv)} cannot divide these rows: {error}") from error
    else:
        raise InputError(
            f"{words.owned} must be a number of folds, a scikit-learn splitter or one fold id per row; got "
            f"{quoted(cv)}."
        )
    _check_folds(plan, strata, names, groups, words)
    return plan


def _is_splits(cv: Any) -> bool:
    """Whether these are the splits themselves, pairs of training and test rows, which scikit-learn takes as well."""
    return isinstance(cv, list | tuple) and len(cv) > 0 and all(isinstance(each, list | tuple) for each in cv)


class _Words(NamedTuple):
    """Words of messages for a stratum, for the number of folds, and for whose that is."""

    what: str
    argument: str
    whose: str
    target: str | None = None

    @property
    def owned(self) -> str:
        return self.argument + self.whose

    def stratum(self, name: Any) -> str:
        return "The target (target_X, or study)" if name == self.target else f"{self.what} {name!s}"


def _cells(n: int, strata, design) -> list[np.ndarray]:
    """List the cells to balance folds over, finest first: strata within blocks, then strata; codes of shape (n,)."""
    codes = np.zeros(n, dtype=np.int64) if strata is None else strata
    if design is None:
        return [codes]
    cells = np.unique(codes * (design.max() + 1) + design, return_inverse=True)[1]
    return [cells.astype(np.int64), codes]


def _drawn_folds(n, n_folds, strata, names, design, groups, random_state, words) -> FoldPlan:
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.utils import check_random_state

    if n_folds < 2:
        raise InputError(f"{words.owned} must be at least 2, so that models never judge rows they saw; got {n_folds}.")
    unit = "rows" if groups is None else "clusters"
    n_units = n if groups is None else len(np.unique(groups))
    if n_units < 2:
        raise InputError(
            f"The data have {n_units} {unit}; folds need at least two, to learn from one and judge another."
        )
    if n_units < n_folds:
        raise InputError(
            f"The data have {n_units} {unit}, fewer than {words.argument}={n_folds} folds; set {words.owned} to at "
            f"most {n_units}."
        )
    if strata is not None:
        _refuse_small_strata(strata, names, groups, n_folds, unit, words)
    if groups is not None:
        cells = _cells(n, strata, design)
        return FoldPlan(_deal_clusters(groups, cells, n_folds, check_random_state(random_state)), n_folds)
    if design is not None:
        cells = _cells(n, strata, design)
        return FoldPlan(_deal_rows(cells, n_folds, check_random_state(random_state)), n_folds)
    splitter = (KFold if strata is None else StratifiedKFold)(n_folds, shuffle=True, random_state=random_state)
    return _folds_of_splitter(splitter, n, np.zeros(n, dtype=np.int64) if strata is None else strata, None)


def _deal_rows(cells: list[np.ndarray], n_folds: int, random_state) -> np.ndarray:
    """Folds of single rows, dealt like cards from a pack sorted by stratum and block; shape (n,), int64.

    Strata within blocks, strata, and all rows are each spread over the folds with counts that differ by one at most.
    """
    n = len(cells[0])
    order = random_state.permutation(n)
    order = order[np.lexsort([codes[order] for codes in cells])]
    fold = np.empty(n, dtype=np.int64)
    fold[order] = np.arange(n) % n_folds
    return random_state.permutation(n_folds)[fold]


def _counts(groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Rows of every cluster in every cell, (n_clusters, n_cells)."""
    shape = groups.max() + 1, codes.max() + 1
    return np.bincount(groups * shape[1] + codes, minlength=shape[0] * shape[1]).reshape(shape)


def _deal_clusters(groups, cells: list[np.ndarray], n_folds: int, random_state) -> np.ndarray:
    """Folds of whole clusters with nearly equal numbers of rows in all and per cell; shape (n,), int64.

    Large clusters first, every cluster goes where the fold holds least of what it has, as in scikit-learn's
    ``StratifiedGroupKFold``; but clusters of the same composition (rows per cell) are dealt at once, which takes a
    survey of a million people in households from minutes to a second.
    """
    counts = np.hstack([_counts(groups, codes) for codes in cells])
    occurring = random_state.permutation(np.flatnonzero(counts.any(axis=1)))
    kinds, kind, size = np.unique(counts[occurring], axis=0, return_inverse=True, return_counts=True)
    members = np.split(occurring[np.argsort(kind.ravel(), kind="stable")], size.cumsum()[:-1])
    totals, n_rows = size @ kinds, kinds.sum(axis=1) / len(cells)
    share = np.column_stack([kinds / np.maximum(totals, 1), n_rows / len(groups)])
    fold, load = np.empty(len(counts), dtype=np.int64), np.zeros((n_folds, share.shape[1]))
    for i in np.argsort(-share.max(axis=1), kind="stable"):
        # One more cluster raises the sum of squared loads, least when balanced, by 2 load @ share + share @ share.
        level = load @ share[i] / (share[i] @ share[i])
        m = size[i]
        fold[members[i]] = np.argsort(level[:, None] + np.arange(m), axis=None, kind="stable")[:m] // m
        load += np.bincount(fold[members[i]], minlength=n_folds)[:, None] * share[i]
    return random_state.permutation(n_folds)[fold[groups]]


def _refuse_small_strata(strata, names, groups, n_folds, unit, words) -> None:
    pairs = strata if groups is None else np.unique(np.column_stack([strata, groups]), axis=0)[:, 0]
    counts = np.bincount(pairs, minlength=len(names))
    k = int(counts.argmin())
    if counts[k] < n_folds:
        fewer = f"set {words.argument}={counts[k]}{words.whose}, " if counts[k] >= 2 else ""
        remedy = "merge it with another or leave its rows out."
        if names[k] == words.target:
            remedy = f"{'or ' * bool(fewer)}pass more people whom the rule is for (predict says what one of them gets)."
        raise InputError(
            f"{words.stratum(names[k])} has {counts[k]} {unit}, fewer than {words.argument}={n_folds} folds; {fewer}"
            f"{remedy}"
        )


def _folds_of_splitter(splitter, n, y, groups) -> FoldPlan:
    fold = np.full(n, -1, dtype=np.int64)
    n_folds = 0
    with warnings.catch_warnings():
        # Splitters that know no clusters say so; whether clusters stayed together is checked afterwards.
        warnings.filterwarnings("ignore", message="The groups parameter is ignored", category=UserWarning)
        parts = list(splitter.split(np.zeros((n, 1)), y, groups))
    for f, (train, test) in enumerate(parts):
        if (fold[test] >= 0).any():
            raise InputError("cv holds some rows out more than once; use a splitter whose test parts do not overlap.")
        fold[test] = f
        if len(np.union1d(train, test)) < n:
            raise InputError(
                "cv keeps some rows out of a training part and of its test part, but models learn from all rows that "
                "are not held out; use a splitter that leaves none out."
            )
        n_folds = f + 1
    if (fold < 0).any():
        raise InputError(f"cv never holds out {(fold < 0).sum()} of {n} rows; use a splitter that covers every row.")
    return FoldPlan(fold, n_folds)


def _given_folds(fold: np.ndarray, n: int, groups) -> FoldPlan:
    if len(fold) != n:
        raise InputError(f"cv gives {len(fold)} fold ids for {n} rows; give one per row.")
    ids, codes = np.unique(fold, return_inverse=True)
    if len(ids) < 2:
        raise InputError("cv gives all rows the same fold id; use at least two folds.")
    return FoldPlan(codes.astype(np.int64), len(ids))


def _check_folds(plan: FoldPlan, strata, names, groups, words) -> None:
    """Check folds of a splitter or an array from the user, or of an unlucky draw of clusters."""
    if groups is not None:
        first = np.zeros(groups.max() + 1, dtype=np.int64)
        first[groups] = plan.fold
        if (first[groups] != plan.fold).any():
            raise InputError("cv puts rows of one cluster in different folds; use a splitter that respects groups.")
    if strata is not None:
        counts = np.zeros((plan.n_folds, len(names)), dtype=np.int64)
        np.add.at(counts, (plan.fold, strata), 1)
        alone = np.flatnonzero((counts == counts.sum(axis=0)).any(axis=0))
        if len(alone):
            whose = words.stratum(names[alone[0]])
            rest = "pass more of its people" if names[alone[0]] == words.target else "leave its rows out"
            raise InputError(
                f"All rows of {whose[0].lower()}{whose[1:]} fall into one fold, so no model could learn it; "
                f"use fewer folds ({words.owned}) or another random_state, or {rest}."
            )
