"""The search over row sets: values, bounds at any time, and what it is used for."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from policytree import OptimalTreeClassifier
from policytree.problem.types import GATES, Problem, SearchLimits, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import CONFLICT_PAIRS, SUBSET_KERNELS, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, new_control, prepare
from policytree.solvers.exact.bounds.conflict_pairs import make_conflicts
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.subset_search import start_subset_search, subset_search_applies
from policytree.solvers.exact.subset_storage import BitMaker, ListMaker, make_sets
from policytree.solvers.kernels.subsets.layout import KEPT
from policytree.solvers.kernels.subsets.table import place_of
from tests.support.strategies import Case

NO_CUTOFF = 1 << 59
SWITCHES = [(True, True), (False, True), (True, False), (False, False)]  # siblings, look-ahead


def random_case(rng) -> Case:
    """Few rows and values, losses of any sign, missing values; prices that make a handful of leaves pay."""
    n, p, K = int(rng.integers(2, 13)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    X = rng.integers(0, rng.choice([2, 3, 5]), (n, p)).astype(float)
    X[rng.random((n, p)) < 0.15] = np.nan
    losses = rng.integers(-6, 7, (n, K)) if rng.random() < 0.5 else rng.integers(0, K, n)[:, None] != np.arange(K)
    if rng.random() < 0.3:
        losses[rng.random(n) < 0.3] = 2  # rows that no action gains by
    case = Case(X, losses.astype(float), max_depth=None, penalty=float(rng.choice([0.25, 0.5, 1.0, 2.5])))
    if rng.random() < 0.3:
        case = case.but(categorical=(0,), X=np.column_stack([np.nan_to_num(X[:, 0]), X[:, 1:]]))
    if rng.random() < 0.25:
        case = case.but(min_leaf=int(rng.integers(2, 4)))
    if rng.random() < 0.25:
        case = case.but(arms=rng.integers(0, K, n), min_leaf_per_arm=1)
    if rng.random() < 0.25:
        case = case.but(feature_costs=rng.choice([0.0, 0.125, 0.5], p), weights=rng.integers(1, 4, n).astype(float))
    if rng.random() < 0.35:
        case = case.but(root_features=tuple(np.flatnonzero(rng.random(p) < 0.6)) or (0,))
    return case


def started(case: Case, merge: bool = True, keep: str | None = None, switches=(True, True)):
    load_kernels([*SUBSET_KERNELS, (CONFLICT_PAIRS, "")])
    problem = case.problem()
    fixed = to_fixed_point(
        problem.losses, problem.leaf_penalty, problem.data.n_rows, problem.feature_costs, problem.weights
    )
    node = prepare(problem, fixed, merge)
    columns = problem.data.columns
    roots = [j for j, c in enumerate(columns) if case.root_features is None or c.feature in case.root_features]
    control = new_control(similar_support=switches[0], look_ahead=switches[1])
    search = start_subset_search(node, problem.data.n_rows, Clock(None, control), roots, keep)

    def exact(value: int) -> Fraction:
        return Fraction(value, 1) / Fraction(2) ** fixed.exponent + Fraction(problem.losses[:, 0].sum())

    return search, exact


def feasible_case(rng) -> tuple[Case, Fraction]:
    while True:
        case = random_case(rng)
        optimum = case.optimum()
        if optimum is not None and np.ptp(case.losses, axis=1).any():  # else every tree is a leaf, and prices are cut
            return case, optimum


@pytest.mark.parametrize("keep", ["lists", "bits"])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_bounds_at_any_time(seed, keep):
    rng = np.random.default_rng([seed, 91])
    for k in range(60):
        case, optimum = feasible_case(rng)
        search, exact = started(case, bool(rng.random() < 0.7), keep, SWITCHES[int(rng.integers(4))])
        if k % 3 > 0:
            search.use_conflicts(make_conflicts(search.node))
        value = NO_CUTOFF
        for _ in range(10_000):
            value = min(value, search.advance(NO_CUTOFF, int(rng.integers(1, 400))))
            assert exact(search.bound) <= optimum <= exact(value), f"{case!r}"
            if search.bound == value:
                break
        assert exact(search.bound) == optimum == exact(value) == exact(search.tree()[0]), f"{case!r}"


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_ends_the_work_and_never_the_truth(seed):
    rng = np.random.default_rng([seed, 92])
    for _ in range(60):
        case, optimum = feasible_case(rng)
        search, exact = started(case)
        scale = Fraction(1, 1) / (exact(1) - exact(0))
        goal = int((optimum - exact(0)) * scale) + int(rng.integers(-2, 3)) * int(scale * Fraction(case.penalty)) // 4
        value = search.advance(goal, 1 << 40)
        assert exact(search.bound) <= optimum
        assert search.bound >= goal or exact(search.bound) == exact(value) == optimum


def true_values(node: Node):
    """The value of any set of rows by its definition: a leaf, or a split of which both sides keep the minima."""
    planes = [tuple(map(int, plane)) for plane in node.losses]
    counts = [tuple(map(int, plane)) for plane in node.counts]

    @cache
    def value(rows: tuple[int, ...]) -> int | None:
        if any(sum(c[i] for i in rows) < m for c, m in zip(counts, node.rules.minima, strict=True)):
            return None
        best = node.penalty + min([0, *(sum(plane[i] for i in rows) for plane in planes)])
        for f in range(len(node.codes)):
            for t in range(int(node.bins[f]) - 1):
                left = tuple(i for i in rows if node.codes[f, i] <= t)
                right = tuple(i for i in rows if node.codes[f, i] > t)
                if left and right:
                    one, other = value(left), value(right)
                    if one is not None and other is not None:
                        best = min(best, one + other + price(f, rows))
        return best

    def price(f, rows):
        if not node.priced:
            return 0
        charges = node.rows.planes[len(planes) + len(counts) + node.rows.groups[f]]
        return sum(int(charges[i]) for i in rows)

    return value


def reachable(node: Node) -> set[tuple[int, ...]]:
    """All sets of rows that splits lead to."""
    found, todo = set(), [tuple(range(node.n_rows))]
    while todo:
        rows = todo.pop()
        if rows in found or not rows:
            continue
        found.add(rows)
        for f in range(len(node.codes)):
            for t in range(int(node.bins[f]) - 1):
                left = tuple(i for i in rows if node.codes[f, i] <= t)
                todo += [left, tuple(i for i in rows if node.codes[f, i] > t)]
    return found


@pytest.mark.parametrize("keep", ["lists", "bits"])
def test_everything_in_the_table_is_true(keep):
    """The certificate rests on it: each set that the table knows is valued again, by itself, with nothing shared."""
    rng = np.random.default_rng(97)
    checked = 0
    for k in range(250):
        case, _ = feasible_case(rng)
        search, _ = started(case.but(root_features=None), keep=keep, switches=SWITCHES[int(rng.integers(4))])
        if k % 3 > 0:
            search.use_conflicts(make_conflicts(search.node))
        value = true_values(search.node)
        names = {rows: search.make.name(np.array(rows)) for rows in reachable(search.node)}
        for _ in range(3):
            search.advance(NO_CUTOFF, int(rng.integers(1, 3000)))
            for rows, name in names.items():
                known = search.table[place_of(search.table, *name)]
                if known["key1"] != 0 or known["key2"] != 0:
                    assert known["low"] <= value(rows) <= known["up"], f"{case!r} {rows}"
                    checked += 1
    assert checked > 1000


def wide_case(rng) -> Case:
    """Few rows and many cuts, of which only open ones are looked ahead at."""
    n, p, K = int(rng.integers(8, 10)), int(rng.integers(6, 9)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.05] = np.nan
    losses = rng.integers(-6, 7, (n, K)) if rng.random() < 0.5 else rng.integers(0, K, n)[:, None] != np.arange(K)
    case = Case(X, losses.astype(float), max_depth=None, penalty=float(rng.choice([0.125, 0.25, 0.5])))
    if rng.random() < 0.25:
        case = case.but(min_leaf=2)
    if rng.random() < 0.25:
        case = case.but(feature_costs=rng.choice([0.0, 0.125, 0.5], p), weights=rng.integers(1, 4, n).astype(float))
    return case


@pytest.mark.parametrize("keep", ["lists", "bits"])
@pytest.mark.parametrize("switches", SWITCHES)
def test_many_columns(switches, keep):
    rng = np.random.default_rng([96, SWITCHES.index(switches)])
    for k in range(4):
        case = wide_case(rng)
        search, _ = started(case, keep=keep, switches=switches)
        if k % 3 > 0:
            search.use_conflicts(make_conflicts(search.node))
        assert len(search.make.columns[0]) > 40
        truth, value = true_values(search.node)(tuple(range(search.node.n_rows))), NO_CUTOFF
        while search.bound < value:
            value = min(value, search.advance(NO_CUTOFF, int(rng.integers(1, 2000))))
            assert search.bound <= truth <= value, f"{case!r}"
        assert search.bound == truth == value == search.tree()[0], f"{case!r}"


@pytest.mark.parametrize("keep", ["lists", "bits"])
def test_a_leaf_of_indifferent_rows_may_be_the_price_of_the_first_split(keep):
    """Only the first column may split all rows; row 0, alone on its side, costs the same whatever it gets."""
    losses = np.array([[0.0, 0.0], [4.0, 3.0], [2.0, 3.0]])
    X = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    case = Case(X, losses, penalty=0.125, max_depth=None, root_features=(0,))
    search, exact = started(case, keep=keep)
    value = search.advance(NO_CUTOFF, 1 << 40)
    assert exact(value) == exact(search.bound) == case.optimum() == Fraction(43, 8)
    labels = OptimalTreeClassifier(regularization=0.05, root_feature=[0])
    labels.fit([[1, 1], [1, 1], [0, 0], [0, 0], [0, 1], [0, 1]], [0, 1, 0, 0, 1, 1])
    assert labels.objective_value_ == pytest.approx(1 / 6 + 3 * 0.05)


@pytest.mark.parametrize("keep", ["lists", "bits"])
def test_a_leaf_that_does_not_pay_may_spare_its_rows_a_question(keep):
    """Row 0 gains no more than a leaf's price; but beside the others it would pay for the dear second column."""
    losses = np.array([[1.0, 2.0], [13.0, 0.0], [0.0, 17.0]])
    X = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    costs = {"feature_costs": np.array([0.0, 0.5]), "weights": np.array([3.0, 1.0, 4.0])}
    case = Case(X, losses, penalty=1.0, max_depth=None, **costs)
    search, exact = started(case, keep=keep)
    value = search.advance(NO_CUTOFF, 1 << 40)
    assert exact(value) == exact(search.bound) == case.optimum() == Fraction(13, 2)
    assert solve_direct(case.problem()).objective == 6.5


