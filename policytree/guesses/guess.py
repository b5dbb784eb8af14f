"""Definition of a guess: a function from a fitted reference model to restrictions of the search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from policytree.problem.types import BinnedData, Guesses, ReferenceTree


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference model, fitted to the data of the search.

    Attributes
    ----------
    data : BinnedData
    losses : ndarray of shape (n, K)
        Weighted losses of the search.
    actions : ndarray of shape (n,), int64
        The model's predictions.
    cuts : list of ndarray
        Cuts of every column of ``data`` that the model needs; empty unless a guess with ``needs_cuts`` was asked for.
    n_estimators, max_depth : int
        Number and depth of its trees.
    """

    data: BinnedData
    losses: np.ndarray
    actions: np.ndarray
    cuts: list[np.ndarray]
    n_estimators: int
    max_depth: int


@dataclass(frozen=True, slots=True)
class Guess:
    """One way to take a guess from a reference.

    Attributes
    ----------
    suggest : callable
        From a :class:`Reference` to :class:`policytree.problem.types.Guesses` with the fields set that it guesses.
        :func:`policytree.solvers.guided.solve.solve_with_guesses` describes each field's effect on a search, and its
        guarantee.
    needs_cuts : bool
        Whether it reads ``Reference.cuts`` (column elimination takes time, and models that are no boosted trees have
        none).
    """

    suggest: Callable[[Reference], Guesses]
    needs_cuts: bool = False


def merged(guesses: Iterable[Guesses]) -> Guesses:
    """All restrictions at once: thresholds that all keep, the smallest depth, the largest losses of a reference.

    Of several reference trees the one with fewest leaves is kept.
    """
    depth: int | None = None
    thresholds: tuple[np.ndarray | None, ...] | None = None
    losses: np.ndarray | None = None
    tree: ReferenceTree | None = None
    for one in guesses:
        if one.max_depth is not None:
            depth = one.max_depth if depth is None else min(depth, one.max_depth)
        if one.thresholds is not None:
            first = one.thresholds if thresholds is None else thresholds
            thresholds = tuple(_both(a, b) for a, b in zip(first, one.thresholds, strict=True))
        if one.reference_losses is not None:
            losses = one.reference_losses if losses is None else np.maximum(losses, one.reference_losses)
        if one.reference_tree is not None and (tree is None or one.reference_tree.leaves < tree.leaves):
            tree = one.reference_tree
    return Guesses(max_depth=depth, thresholds=thresholds, reference_losses=losses, reference_tree=tree)


def _both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    if one is None or other is None:
        return other if one is None else one
    return np.intersect1d(one, other)
