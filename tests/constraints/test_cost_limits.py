"""Trees whose tests may cost so much a person: brute force over all trees, the promise, limits, bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from policytree import CostSensitiveTreeClassifier, DRPolicyTree, OptimalTreeClassifier, PolicyTree, tree_path
from policytree.constraints import Budget, ExpectedCost, Share
from policytree.data.features import Feature
from policytree.evaluation import budget_path, near_ties
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Problem, Status
from policytree.solvers.constrained.solve import Infeasible, solve_within
from policytree.solvers.core.constraints import cost_constraint
from tests.constraints.test_budgets import Draw, exact
from tests.support.pareto_oracles import all_vectors


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

    def problem(self) -> Problem:
        one = super().problem()
        return Problem(
            one.data, one.losses, one.leaf_penalty, one.max_depth, one.min_leaf, one.arms, one.min_leaf_per_arm,
            one.max_leaf_nodes, one.feature_costs, one.weights, one.root_features, self.groups,
        )  # fmt: skip

    def constraints(self) -> list:
        most = max(1, self.depth)
        return [*super().constraints(), cost_constraint(self.question_costs, self.weight, self.cap, self.K, most)]

    def vectors(self) -> list[tuple[Fraction, ...]]:
        """Loss, sums and leaves of the trees that no other is as good as; sums per person, signed, the tests' last."""
        (n, K), M, unit = self.rewards.shape, 2 + len(self.limits), 8000
        weight = [Fraction(w) for w in self.weight]
        people = sum(weight)
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
        found = all_vectors(
            self.X, sums, self.depth, leaf=[Fraction(self.penalty) * unit, *[0] * (M - 1), 1], prices=prices,
            mass=self.weight, min_leaf=self.min_leaf, arms=self.arms, min_leaf_per_arm=self.min_leaf_per_arm,
            categorical=self.categorical, root_features=self.roots, covered=False, groups=self.groups,
        )  # fmt: skip
        return [(Fraction(v[0], unit), *(Fraction(x, unit) / people for x in v[1:-1]), v[-1]) for v in found]

    def best(self) -> Fraction | None:
        """The least loss of a tree within all limits; None if there is none."""
        limits = [exact(b) * (-1 if kind == "min_share" else 1) for kind, _, b in self.limits]
        limits += [exact(self.cap), math.inf if self.max_leaves is None else self.max_leaves]
        kept = [v[0] for v in self.vectors() if all(x <= b for x, b in zip(v[1:], limits, strict=True))]
        return min(kept, default=None)


class CopiesDraw(CostDraw):
    """Depth three; a free column, a copy of it that is the cheap member of a group, and dear members of that group."""

    def __init__(self, seed: int):
        super().__init__(seed)
        rng, self.depth = self.rng, 3
        n, self.K = int(rng.integers(5, 11)), 2
        free, rare = rng.integers(0, 3, n).astype(float), (rng.random(n) < 0.3).astype(float)
        copy = np.minimum(free, rng.choice([1.0, 2.0]))
        copy[rng.integers(n)] += rng.integers(2)
        other = rng.integers(0, 2, n).astype(float)
        self.X = np.column_stack([free, copy, rare, other])
        best = ((free == free[0]) & (rare == rare[0])) ^ (rng.random(n) < 0.1)
        self.rewards = np.column_stack([~best, best]).astype(float)
        self.weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
        self.arms = rng.integers(0, 2, n)
        self.categorical, self.roots, self.max_leaves, self.feature_costs, self.limits = (), None, None, None, []
        self.min_leaf, self.min_leaf_per_arm = int(rng.choice([1, 1, 2])), 0
        self.penalty = float(rng.choice([0.0, 0.0, 0.5]))
        self.features = tuple(Feature(f"x{j}") for j in range(4))
        self.groups = np.array([[0, 1, 1, 2], [0, 1, 1, 1], [0, 0, 1, 1]][rng.integers(3)])
        self.question_costs = np.array([0.0, rng.choice([0.1, 0.3]), *rng.choice([1.0, 2.5], 2)])
        self.cap = float(np.round(rng.uniform(0, 0.8), 2))


def assert_best(seed: int, kind: type[CostDraw] = CostDraw) -> None:
    case = kind(seed)
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


@pytest.mark.parametrize("block", range(2))
def test_copies_of_columns_in_groups_of_unequal_prices(block):
    """Bounds of cuts from one another allow for what a restricted tree may pay later."""
    for seed in range(20 * block, 20 * (block + 1)):
        assert_best(seed, CopiesDraw)