def test_names_of_sets_are_the_same_in_both_languages():
    """The root's name, and names of sides found by the search, are those that Python computes from the rows."""
    rng = np.random.default_rng(98)
    X, y = rng.integers(0, 2, (90, 6)).astype(float), rng.integers(0, 3, 90)
    case = Case(X, (y[:, None] != np.arange(3)).astype(float), penalty=1.0, max_depth=None)
    for keep in ("lists", "bits"):
        search, _ = started(case, keep=keep)
        search.advance(NO_CUTOFF, 1 << 40)
        path, node = search.state.path, search.node
        for column in path.places[0, :3]:
            f, cut = (int(c[column]) for c in search.make.columns)
            for side in range(2):
                rows = np.flatnonzero((node.codes[f] > cut) == side)
                assert search.make.name(rows) == (path.key1[0, side, column], path.key2[0, side, column])


def classification(n: int, p: int, penalty: float, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (n, p)).astype(float), rng.integers(0, 2, n)
    return Case(X, (y[:, None] != np.arange(2)).astype(float), penalty=penalty, max_depth=None)


def test_the_table_grows_and_nothing_is_lost():
    case = classification(300, 10, 0.75, 93)
    search, exact = started(case)
    small = len(search.table)
    value = search.advance(NO_CUTOFF, 1 << 40)
    assert len(search.table) > small and search.counters[KEPT] == np.count_nonzero(search.table["key1"])
    assert search.bound == value
    assert float(exact(value)) == solve_direct(case.problem()).objective


