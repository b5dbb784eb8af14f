"""Trees within budgets and shares: brute force over all trees, linear programmes over all trees, limits, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from policytree.binning import bin_matrix
from policytree.features import CATEGORICAL, Feature
from policytree.solvers.budgets import Infeasible, solve_within
from policytree.solvers.constraints import budget_constraint, share_constraint
from policytree.types import Problem, SearchLimits, Status
from tests.pareto_oracles import all_vectors


class Draw:
    """A small problem with everything at once, and constraints that may or may not bind."""

    def __init__(self, seed: int, whole: bool = True):
        rng = self.rng = np.random.default_rng(seed)
        self.depth = int(rng.choice([0, 1, 1, 2, 2, 2, 3]))
        n, p = int(rng.integers(1, 8 if self.depth == 3 else 11)), int(rng.integers(1, 4))
        K = self.K = int(rng.integers(1, 4))
        self.X = rng.integers(0, rng.integers(1, 5) + 1, (n, p)).astype(float)
        if rng.random() < 0.4:
            self.X[rng.random((n, p)) < 0.25] = np.nan
        self.categorical = (0,) if rng.random() < 0.3 else ()
        if self.categorical:
            self.X[:, 0] = rng.integers(0, 4, n)
        self.weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
        size = int(rng.choice([1, 3, 50]))
        self.rewards = rng.integers(-size, size + 1, (n, K)) * rng.choice([1.0, 0.125])
        if rng.random() < 0.3:  # rows without a preference
            self.rewards[rng.random(n) < 0.4] = 0.0
        self.costs = rng.integers(-1, 4, (n, K) if rng.random() < 0.5 else (1, K)) * np.ones((n, 1))
        self.costs = np.round(self.costs * rng.choice([1.0, 0.1, 2.5]), 1) if whole else self.costs * np.pi
        self.penalty = float(rng.choice([0.0, 0.0, 0.5, 3.0]))
        self.feature_costs = rng.choice([0.0, 0.25, 1.0, 100.0], p) if rng.random() < 0.3 else None
        self.min_leaf = int(rng.choice([1, 1, 2, 3]))
        self.arms = rng.integers(0, K, n)
        self.min_leaf_per_arm = int(rng.choice([0, 0, 0, 1]))
        self.max_leaves = int(rng.integers(1, 5)) if rng.random() < 0.25 else None
        self.roots = (int(rng.integers(0, p)),) if rng.random() < 0.2 else None
        self.limits = self._limits()
        kinds = [(CATEGORICAL, tuple("abcd")) if j in self.categorical else () for j in range(p)]
        self.features = tuple(Feature(f"x{j}", *kind) for j, kind in enumerate(kinds))

    def _limits(self) -> list:
        """What to ask for: ("budget", None, spend) and ("max_share" | "min_share", arm, share)."""
        rng, spend = self.rng, np.average(self.costs, axis=0, weights=self.weight)
        asked = []
        if rng.random() < 0.7:
            asked.append(("budget", None, float(np.round(rng.uniform(spend.min() - 0.2, spend.max()), 2))))
        while len(asked) == 0 or (len(asked) < 3 and rng.random() < 0.4):
            kind = "max_share" if rng.random() < 0.6 else "min_share"
            asked.append((kind, int(rng.integers(0, self.K)), float(np.round(rng.uniform(0, 1), 1))))
        return asked

    def problem(self) -> Problem:
        return Problem(
            bin_matrix(self.X, self.features), -self.rewards * self.weight[:, None], self.penalty, self.depth,
            self.min_leaf, self.arms, self.min_leaf_per_arm, self.max_leaves, self.feature_costs, self.weight,
            self.roots,
        )  # fmt: skip

    def constraints(self) -> list:
        out = []
        for kind, arm, limit in self.limits:
            if kind == "budget":
                out.append(budget_constraint(self.costs, self.weight, limit))
            else:
                out.append(share_constraint(kind, arm, self.K, self.weight, limit))
        return out

    def vectors(self) -> list[tuple[Fraction, ...]]:
        """Loss and sums of every tree, exactly; sums are per person, signed so that limits are upper ones."""
        n, K = self.rewards.shape
        weight, unit = [Fraction(w) for w in self.weight], 8000
        people = sum(weight)
        sums = np.zeros((2 + len(self.limits), n, K), dtype=object)
        for i in range(n):
            for k in range(K):
                sums[0, i, k] = -weight[i] * Fraction(self.rewards[i, k]) * unit
                for m, (kind, arm, _) in enumerate(self.limits):
                    one = {"budget": exact(self.costs[i, k]), "max_share": k == arm, "min_share": -(k == arm)}[kind]
                    sums[1 + m, i, k] = weight[i] * Fraction(one) * unit
        leaf = [Fraction(self.penalty) * unit, *[0] * len(self.limits), 1]
        prices = np.zeros((len(leaf), self.X.shape[1]), dtype=object)
        if self.feature_costs is not None:
            prices[0] = [Fraction(c) * unit for c in self.feature_costs]
        found = all_vectors(
            self.X, sums, self.depth, leaf=leaf, prices=prices, mass=self.weight, min_leaf=self.min_leaf,
            arms=self.arms, min_leaf_per_arm=self.min_leaf_per_arm, categorical=self.categorical,
            root_features=self.roots,
        )  # fmt: skip
        most = math.inf if self.max_leaves is None else self.max_leaves
        return [
            (Fraction(v[0], unit), *(Fraction(x, unit) / people for x in v[1:-1])) for v in found if v[-1] <= most
        ]

    def allowed(self, vectors):
        limits = [exact(limit) * (-1 if kind == "min_share" else 1) for kind, _, limit in self.limits]
        return [v for v in vectors if all(x <= b for x, b in zip(v[1:], limits, strict=True))]


def exact(number: float) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(repr(float(number)))


@pytest.mark.parametrize("seed", range(300))
def test_the_best_tree_within_the_limits_is_found_and_proved(seed):
    case = Draw(seed)
    vectors = case.vectors()
    allowed = case.allowed(vectors)
    if not vectors:  # a leaf needs more rows than there are
        assert solve_within(case.problem(), case.constraints()).solution.status is Status.INFEASIBLE
        return
    if not allowed:
        with pytest.raises(Infeasible) as refused:
            solve_within(case.problem(), case.constraints())
        assert refused.value.status is Status.INFEASIBLE
        return
    found = solve_within(case.problem(), case.constraints())
    best = min(v[0] for v in allowed)
    assert found.solution.status is Status.OPTIMAL
    assert found.solution.objective == pytest.approx(float(best), abs=1e-9)
    assert found.solution.gap == 0
    for total, (kind, _, limit) in zip(found.sums, case.limits, strict=True):
        assert total >= limit if kind == "min_share" else total <= limit
