"""Trees within budgets and shares: brute force over all trees, linear programmes over all trees, limits, bad input."""

import itertools
import math
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from policytree.data.features import CATEGORICAL, Feature
from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers.constrained.front import hull_of_two
from policytree.solvers.constrained.lagrangian_dual import Dual
from policytree.solvers.constrained.solve import Infeasible, solve_within
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.constraints import budget_constraint, share_constraint
from policytree.solvers.core.limits import stopped_by
from tests.support.pareto_oracles import all_vectors


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
        """Draw limits: ("budget", None, spend) and ("max_share" | "min_share", arm, share)."""
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
        return [(Fraction(v[0], unit), *(Fraction(x, unit) / people for x in v[1:-1])) for v in found if v[-1] <= most]

    def allowed(self, vectors):
        limits = [exact(limit) * (-1 if kind == "min_share" else 1) for kind, _, limit in self.limits]
        return [v for v in vectors if all(x <= b for x, b in zip(v[1:], limits, strict=True))]

    def free_suffices(self, vectors) -> bool:
        """Whether the best tree of all is within the limits: then no price is tried."""
        best = min(v[0] for v in vectors)
        return any(v[0] == best for v in self.allowed(vectors))


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


@pytest.mark.parametrize("seed", range(60))
def test_amounts_without_few_decimals_keep_the_promise(seed):
    case = Draw(seed + 5000, whole=False)
    sums = case.costs * case.weight[:, None]
    try:
        found = solve_within(case.problem(), case.constraints())
    except Infeasible:
        return
    if not found.sums:
        return
    tree = found.solution.tree
    data = case.problem().data
    chosen = actions_of(tree, data)
    for total, (kind, arm, limit) in zip(found.sums, case.limits, strict=True):
        if kind == "budget":  # in exact arithmetic, of the numbers as they are
            exact_spend = sum(Fraction(case.costs[i, k]) * Fraction(case.weight[i]) for i, k in enumerate(chosen))
            people = sum(Fraction(w) for w in case.weight)
            assert float(exact_spend / people) <= limit
            assert total <= limit
            assert total == pytest.approx(sums[np.arange(len(chosen)), chosen].sum() / case.weight.sum(), abs=1e-9)
        else:
            share = case.weight[chosen == arm].sum() / case.weight.sum()
            assert share <= limit + 1e-12 if kind == "max_share" else share >= limit - 1e-12


def actions_of(tree, data):
    """Return a tree's action for every row of binned data, by the codes of its splits."""
    from policytree.solvers.core.columns import preorder_splits

    entries, labels = iter(preorder_splits(tree, data)), iter(tree.action[tree.is_leaf])
    chosen = np.empty(data.n_rows, dtype=int)

    def walk(rows):
        column, cut = next(entries)
        if column < 0:
            chosen[rows] = next(labels)
            return
        left = data.codes[column, rows] <= cut
        walk(rows[left])
        walk(rows[~left])

    walk(np.arange(data.n_rows))
    return chosen


@pytest.mark.parametrize("seed", range(80))
def test_the_dual_bound_is_the_linear_programme_over_all_trees(seed):
    case = Draw(seed + 2000)
    vectors = case.vectors()
    if not case.allowed(vectors):
        return
    found = solve_within(case.problem(), case.constraints())
    limits = [float(c.limit * c.per_person) for c in case.constraints()]  # whole amounts reach no further
    table = np.array([[float(x) for x in v] for v in vectors])
    lots = linprog(
        table[:, 0], A_ub=table[:, 1:].T, b_ub=np.array(limits) + 1e-12, A_eq=np.ones((1, len(table))), b_eq=[1.0],
        method="highs",
    )  # fmt: skip
    bound = found.solution.guarantees["dual_bound"]
    assert bound <= lots.fun + 1e-6 * (1 + abs(lots.fun))  # a bound in any case
    if len(case.limits) == 1 or not case.free_suffices(vectors):
        assert bound == pytest.approx(lots.fun, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_one_sum_limited_from_both_sides_needs_one_price(seed, monkeypatch):
    """A share between two limits: its dual is solved along one price, and says what all trees say."""
    case = Draw(seed + 4000)
    low, high = np.sort(case.rng.integers(0, 11, 2)) / 10
    case.limits = [("max_share", 0, float(high)), ("min_share", 0, float(low))]
    if seed % 2:
        case.limits.reverse()
    vectors = case.vectors()
    if not case.allowed(vectors):
        if vectors:
            with pytest.raises(Infeasible):
                solve_within(case.problem(), case.constraints())
        return
    monkeypatch.setattr(Dual, "_several", lambda self: pytest.fail("cutting planes were asked for"))
    found = solve_within(case.problem(), case.constraints()).solution
    assert found.status is Status.OPTIMAL and found.gap == 0
    assert found.objective == pytest.approx(float(min(v[0] for v in case.allowed(vectors))), abs=1e-9)
    if not case.free_suffices(vectors):
        limits = [float(c.limit * c.per_person) for c in case.constraints()]
        table = np.array([[float(x) for x in v] for v in vectors])
        lots = linprog(
            table[:, 0], A_ub=table[:, 1:].T, b_ub=np.array(limits) + 1e-12, A_eq=np.ones((1, len(table))), b_eq=[1.0],
            method="highs",
        )  # fmt: skip
        assert found.guarantees["dual_bound"] == pytest.approx(lots.fun, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(80))
def test_the_hull_has_the_corners_of_all_trees(seed):
    case = Draw(seed + 3000)
    case.limits = [("budget", None, 0.0)]
    vectors = case.vectors()
    trees, proved = hull_of_two(case.problem(), case.constraints()[0])
    assert proved
    if not vectors:
        assert trees == []
        return
    corners = corners_of({(v[1], v[0]) for v in vectors})
    assert [tree.mean for tree in trees] == pytest.approx([float(s) for s, _ in corners], abs=1e-9)
    assert [tree.solution.objective for tree in trees] == pytest.approx([float(x) for _, x in corners], abs=1e-9)
    for one, other in itertools.pairwise(trees):
        slope = (one.solution.objective - other.solution.objective) / (other.mean - one.mean)
        assert one.low == pytest.approx(slope) == other.high
    assert trees[0].high == math.inf and trees[-1].low == 0.0
    without = [tree.solution.guarantees["without_limits"] for tree in trees]
    assert without == pytest.approx([float(corners[-1][1])] * len(trees), abs=1e-9)


def corners_of(points):
    """Corners of the lower left hull of (spend, loss), exactly, by comparing every pair of points with every third."""
    points = sorted(points)
    best = [p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)]
    corners = []
    for p in best:
        under = any(
            a[0] < p[0] < b[0] and a[1] + (b[1] - a[1]) * (p[0] - a[0]) / (b[0] - a[0]) <= p[1]
            for a in best
            for b in best
        )
        if not under:
            corners.append(p)
    return corners