def test_a_memory_limit_ends_it_with_a_valid_bound():
    case = classification(200, 14, 0.5, 94)
    search, exact = started(case)
    search.clock.fits_memory = lambda more: False
    value = search.advance(NO_CUTOFF, 1 << 40)
    assert search.ended and exact(search.bound) < exact(value)
    other, _ = started(case)
    assert search.bound <= other.advance(NO_CUTOFF, 1 << 40)


def test_it_is_not_begun_where_memory_is_too_short():
    node = started(classification(200, 14, 0.5, 94))[0].node
    assert start_subset_search(node, 200, Clock(None, new_control(), memory_limit=1)) is None
    assert start_subset_search(node, 200, Clock(None, new_control(), memory_limit=10**9)) is not None


def test_rows_of_few_losses_are_kept_as_bits():
    rng = np.random.default_rng(99)
    case = classification(200, 8, 2.0, 99)
    assert isinstance(make_sets(started(case)[0].node), BitMaker)
    weights = rng.lognormal(size=200)
    assert isinstance(make_sets(started(case.but(losses=case.losses * weights[:, None]))[0].node), ListMaker)
    weights = rng.choice([0.5, 1.75], 200)  # class weights, one inverse propensity an arm
    assert isinstance(make_sets(started(case.but(losses=case.losses * weights[:, None]))[0].node), BitMaker)