@pytest.mark.parametrize("block", range(4))
def test_the_bound_by_multipliers_is_that_of_lots_between_trees(block):
    """One limit: the linear programme over all trees, by hand, is the lower hull of (cost, loss) at the limit."""
    binding = 0
    for seed in range(2_000 + 25 * block, 2_025 + 25 * block):
        case = CostDraw(seed)
        case.limits, case.max_leaves = [], None
        points = sorted({v[1::-1] for v in case.vectors()})
        if not points:
            continue
        found = solve_within(case.problem(), case.constraints())
        limit = case.constraints()[0].limit * case.constraints()[0].per_person  # whole amounts reach no further
        lots = min(
            a[1] + (b[1] - a[1]) * (min(b[0], limit) - a[0]) / (b[0] - a[0]) if a[0] < b[0] else a[1]
            for a in points
            for b in points
            if a[0] <= limit and a[0] <= b[0] and a[1] >= b[1]
        )
        assert found.solution.guarantees["dual_bound"] == pytest.approx(float(lots), rel=1e-9, abs=1e-9)
        binding += float(lots) < found.solution.objective - 1e-9
    assert binding > 0


@pytest.mark.parametrize("block", range(4))
def test_costs_without_few_decimals_keep_the_promise(block):
    for seed in range(5_000 + 20 * block, 5_020 + 20 * block):
        case = CostDraw(seed, whole=False)
        try:
            found = solve_within(case.problem(), case.constraints())
        except Infeasible:
            continue
        if found.sums:
            assert float(exact_cost(case, found.solution.tree)) <= case.cap
            assert found.sums[-1] <= case.cap


def exact_cost(case: CostDraw, tree) -> Fraction:
    """Return the mean cost of a tree's tests per person, in exact arithmetic of the numbers as they are."""
    weight, total = [Fraction(w) for w in case.weight], Fraction(0)
    reached, paid = tree.rows_of_nodes(case.X), {0: frozenset()}
    for node in np.flatnonzero(~tree.is_leaf):
        j = int(tree.feature[node])
        group = None if case.groups is None else int(case.groups[j])
        if group is None or group not in paid[node]:
            total += Fraction(case.question_costs[j]) * sum(weight[i] for i in reached[node])
        for child in (tree.children_left[node], tree.children_right[node]):
            paid[int(child)] = paid[node] | {group}
    return total / sum(weight)


@pytest.fixture
def patients(rng):
    X = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=["age", "albumin", "bilirubin", "scan"]).astype(float)
    ill = (X["albumin"] > 2) & (X["bilirubin"] > 1) | (X["scan"] > 3)
    return X, np.where(ill ^ (rng.random(300) < 0.05), "ill", "well")


DOLLARS = {"albumin": 6, "bilirubin": 8.5, "scan": 250}
BLOOD = {"blood": ["albumin", "bilirubin"]}


def test_costs_are_limited_and_not_charged(patients):
    X, y = patients
    arguments = {"max_depth": 3, "feature_costs": DOLLARS, "repeated_features": "free", "feature_groups": BLOOD}
    before = 1.0
    for limit in (0, 5.9, 6, 100, 1_000):
        tree = OptimalTreeClassifier(regularization=0.0, **arguments, constraints=[ExpectedCost(limit)]).fit(X, y)
        assert tree.status_ is Status.OPTIMAL and tree.optimality_gap_ == 0
        assert tree.expected_cost_ <= limit
        assert tree.measurement_cost(X).mean() == pytest.approx(tree.expected_cost_)
        assert tree.objective_value_ == pytest.approx(1 - tree.score(X, y)) and tree.objective_value_ <= before
        before = tree.objective_value_
    assert tree.multipliers_ == {"expected_cost": 0.0}
    assert tree.objective_value_ == OptimalTreeClassifier(3, 0.0).fit(X, y).objective_value_
    exactly = OptimalTreeClassifier(regularization=0.0, **arguments, constraints=[ExpectedCost(6)]).fit(X, y)
    assert exactly.expected_cost_ == 6.0 and set(exactly.get_used_features()) >= {"albumin", "bilirubin"}
    lines = exactly.certificate().splitlines()
    assert "no tree of depth 3 or less within the limits is better, among" in lines[0]
    assert "(1 - accuracy on the rows that chose the tree: flattered)" in lines[1]
    assert any(line.startswith("questions  cost 6.0000 a row on average, within 6.0000") for line in lines)
    alone = OptimalTreeClassifier(3, 0.0, feature_costs=DOLLARS, constraints=[ExpectedCost(6)]).fit(X, y)
    assert alone.objective_value_ > exactly.objective_value_ and alone.multipliers_["expected_cost"] > 0
    free = OptimalTreeClassifier(2, 0.0, feature_costs={"scan": 0.0}, constraints=[ExpectedCost(0)]).fit(X, y)
    assert free.expected_cost_ == 0 and not hasattr(free, "multipliers_")  # nothing to limit


