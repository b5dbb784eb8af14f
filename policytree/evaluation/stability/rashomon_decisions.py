"""The listed near-ties as trees, and what each of them gives to every row: equal rules are found exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from policytree.problem.types import Problem
from policytree.solvers.core.columns import equal_rows
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.rashomon.enumerate import TiedTrees
from policytree.trees.tree import Tree


class TreeList(Sequence):
    """The listed trees, the best one first; each is made when it is asked for."""

    def __init__(self, problem: Problem, found: TiedTrees, actions: tuple):
        self._problem, self._found, self.actions = problem, found, actions

    def __len__(self) -> int:
        return len(self._found.trees)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        splits = self._found.preorder(range(len(self))[i])
        tree, _ = scored_tree(self._problem, splits, [action for column, action in splits if column < 0])
        return replace(tree, actions=self.actions)

    def one_leaf(self, action: int) -> Tree:
        """The tree that gives everybody one action, by its position in ``actions``."""
        tree, _ = scored_tree(self._problem, [(-1, 0)], [action])
        return replace(tree, actions=self.actions)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of the table."""
        return tuple(feature.name for feature in self._problem.data.features)

    @cached_property
    def n_leaves(self) -> np.ndarray:
        """Leaves of every tree, shape (trees,)."""
        return self._found.n_leaves()

    @cached_property
    def asks(self) -> np.ndarray:
        """Which columns of the table every tree asks about, shape (trees, p), bool."""
        data, columns = self._problem.data, self._found.columns()
        feature = np.array([column.feature for column in data.columns], np.int64)
        out = np.zeros((len(columns), len(data.features)), bool)
        rows, slots = np.nonzero(columns >= 0)
        out[rows, feature[columns[rows, slots]]] = True
        return out

    def simplest(self) -> int:
        """Position of the tree with the fewest leaves, then the fewest columns, then the best objective."""
        return int(np.lexsort((np.arange(len(self)), self.asks.sum(axis=1), self.n_leaves))[0])


@dataclass(frozen=True, slots=True)
class Decisions:
    """Different decision functions on the rows.

    Attributes
    ----------
    patterns : ndarray of shape (m, planes, bytes), uint8
        Of every decision function the bits of the actions that it gives, one bit for each distinct row.
    of_tree : ndarray of shape (trees,), int64
        The decision function of every listed tree; they are numbered as they come, the best tree's is 0.
    group : ndarray of shape (n,), int64
        The distinct row that every row is.
    weight : ndarray of shape (n,)
    n_actions : int
    """

    patterns: np.ndarray = field(repr=False)
    of_tree: np.ndarray = field(repr=False)
    group: np.ndarray = field(repr=False)
    weight: np.ndarray = field(repr=False)
    n_actions: int

    def __len__(self) -> int:
        return len(self.patterns)

    @property
    def n_distinct(self) -> int:
        """Number of distinct rows."""
        return int(self.group.max()) + 1

    def actions(self, i: int) -> np.ndarray:
        """The action that decision function ``i`` gives to every distinct row, int64."""
        planes = self.patterns[i]
        bits = np.unpackbits(planes, axis=1, count=self.n_distinct).astype(np.int64)
        return (bits << np.arange(len(planes))[:, None]).sum(axis=0)

    def counts(self) -> np.ndarray:
        """How many decision functions give each distinct row each action, shape (distinct rows, K)."""
        out = np.zeros((self.n_distinct, self.n_actions), np.int64)
        rows = np.arange(self.n_distinct)
        for i in range(len(self)):
            out[rows, self.actions(i)] += 1
        return out

    def masses(self) -> np.ndarray:
        """Weight of every distinct row, adding up to one."""
        masses = np.bincount(self.group, self.weight, minlength=self.n_distinct)
        return masses / masses.sum()

    def distances(self) -> np.ndarray:
        """Share of weight that each decision function treats otherwise than the first one, shape (m,)."""
        masses, padded = self.masses(), self.patterns.shape[2] * 8
        masses = np.append(masses, np.zeros(padded - len(masses)))
        return np.array([
            masses[np.unpackbits(np.bitwise_or.reduce(each ^ self.patterns[0], axis=0)).astype(bool)].sum()
            for each in self.patterns
        ])  # fmt: skip


def decide(problem: Problem, found: TiedTrees, weight: np.ndarray) -> Decisions:
    """Assign every row of the problem by every listed tree, by row bits; equal decisions are merged."""
    first, group = equal_rows(problem.data)
    codes, K = problem.data.codes[:, first], problem.losses.shape[1]
    bits = _RowBits(codes, found, max((K - 1).bit_length(), 1))
    numbers: dict[bytes, int] = {}
    patterns: list[np.ndarray] = []
    of_tree = np.empty(len(found.trees), np.int64)
    for i, tree in enumerate(found.trees.tolist()):
        pattern = bits.of(tree)
        key = pattern.tobytes()
        if key not in numbers:
            numbers[key] = len(patterns)
            patterns.append(pattern)
        of_tree[i] = numbers[key]
    shape = (len(patterns), bits.n_planes, len(bits.all))
    return Decisions(np.array(patterns, np.uint8).reshape(shape), of_tree, group, weight, K)


class _RowBits:
    """Sets of distinct rows as packed bits; those that a split sends left are made once."""

    def __init__(self, codes: np.ndarray, found: TiedTrees, n_planes: int):
        self.codes, self.found, self.n_planes = codes, found, n_planes
        self.all = np.packbits(np.ones(codes.shape[1], bool))
        self.left: dict[int, np.ndarray] = {}

    def of(self, tree: list[int]) -> np.ndarray:
        """Bits of the actions that a tree gives, shape (planes, bytes)."""
        out = np.zeros((self.n_planes, len(self.all)), np.uint8)
        todo = [(0, self.all)]
        while todo:
            at, here = todo.pop()
            if tree[at] >= 0:
                left = self.goes_left(tree[at])
                todo += [(2 * at + 1, here & left), (2 * at + 2, here & ~left)]
                continue
            for plane in range(self.n_planes):
                if (-1 - tree[at]) >> plane & 1:
                    out[plane] |= here
        return out

    def goes_left(self, place: int) -> np.ndarray:
        """Rows that the split at a place sends left."""
        if place not in self.left:
            column, cut = self.found.split(place)
            self.left[place] = np.packbits(self.codes[column] <= cut)
        return self.left[place]
