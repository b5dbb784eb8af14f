"""Trees judged by several sums: all fronts against brute force over all trees."""

import numpy as np
import pytest

from policytree.data.features import CATEGORICAL, Feature
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import load_kernels, pareto_kernels
from policytree.solvers.multi_objective.pareto_front import ParetoSearch, criteria_of
from tests.support.pareto_oracles import all_vectors


class Draw:
    """A small problem with everything at once: ties, missing values, weights, minima, prices, restricted roots."""

    def __init__(self, seed: int, max_depth: int | None = None):
        rng = np.random.default_rng(seed)
        self.depth = int(rng.integers(0, 4)) if max_depth is None else max_depth
        n, p = int(rng.integers(1, 8 if self.depth == 3 else 11)), int(rng.integers(1, 4))
        self.K, self.q = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        self.X = rng.integers(0, rng.integers(1, 5) + 1, (n, p)).astype(float)
        if rng.random() < 0.4:
            self.X[rng.random((n, p)) < 0.25] = np.nan
        self.categorical = (0,) if rng.random() < 0.3 else ()
        if self.categorical:
            self.X[:, 0] = rng.integers(0, 4, n)
        size = int(rng.choice([1, 3, 50]))
        self.sums = rng.integers(-size, size + 1, (self.q, n, self.K)) * rng.integers(0, 3, n)[:, None]
        self.leaf = rng.integers(0, 3, self.q) * rng.integers(0, 2)
        self.mass = rng.integers(0, 3, n)  # of the split's price
        self.prices = rng.integers(0, 3, (self.q, p)) * rng.integers(0, 2)
        self.min_leaf = int(rng.choice([1, 1, 2, 3]))
        self.arms = rng.integers(0, self.K, n)
        self.min_leaf_per_arm = int(rng.choice([0, 0, 1]))
        self.roots = (int(rng.integers(0, p)),) if rng.random() < 0.2 else None
        kinds = [(CATEGORICAL, tuple("abcd")) if j in self.categorical else () for j in range(p)]
        self.data = bin_matrix(self.X, tuple(Feature(f"x{j}", *kind) for j, kind in enumerate(kinds)))

    def oracle(self, **options):
        return all_vectors(
            self.X, self.sums, self.depth, leaf=self.leaf, prices=self.prices, mass=self.mass, min_leaf=self.min_leaf,
            arms=self.arms, min_leaf_per_arm=self.min_leaf_per_arm, categorical=self.categorical,
            root_features=self.roots, **options,
        )  # fmt: skip

    def search(self, weights=None):
        """The search; its bound is a weighted sum of the criteria, rounded down."""
        bound = None
        leaf, prices = np.zeros(1, np.int64), np.vstack([np.zeros(self.X.shape[1], np.int64), self.prices])
        if weights is not None:
            relative = self.sums - self.sums[:, :, :1]
            bound = np.floor(np.tensordot(weights, relative, 1)).astype(np.int64)
            leaf = np.floor(weights @ self.leaf)[None]
            prices[0] = np.floor(weights @ self.prices)
        columns = [c.feature for c in self.data.columns]
        counts = [np.ones(len(self.X))] if self.min_leaf > 1 else []
        minima = [self.min_leaf] if self.min_leaf > 1 else []
        if self.min_leaf_per_arm:
            counts += [self.arms == k for k in range(self.K)]
            minima += [self.min_leaf_per_arm] * self.K
        criteria = criteria_of(
            self.data, self.sums, bound=bound, leaf=np.concatenate([leaf, self.leaf]),
            charges=prices[:, columns, None] * self.mass, groups=np.arange(len(columns)),
            counts=np.array(counts, dtype=np.int64) if counts else None, minima=minima,
        )  # fmt: skip
        load_kernels(pareto_kernels(criteria.bins, self.K == 2 and not minima, self.depth))
        roots = None if self.roots is None else [j for j, f in enumerate(columns) if f in self.roots]
        return ParetoSearch(criteria, np.zeros(4, np.int64), roots)

    @property
    def base(self):
        return self.sums[:, :, 0].sum(axis=1)

    def vector(self, splits, actions):
        """The vector of a tree from the rows as given, by its splits' codes."""
        entries, labels = iter(splits), iter(actions)

        def walk(rows):
            column, cut = next(entries)
            if column < 0:
                return self.leaf + self.sums[:, rows, next(labels)].sum(axis=1)
            left = self.data.codes[column, rows] <= cut
            paid = self.prices[:, self.data.columns[column].feature] * self.mass[rows].sum()
            return paid + walk(rows[left]) + walk(rows[~left])

        return walk(np.arange(len(self.X)))


@pytest.mark.parametrize("seed", range(150))
def test_fronts_are_those_of_all_trees(seed):
    case = Draw(seed)
    found = case.search().front(case.depth)
    assert sorted(map(tuple, found.values + case.base)) == case.oracle(covered=False)
    for i in range(len(found)):
        assert (case.vector(*found.tree(i)) == found.values[i] + case.base).all()


@pytest.mark.parametrize("seed", range(150))
def test_a_bound_leaves_out_only_what_it_excludes(seed):
    case = Draw(seed + 1000)
    weights = np.random.default_rng(seed).uniform(0, 2, case.q)
    everything = case.oracle()
    if not everything:
        return
    worth = np.array([weights @ (np.array(v) - case.base) for v in everything])
    largest = int(np.quantile(worth, 0.1)) + 1
    found = case.search(weights).front(case.depth, largest).values + case.base
    for vector in np.array(everything)[worth <= largest]:
        assert (found <= vector).all(axis=1).any()
    assert {tuple(v) for v in found.tolist()} <= set(everything)


def test_caps_may_fall_while_parts_come():
    case = Draw(7, max_depth=2)
    search = case.search()
    caps = np.full(case.q + 1, 2**58, np.int64)
    best = None
    for part in search.parts(2, caps):
        if len(part.values):
            best = min(part.values[:, 1].min(), caps[1])
            caps[1] = best - 1
    assert best + case.base[0] == min(v[0] for v in case.oracle())


def test_a_raised_flag_ends_the_search():
    case = Draw(3, max_depth=3)
    search = case.search()
    search.flag[0] = 1
    assert search.stopped
    assert len(search.front(3)) >= 0