def test_weights_count_and_limits_are_met_as_they_are_written(patients):
    """Three tests of a tenth cost three tenths, whatever floats make of it; rows of weight 0 count as absent."""
    X, y = patients
    weight = np.arange(len(X)) % 3
    costs = dict.fromkeys(X, 0.1)
    tree = OptimalTreeClassifier(3, 0.0, feature_costs=costs, constraints=[ExpectedCost(0.3)]).fit(
        X, y, sample_weight=weight
    )
    free = OptimalTreeClassifier(3, 0.0).fit(X, y, sample_weight=weight)
    assert tree.objective_value_ == free.objective_value_ and tree.expected_cost_ <= 0.3
    less = tree.set_params(constraints=[ExpectedCost(0.2999)]).fit(X, y, sample_weight=weight)
    assert less.expected_cost_ <= 0.2999
    assert less.expected_cost_ == pytest.approx(np.average(less.measurement_cost(X), weights=weight))
    rows = np.repeat(np.arange(len(X)), weight)
    again = OptimalTreeClassifier(**less.get_params()).fit(X.iloc[rows], y[rows])
    assert again.objective_value_ == pytest.approx(less.objective_value_)


def test_a_price_that_forbids_leaves_digits_to_the_others(patients):
    X, y = patients
    costs = {"age": 1e300, "albumin": 1 / 3, "bilirubin": np.pi, "scan": 1e12}
    for limit in (1 / 3, 1.7, np.pi):
        dear = OptimalTreeClassifier(2, 0.0, feature_costs=costs, constraints=[ExpectedCost(limit)]).fit(X, y)
        without = OptimalTreeClassifier(
            2, 0.0, feature_costs={**costs, "age": 0, "scan": 0}, constraints=[ExpectedCost(limit)],
            split_features=["albumin", "bilirubin"],
        ).fit(X, y)  # fmt: skip
        assert dear.objective_value_ == without.objective_value_ and dear.expected_cost_ <= limit
    assert (
        OptimalTreeClassifier(2, 0.0, feature_costs=costs, constraints=[ExpectedCost(0)]).fit(X, y).get_n_leaves() == 1
    )


def test_policies_within_budgets_shares_and_costs_of_tests(patients):
    X, y = patients
    rewards = pd.DataFrame({"wait": np.where(y == "ill", -1.0, 0.0), "drug": np.where(y == "ill", 0.2, -0.1)})
    arguments = {"max_depth": 2, "feature_costs": DOLLARS, "repeated_features": "free", "feature_groups": BLOOD}
    free = PolicyTree(**arguments, constraints=[ExpectedCost(10)]).fit(X, rewards)
    assert 0 < free.expected_cost_ <= 10 and free.spend_ is None and set(free.shares_) == {"wait", "drug"}
    share = free.shares_["drug"]
    tree = PolicyTree(**arguments, constraints=[ExpectedCost(10), Budget(50 * share), Share("drug", most=0.9)]).fit(
        X, rewards, budget_costs={"drug": 100.0}
    )
    assert tree.expected_cost_ <= 10 and tree.spend_ <= 50 * share and tree.status_ is Status.OPTIMAL
    assert set(tree.multipliers_) == {"budget", "max_share", "expected_cost"}
    assert tree.objective_value_ <= free.objective_value_ == pytest.approx(free.score(X, rewards))
    dear = CostSensitiveTreeClassifier(**arguments, constraints=[ExpectedCost(5.0)]).fit(X, y)
    assert 0 < dear.expected_cost_ <= 5 and dear.get_used_features() == ["age", "albumin"]


def test_rewards_estimated_from_a_trial(patients, rng):
    X, y = patients
    T = rng.integers(0, 2, len(X))
    outcome = np.where(y == "ill", T, -T) + rng.normal(size=len(X))
    tree = DRPolicyTree(feature_costs=DOLLARS, constraints=[ExpectedCost(100.0)], random_state=0)
    tree.fit(outcome, T, X=X, propensity=0.5)
    assert tree.expected_cost_ <= 100 and "expected_cost" in tree.multipliers_
    assert tree.policy_tree_.measurement_cost(X).mean() == pytest.approx(tree.expected_cost_)