def noisy(n=400, p=4, depth=2, seed=0, digits=1):
    """A problem whose best tree within a budget is not found by prices alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(digits)
    losses = np.column_stack([np.zeros(n), -X[:, 0] + rng.normal(size=n) * 2])
    data = bin_matrix(X, tuple(Feature(f"x{j}") for j in range(p)))
    costs = np.column_stack([np.zeros(n), np.exp(0.3 * X[:, 1]).round(2)])
    return Problem(data, losses, max_depth=depth), budget_constraint(costs, np.ones(n), 0.2)


def test_shares_where_all_treatments_are_worth_the_same():
    """Every tree is as good as the next: what counts is that one keeps to the shares."""
    data = bin_matrix(np.array([[0.0], [np.nan], [1.0]]), (Feature("x"),))
    weight = np.array([1.0, 3.0, 3.0])
    shares = [share_constraint("min_share", 0, 3, weight, 0.5), share_constraint("min_share", 2, 3, weight, 0.1)]
    found = solve_within(Problem(data, np.zeros((3, 3)), max_depth=2), shares)
    assert found.solution.status is Status.OPTIMAL and found.solution.objective == 0.0
    assert found.sums[0] >= 0.5 and found.sums[1] >= 0.1


def test_prices_alone_leave_a_gap_that_the_search_closes():
    problem, budget = noisy()
    found = solve_within(problem, [budget])
    assert found.solution.status is Status.OPTIMAL and found.solution.gap == 0
    assert found.solution.guarantees["dual_bound"] < found.solution.objective
    assert found.multipliers[0] > 0


def test_deeper_trees_report_their_gap():
    problem, budget = noisy(depth=4)
    found = solve_within(problem, [budget], SearchLimits(time_limit=20))
    flat, same = noisy(depth=2)
    shallow = solve_within(flat, [same])
    assert found.solution.status in (Status.HEURISTIC, Status.TIME_LIMIT)
    assert 0 < found.solution.gap < abs(found.solution.objective)
    assert found.solution.objective <= shallow.solution.objective
    assert found.sums[0] <= 0.2


def test_a_time_limit_keeps_a_tree_within_the_budget_and_a_bound():
    problem, budget = noisy(n=4000, p=8, depth=3, digits=4)
    seen = []
    found = solve_within(problem, [budget], SearchLimits(time_limit=1.0, progress=seen.append))
    assert found.solution.status is Status.TIME_LIMIT and found.solution.seconds < 3.0
    assert found.sums[0] <= 0.2 and found.solution.gap > 0
    assert all(p.lower_bound <= p.objective for p in seen) and seen
    assert found.solution.objective < -1000  # the best single leaf: -362


def test_threads_and_merging_do_not_change_the_objective():
    problem, budget = noisy()
    first, second = (solve_within(problem, [budget], SearchLimits(n_jobs=jobs)).solution for jobs in (1, 2))
    assert first.objective == second.objective


def test_ctrl_c_keeps_a_tree_within_the_budget_and_a_bound():
    problem, budget = noisy(n=4000, p=8, depth=3, digits=4)
    asked = threading.Event()
    with stopped_by(asked):  # as Ctrl-C does
        found = solve_within(problem, [budget], SearchLimits(time_limit=60.0, progress=lambda _: asked.set()))
    assert found.solution.status is Status.INTERRUPTED
    assert found.sums[0] <= 0.2 and found.solution.gap > 0


@pytest.mark.parametrize("seed", range(40))
def test_objectives_are_exact_sums_rounded_once(seed):
    """Penalties and costs of a tenth: added up one after the other in floats, they stand beside the exact sum."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (12, 2)).astype(float)
    losses, spent = rng.integers(-3, 4, (12, 2)) / 10, rng.integers(0, 3, (12, 2)) / 10
    data = bin_matrix(X, (Feature("a"), Feature("b")))
    problem = Problem(data, losses, 0.1, 2, 1, feature_costs=np.array([0.1, 0.3]))
    found = solve_within(problem, (budget_constraint(spent, np.ones(12), 1.2),)).solution
    tree = found.tree
    leaf = tree.apply(X)
    exact = sum(Fraction(losses[i, tree.action[leaf[i]]]) for i in range(12)) + Fraction(0.1) * tree.n_leaves
    for node in np.flatnonzero(~tree.is_leaf):
        price = problem.feature_costs[tree.feature[node]] * float(tree.n_node_samples[node])
        exact += Fraction(float(price))
    assert found.objective == float(exact)