def test_what_it_does_not_take():
    data, losses = bin_matrix(np.arange(6.0)[:, None]), np.eye(2)[[0, 1, 0, 1, 1, 0]]
    rules = {"data": data, "losses": losses, "leaf_penalty": 0.5, "max_depth": None}
    for more in ({}, {"max_depth": 9}, {"min_leaf": 2}, {"max_leaf_nodes": 3}, {"root_features": (0,)}):
        assert subset_search_applies(Problem(**(rules | more)), GATES)
    for more in ({"max_depth": 4}, {"leaf_penalty": 0.0}):
        assert not subset_search_applies(Problem(**(rules | more)), GATES)


@pytest.mark.parametrize("limit", [{"max_depth": 5}, {"max_leaf_nodes": 3}])
def test_limits_of_depth_and_leaves_are_kept(limit):
    """Its bounds hold for every tree; its trees count only if they keep to the limits."""
    rng = np.random.default_rng(100)
    for _ in range(40):
        case, _ = feasible_case(rng)
        case = case.but(**limit)
        optimum = case.optimum()
        if optimum is not None:
            solution = solve_direct(case.problem())
            assert solution.status is Status.OPTIMAL
            assert solution.objective == pytest.approx(float(optimum), abs=1e-9), f"{case!r}"


def test_threads_and_repetition_change_nothing():
    rng = np.random.default_rng(95)
    X, y = rng.integers(0, 3, (50, 4)).astype(float), rng.integers(0, 3, 50)
    trees = [
        OptimalTreeClassifier(max_depth=None, regularization=0.02, n_jobs=jobs).fit(X, y).export_text()
        for jobs in (1, 2, 1)
    ]
    assert trees[0] == trees[1] == trees[2]


def test_a_proof_that_the_search_over_depths_does_not_find():
    """Twelve leaves pay, and the floor of equal rows says nothing: closed in well under a second."""
    rng = np.random.default_rng(96)
    X = rng.integers(0, 2, (400, 8)).astype(float)
    y = ((X[:, 0] + X[:, 1] + X[:, 2]) % 2 != (rng.random(400) < 0.1)).astype(int)
    problem = Problem(bin_matrix(X), (y[:, None] != np.arange(2)).astype(float), 4.0, None)
    solution = solve_direct(problem, SearchLimits(time_limit=60.0))
    assert solution.status is Status.OPTIMAL and solution.tree.n_leaves >= 8