@pytest.mark.parametrize("repeated, depth", [("charged", 4), ("free", 4), ("free", 5)])
def test_deeper_trees_keep_the_limit_and_report_their_gap(patients, repeated, depth):
    X, y = patients
    limited = {"feature_costs": DOLLARS, "constraints": [ExpectedCost(40)], "repeated_features": repeated}
    shallow = OptimalTreeClassifier(2, 0.0, **limited).fit(X, y)
    deep = OptimalTreeClassifier(depth, 0.0, **limited)
    with pytest.warns(SearchWarning, match="more than three levels are found by prices alone"):
        deep.fit(X, y)
    assert deep.status_ is Status.HEURISTIC and deep.expected_cost_ <= 40
    assert deep.objective_bound_ <= deep.objective_value_ <= shallow.objective_value_


@pytest.mark.parametrize("repeated", ["charged", "free"])
def test_a_stopped_search_keeps_the_limit_and_a_bound(rng, repeated):
    X = rng.standard_normal((3_000, 8))
    y = (X[:, 0] * X[:, 1] + rng.standard_normal(3_000) > 0).astype(int)
    tree = OptimalTreeClassifier(
        3,
        0.0,
        feature_costs=np.arange(1.0, 9),
        constraints=[ExpectedCost(5)],
        repeated_features=repeated,
        time_limit=1.0,
    )
    with pytest.warns(SearchWarning, match="The search ended by time limit"):
        tree.fit(X, y)
    assert tree.expected_cost_ <= 5 and tree.objective_bound_ < tree.objective_value_ <= y.mean()
    assert tree.solution_.seconds < 5


REFUSED = {
    "nothing to limit": ({"feature_costs": None}, "ExpectedCost limits what tests cost; pass feature_costs"),
    "solver": ({"solver": "sampling"}, "constraints need the exact search; leave solver and guesses alone"),
    "guesses": ({"guesses": "thresholds"}, "constraints need the exact search"),
    "too large": (
        {"feature_costs": [1e308] * 4, "constraints": [ExpectedCost(1e307)]},
        "Costs are too large to be added up",
    ),
    "objective": ({"objective": "auc"}, "feature_costs are costs per row, which objective='auc' has no unit for"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_had_is_refused(patients, case):
    arguments, message = REFUSED[case]
    arguments = {"max_depth": 2, "feature_costs": DOLLARS, "constraints": [ExpectedCost(5)], **arguments}
    y = (patients[1] == "ill").astype(int) if case == "objective" else patients[1]
    with pytest.raises(InputError, match=message):
        OptimalTreeClassifier(**arguments).fit(patients[0], y)


def test_other_searches_take_no_limit(patients):
    X, y = patients
    limited = {"max_depth": 2, "feature_costs": DOLLARS, "constraints": [ExpectedCost(5)]}
    with pytest.raises(InputError, match="near_ties takes no constraints"):
        near_ties(OptimalTreeClassifier(**limited), X, y)
    with pytest.raises(InputError, match="tree_path takes no constraints"):
        tree_path(OptimalTreeClassifier(**limited), X, y)
    rewards = pd.DataFrame({"wait": np.zeros(len(X)), "treat": np.where(y == "ill", 1.0, -1.0)})
    with pytest.raises(InputError, match="budget_path takes no ExpectedCost"):
        budget_path(PolicyTree(**limited), X, rewards, budget_costs={"treat": 1.0})


def test_paths_of_budgets_pay_once(patients):
    """Trees of the hull know that a second test of a group is free."""
    X, y = patients
    rewards = pd.DataFrame({"wait": np.where(y == "ill", -1.0, 0.0), "treat": np.where(y == "ill", 0.2, -0.1)})
    small = {name: cost / 500 for name, cost in DOLLARS.items()}
    tree = PolicyTree(2, feature_costs=small, repeated_features="free", feature_groups=BLOOD)
    path = budget_path(tree, X, rewards, budget_costs={"treat": 1.0})
    assert path.proved and len(path.estimators) > 2
    for each in path.estimators:
        mean = each.score(X, rewards) - each.measurement_cost(X).mean()
        assert each.objective_value_ == pytest.approx(mean)
        within = PolicyTree(**{**tree.get_params(), "constraints": [Budget(each.spend_)]}).fit(
            X, rewards, budget_costs={"treat": 1.0}
        )
        assert within.objective_value_ == pytest.approx(mean)
