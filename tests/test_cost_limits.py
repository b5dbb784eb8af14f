"""Trees whose tests may cost so much a person: brute force over all trees, the promise, limits, bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from policytree import (
    CostSensitiveTreeClassifier,
    DRPolicyTree,
    InputError,
    OptimalTreeClassifier,
    PolicyTree,
    SearchWarning,
    Status,
    budget_path,
    near_ties,
    tree_path,
)
from policytree.solvers.budgets import Infeasible, solve_within
from policytree.solvers.constraints import cost_constraint
from policytree.types import Problem
from tests.pareto_oracles import all_vectors
from tests.test_budgets import Draw, exact


class CostDraw(Draw):
    """A small problem with everything at once, a limit of what questions cost, and sometimes budgets and shares."""

    def __init__(self, seed: int, whole: bool = True):
        super().__init__(seed, whole)
        rng = self.rng
        p = self.X.shape[1]
        self.question_costs = rng.choice([0.0, 0.1, 0.3, 1.0, 2.5], p)
        if not whole:
            self.question_costs = self.question_costs * np.pi
        self.groups = [None, np.arange(p), rng.integers(0, p, p)][rng.integers(3)]
        self.cap = float(np.round(rng.uniform(0, 1.2) * max(0.1, self.question_costs.mean()) * max(1, self.depth), 2))
        if rng.random() < 0.6:
            self.limits = []
        if self.groups is not None:
            self.max_leaves = None  # refused

    def problem(self) -> Problem:
        one = super().problem()
        return Problem(
            one.data, one.losses, one.leaf_penalty, one.max_depth, one.min_leaf, one.arms, one.min_leaf_per_arm,
            one.max_leaf_nodes, one.feature_costs, one.weights, one.root_features, self.groups,
        )  # fmt: skip

    def constraints(self) -> list:
        most = max(1, self.depth)
        return [*super().constraints(), cost_constraint(self.question_costs, self.weight, self.cap, self.K, most)]

    def best(self) -> Fraction | None:
        """The least loss of a tree within all limits; None if there is none."""
        (n, K), M, unit = self.rewards.shape, 2 + len(self.limits), 8000
        weight = [Fraction(w) for w in self.weight]
        sums = np.zeros((M + 1, n, K), dtype=object)
        for i in range(n):
            for k in range(K):
                sums[0, i, k] = -weight[i] * Fraction(self.rewards[i, k]) * unit
                for m, (kind, arm, _) in enumerate(self.limits):
                    one = {"budget": exact(self.costs[i, k]), "max_share": k == arm, "min_share": -(k == arm)}[kind]
                    sums[1 + m, i, k] = weight[i] * Fraction(one) * unit
        prices = np.zeros((M + 1, self.X.shape[1]), dtype=object)
        if self.feature_costs is not None:
            prices[0] = [Fraction(c) * unit for c in self.feature_costs]
        prices[M - 1] = [exact(c) * unit for c in self.question_costs]
        leaf = [Fraction(self.penalty) * unit, *[0] * (M - 1), 1]
        found = all_vectors(
            self.X, sums, self.depth, leaf=leaf, prices=prices, mass=self.weight, min_leaf=self.min_leaf,
            arms=self.arms, min_leaf_per_arm=self.min_leaf_per_arm, categorical=self.categorical,
            root_features=self.roots, covered=False, groups=self.groups,
        )  # fmt: skip
        limits = [exact(b) * (-1 if kind == "min_share" else 1) * unit * sum(weight) for kind, _, b in self.limits]
        limits += [exact(self.cap) * unit * sum(weight), math.inf if self.max_leaves is None else self.max_leaves]
        kept = [v[0] for v in found if all(x <= b for x, b in zip(v[1:], limits, strict=True))]
        return Fraction(min(kept), unit) if kept else None


def assert_best(seed: int) -> None:
    case = CostDraw(seed)
    best = case.best()
    try:
        found = solve_within(case.problem(), case.constraints())
    except Infeasible as refused:
        assert best is None and refused.status is Status.INFEASIBLE
        return
    if best is None:
        assert found.solution.status is Status.INFEASIBLE
        return
    assert found.solution.status is Status.OPTIMAL
    assert found.solution.objective == pytest.approx(float(best), abs=1e-9)
    assert found.solution.gap == 0
    assert found.sums[-1] <= case.cap


@pytest.mark.parametrize("block", range(20))
def test_the_best_tree_within_the_limit_is_found_and_proved(block):
    for seed in range(15 * block, 15 * (block + 1)):
        assert_best(seed)
