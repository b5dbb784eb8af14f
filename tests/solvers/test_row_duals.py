"""Prices per row: exact pricing, certificates that hold for every box, and proofs that agree with brute force."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from policytree.problem.types import GATES, Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import ROW_DUALS, SUBSET_KERNELS, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import new_control, prepare
from policytree.solvers.exact.bounds import dual_fitting
from policytree.solvers.exact.bounds.dual_fitting import DualFitting
from policytree.solvers.exact.bounds.row_duals import LeafCountEnvelope, RowDuals, row_duals_apply
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.engines import DualEngine
from policytree.solvers.exact.subset_search import start_subset_search
from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.pricing.layout import KEPT, LARGEST_SUM, TOP
from policytree.solvers.kernels.pricing.max_box import price_boxes
from policytree.solvers.kernels.subsets.table import place_of
from tests.solvers.test_subset_search import reachable, true_values
from tests.support import oracles
from tests.support.box_oracles import all_boxes, largest_violation, least_losses
from tests.support.strategies import Case, random_case


def noisy_case(rng, rows=(6, 15)) -> Case:
    """Few values, noise, missing values, categories; losses of any sign or weighted mistakes; several leaves pay."""
    n, p, K = int(rng.integers(*rows)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    X = rng.integers(0, rng.choice([2, 3, 4]), (n, p)).astype(float)
    X[rng.random((n, p)) < 0.1] = np.nan
    if rng.random() < 0.5:
        losses = rng.integers(-6, 7, (n, K)).astype(float)
    else:
        losses = rng.choice([0.25, 1.0, 1.5], (n, 1)) * (rng.integers(0, K, n)[:, None] != np.arange(K))
    categorical = (0,) if rng.random() < 0.3 else ()
    penalty = float(rng.choice([0.125, 0.25, 0.5, 1.0]))
    return Case(X, losses, penalty, max_depth=None, categorical=categorical)


@pytest.fixture(params=["whole", "coarse first"])
def gates(request):
    """Whether tables of two and four codes come first, however small the whole one."""
    if request.param == "whole":
        return GATES
    return replace(GATES, coarse_codes=(2, 4), least_coarse_rows=1, most_coarse_share=0.95)


def priced(gates: SizeGates) -> SizeGates:
    """Prices of rows wherever they are possible, and no row sets beside them."""
    return replace(gates, most_priced_columns=math.inf, least_priced_codes=0, most_setless_depth=math.inf)


def started(problem: Problem, merge: bool = True, gates: SizeGates = GATES):
    """The prices of a problem's rows, and its fixed point."""
    load_kernels([(ROW_DUALS, "")])
    fixed = to_fixed_point(
        problem.losses, problem.leaf_penalty, problem.data.n_rows, problem.feature_costs, problem.weights
    )
    return RowDuals(prepare(problem, fixed, merge), Clock(None, new_control()), gates), fixed


def best_down_to(case: Case, depth: int, fixed) -> tuple[int, int]:
    """Value in fixed point, and number of leaves, of the best tree of a depth."""
    value, leaves = oracles.best_tree(
        case.X, case.losses, case.penalty, depth, categorical=case.categorical
    )  # fmt: skip
    relative = value - sum(map(oracles.Fraction, case.losses[:, 0].tolist()))
    scaled = relative * oracles.Fraction(2) ** fixed.exponent
    assert scaled.denominator == 1
    return int(scaled), len(leaves)


@pytest.mark.parametrize("seed", range(4))
def test_pricing_finds_the_largest_boxes(seed):
    rng = np.random.default_rng([seed, 121])
    for _ in range(60):
        case = noisy_case(rng)
        problem = case.problem()
        if not len(problem.data.n_bins):
            continue
        node = started(problem, merge=bool(rng.random() < 0.5))[0].node
        n = node.n_rows
        no_losses = np.zeros((2, n), np.int64)
        prices = DualFitting(node.codes, node.keys, no_losses, np.ones(n), node.penalty, Clock(None, new_control()))
        prices.numbers = rng.integers(-9, 10, n)
        size = int(rng.integers(1, 40))
        prices.best = prices.best._replace(sums=np.zeros(size, np.int64), boxes=prices.best.boxes[:size])
        sums = sorted(sum(prices.numbers[list(box)].tolist()) for box in all_boxes(prices.codes.T.tolist()))
        least = int(rng.integers(-1, 12)) if rng.random() < 0.7 else 0
        prices.begin(0)
        calls = 0
        while prices.state[TOP] >= 0:
            price_boxes(
                prices.rows, prices.reduced_costs, prices.stack, prices.best, prices.scratch, max(least, 0),
                int(rng.integers(1, 200)), prices.state, prices.clock.flag,
            )  # fmt: skip
            calls += 1
            assert calls < 10_000
        largest = max(sums[-1], 0)
        assert max(prices.state[LARGEST_SUM], max(least, 0)) == max(largest, max(least, 0)), f"{case!r}"
        kept = prices.best.sums[: prices.state[KEPT]]
        assert (len(kept) > 0) == (largest > max(least, 0))
        for total, box in zip(kept.tolist(), prices.best.boxes, strict=False):  # every box has the sum that is claimed
            inside = ((prices.codes >= box[:, :1]) & (prices.codes <= box[:, 1:])).all(axis=0)
            assert prices.numbers[inside].sum() == total > max(least, 0)


@pytest.mark.parametrize("height", [1, 2, 14, 15, 16, 17, 31, 32, 33])
def test_pricing_two_features_finds_the_best_box_for_every_first_code(height):
    """Tables whose rows fill vectors, or not, by all their rectangles."""
    load_kernels([(ROW_DUALS, "")])
    rng = np.random.default_rng([height, 129])
    for _ in range(20):
        width, n = height + int(rng.integers(0, 20)), int(rng.integers(1, 200))
        codes = np.stack([rng.integers(0, height, n), rng.integers(0, width, n)]).astype(np.uint16)
        codes[:, 0] = height - 1, width - 1
        no_losses = np.zeros((1, n), np.int64)
        fitting = DualFitting(codes, np.zeros((2, n)), no_losses, np.ones(n), 1, Clock(None, new_control()))
        fitting.numbers = rng.integers(-9, 10, n)
        table = np.zeros((height, width), np.int64)
        np.add.at(table, (fitting.rows.row, fitting.rows.column), fitting.numbers)
        expected = np.zeros(height, np.int64)
        for p1 in range(height):
            for run in table[p1:].cumsum(axis=0):
                before = np.minimum.accumulate([0, *run.cumsum()[:-1]])
                expected[p1] = max(expected[p1], (run.cumsum() - before).max())
        expected = expected[table.max(axis=1) > 0]  # a box that begins with another row is as good without it
        least = int(rng.integers(0, expected.max(initial=0) + 1))
        fitting.begin(0)
        price_boxes(
            fitting.rows, fitting.reduced_costs, fitting.stack, fitting.best, fitting.scratch, least, 1 << 40,
            fitting.state, fitting.clock.flag,
        )  # fmt: skip
        found = sorted(fitting.best.sums[: fitting.state[KEPT]].tolist())
        assert fitting.state[TOP] < 0 and found == sorted(expected[expected > least].tolist())


@pytest.mark.parametrize("by_leaves", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_certificates_hold_for_every_box(seed, by_leaves, gates, monkeypatch):
    """Proved again from the table as given: every box, every action, exact integers, no merging, no binning."""
    monkeypatch.setattr(RowDuals, "by_leaves", by_leaves)
    rng = np.random.default_rng([seed, 122])
    closed = 0
    for _ in range(40):
        case = noisy_case(rng, rows=(5, 11))
        prices, fixed = started(case.problem(), merge=False, gates=gates)
        depth = int(rng.integers(1, 4))
        best, leaves = best_down_to(case, depth, fixed)
        bound = prices.work(best, [(-1, 0)] * leaves, depth, float(rng.choice([0.2, 0.2, 0.2, 0.003])))
        codes = oracles.code_columns(case.X, case.categorical).tolist()
        losses = [[int(v * 2**fixed.exponent) for v in row] for row in case.losses.tolist()]
        floor = sum(map(min, losses))
        losses = [[v - min(row) for v in row] for row in losses]
        base = sum(int(v * 2**fixed.exponent) for v in case.losses[:, 0].tolist())
        proved = []
        for numbers, p in prices.certificates:
            assert largest_violation(codes, losses, numbers.tolist()) <= p <= fixed.leaf_penalty, f"{case!r}"
            proved.append(floor - base + sum(numbers.tolist()) + (depth + 2) * (fixed.leaf_penalty - p))
        assert proved[-1] <= bound
        optimum = int(case.optimum() * oracles.Fraction(2) ** fixed.exponent) - base
        assert min(best, bound) <= optimum, f"{case!r}"
        closed += bound >= best > 0
    assert closed >= 2  # of 40: few tables leave something to refute


@pytest.mark.parametrize("seed", range(4))
def test_every_number_of_leaves_has_a_bound_that_holds(seed, gates):
    """Beside brute force: the least loss of a tree of exactly h leaves, for every h, and what they cost at least."""
    rng = np.random.default_rng([seed, 124])
    compared = 0
    for _ in range(25):
        case = noisy_case(rng, rows=(4, 9))
        problem = case.problem()
        if not len(problem.data.n_bins):
            continue
        prices, fixed = started(problem, merge=bool(rng.random() < 0.5), gates=gates)
        best, leaves = best_down_to(case, 1, fixed)
        prices.work(best, [(-1, 0)] * leaves, 0, 0.1)
        node, counts = prices.node, prices.counts
        losses = np.vstack([np.zeros(node.n_rows, np.int64), node.losses])
        losses -= losses.min(axis=0)
        by_leaves = least_losses(node.codes.T.tolist(), losses.T.tolist())
        for h, least in by_leaves.items():
            assert counts.losses[h - 1] <= least, f"{case!r} {h}"
            assert counts.bound(h) <= min(v + g * node.penalty for g, v in by_leaves.items() if g >= h), f"{case!r} {h}"
            compared += 1
        for limit in {v + h * node.penalty for h, v in by_leaves.items()}:  # no number of leaves goes too early
            still = dict(zip(*(x.tolist() for x in counts.still_open(1, limit)), strict=True))
            for h, v in by_leaves.items():
                assert v + h * node.penalty >= limit or still[h] >= v, f"{case!r} {h}"
    assert compared > 50


def test_bounds_of_few_and_of_many_leaves():
    """A line of a steep slope counts for few leaves, a flat one for many; a multiple of the unit is rounded up to."""
    counts = LeafCountEnvelope(penalty=10, unit=4, most=100)
    counts.add(60, 12)  # 48, 36, 24, 12, 0
    counts.add(21, 3)  # 18, 15, 12, 9, 6, 3, 0
    counts.add(1000, 20)  # as dear as two leaves: left out
    assert counts.losses[:8].tolist() == [48, 36, 24, 12, 6, 3, 0, 0]
    assert [counts.bound(h) for h in (1, 4, 5, 7, 8, 100, 101)] == [52, 52, 58, 70, 80, 1000, 1000]
    h, most = counts.still_open(3, 60)
    assert h.tolist() == [3, 4, 5] and most.tolist() == [28, 16, 8]
    h, most = counts.still_open(3, 53)  # three lose 24 at least, and might lose 20
    assert h.tolist() == [4] and most.tolist() == [12]


@pytest.mark.parametrize("seed", range(6))
def test_proofs_agree_with_brute_force(seed, gates, monkeypatch):
    """Whole searches in which prices close what they can, with every constraint: the same optimum as without."""
    rng = np.random.default_rng([seed, 123])
    closed = []

    def work(self, best, tree, depth, seconds, original=RowDuals.work):
        bound = original(self, best, tree, depth, 0.05)
        closed.append(bound >= best)
        return bound

    monkeypatch.setattr(DualEngine, "seconds", lambda engine, ahead: 0.05 * engine.applies)
    limits = SearchLimits(gates=priced(gates))
    for number in range(40):
        case = random_case(rng, max_rows=12) if rng.random() < 0.5 else noisy_case(rng)
        case = case.but(max_depth=None if rng.random() < 0.7 else 5, penalty=case.penalty or 0.25)
        without = solve_direct(case.problem(), limits)
        with monkeypatch.context() as patch:
            patch.setattr(RowDuals, "work", work)
            patch.setattr(RowDuals, "by_leaves", number % 2 == 0)
            solution = solve_direct(case.problem(), limits)
        optimum = case.optimum()
        assert solution.status == without.status
        if optimum is not None:
            assert abs(solution.objective - float(optimum)) <= 1e-9 + 2 * solution.resolution, f"{case!r}"
            assert solution.objective == without.objective
            assert solution.lower_bound <= float(optimum) + 1e-9 + solution.resolution
    assert len(closed) > 3


@pytest.mark.parametrize("seed", range(6))
def test_searches_bounded_by_the_worth_of_rows_find_the_optimum(seed, gates, monkeypatch):
    """Prices that close nothing themselves: what rows are worth then bounds every node of the depths that follow."""
    rng = np.random.default_rng([seed, 128])
    bounded = []

    def work(self, best, tree, depth, seconds, original=RowDuals.work):
        original(self, best, tree, depth, 0.05)
        bounded.append(self.bounded() is not self.node)
        return -INF

    monkeypatch.setattr(DualEngine, "seconds", lambda engine, ahead: 0.05 * engine.applies)
    limits = SearchLimits(gates=priced(gates))
    monkeypatch.setattr(RowDuals, "work", work)
    for _ in range(40):
        case = random_case(rng, max_rows=12) if rng.random() < 0.4 else noisy_case(rng)
        case = case.but(max_depth=None if rng.random() < 0.5 else int(rng.integers(4, 6)), penalty=case.penalty or 0.25)
        if rng.random() < 0.3:
            case = case.but(max_leaf_nodes=int(rng.integers(3, 8)))
        if rng.random() < 0.3:
            case = case.but(feature_costs=0.02 * rng.integers(0, 6, case.X.shape[1]))
        optimum, solution = case.optimum(), solve_direct(case.problem(), limits)
        if optimum is not None:
            assert abs(solution.objective - float(optimum)) <= 1e-9 + 2 * solution.resolution, f"{case!r}"
            assert abs(solution.lower_bound - float(optimum)) <= 1e-9 + 2 * solution.resolution, f"{case!r}"
    assert sum(bounded) > 5


def test_no_tree_on_any_rows_costs_less_than_they_are_worth(rng):
    """Every set of rows that splits lead to, valued by its definition."""
    seen = 0
    for _ in range(60):
        prices, fixed = started((case := noisy_case(rng, rows=(6, 12))).problem())
        best, leaves = best_down_to(case, 1, fixed)
        prices.work(best, [(-1, 0)] * leaves, 1, 0.1)
        node = prices.bounded()
        if node is prices.node:
            continue
        value, worth = true_values(prices.node), node.rows.planes[-3]
        for rows in reachable(prices.node):
            assert value(rows) >= worth[list(rows)].sum() + node.rules.beyond, f"{case!r}"
            seen += 1
    assert seen > 150


def test_row_sets_bounded_by_the_worth_of_rows_prove_what_is_true(rng):
    """Alone, from the first set on: the optimum, and of every set what holds of it."""
    known = 0
    for _ in range(150):
        case = noisy_case(rng, rows=(6, 12))
        if not case.problem().data.columns:
            continue
        prices, fixed = started(case.problem())
        best, leaves = best_down_to(case, 1, fixed)
        prices.work(best, [(-1, 0)] * leaves, 1, 0.1)
        if prices.bounded() is prices.node:
            continue
        load_kernels(SUBSET_KERNELS)
        plain = start_subset_search(prices.node, 12, Clock(None, new_control()), None, "lists")
        plain.advance(INF, 100)
        search = plain.with_duals(prices.bounded())
        assert search is not plain and len(search.table) == len(plain.table)
        value, every = true_values(prices.node), tuple(range(prices.node.n_rows))
        for _ in range(100):
            up = search.advance(INF, 100_000)
            if search.bound >= up:
                break
        assert search.bound == up == value(every) == search.tree()[0]
        for rows in reachable(prices.node):
            entry = search.table[place_of(search.table, *search.make.name(np.array(rows)))]
            if entry["key1"] != 0 or entry["key2"] != 0:
                assert entry["low"] <= value(rows) <= entry["up"]
                known += 1
    assert known > 100


def test_the_worth_of_rows_saves_work_and_changes_nothing(monkeypatch):
    problem = replace(noise_problem(129, rate=0.002), max_depth=5)
    bounded = solve_direct(problem)
    monkeypatch.setattr(RowDuals, "bounded", lambda self: self.node)
    without = solve_direct(problem)
    assert bounded.status is without.status is Status.OPTIMAL
    assert bounded.objective == without.objective
    assert bounded.counters["cuts"] < without.counters["cuts"]


def noise(rng, rows=1500):
    """A table of noisy rows with four leaves that pay."""
    X = np.column_stack([rng.integers(0, k, rows) for k in (2, 3, 9, 14)]).astype(float)
    signal = np.where(X[:, 3] > 6, X[:, 2] > 3, X[:, 2] > 6)
    y = (signal != (rng.random(rows) < 0.35)).astype(int)
    return X, y


def noise_problem(seed, rate=0.01, rows=1500):
    X, y = noise(np.random.default_rng(seed), rows)
    return Problem(bin_matrix(X), (y[:, None] != np.arange(2)).astype(float), rate * rows, None)


def test_noisy_rows_are_proved():
    """Neither depths nor row sets prove these in that time."""
    problem = noise_problem(124)
    solution = solve_direct(problem, SearchLimits(time_limit=30.0))
    assert solution.status is Status.OPTIMAL
    again = solve_direct(problem, SearchLimits(time_limit=30.0, n_jobs=2))
    assert again.objective == solution.objective
    assert again.tree.threshold.tobytes() == solution.tree.threshold.tobytes()
    without = solve_direct(problem, SearchLimits(time_limit=2.0, gates=SizeGates(most_unpriced_depth=math.inf)))
    assert without.lower_bound <= solution.lower_bound <= solution.objective <= without.objective


def in_fixed_point(problem, fixed, objective) -> float:
    return (objective - problem.losses[:, 0].sum()) * 2.0**fixed.exponent


def in_fixed_point_at_most(problem, fixed, objective) -> float:
    """The same, with room for what floats round."""
    value = in_fixed_point(problem, fixed, objective)
    return value + 1e-12 * abs(value)


def test_the_bound_moves_before_it_closes():
    problem = noise_problem(125)
    optimum = solve_direct(problem, SearchLimits(time_limit=30.0))
    prices, fixed = started(problem)
    best = prices.node.leaf()[0] + prices.node.penalty
    first = prices.bound(3)
    bound = prices.work(best, [(-1, 0)], 1, 1.0)
    assert optimum.tree.n_leaves >= 3
    assert first < bound <= in_fixed_point_at_most(problem, fixed, optimum.objective)


def test_a_raised_flag_ends_it_with_a_valid_bound():
    prices, _ = started(noise_problem(126))
    prices.clock.stop(Status.INTERRUPTED)
    best = prices.node.leaf()[0]
    assert prices.work(best, [(-1, 0)] * 2, 3, 10.0) == prices.bound(5) == prices.floor + 5 * prices.node.penalty


def test_short_time_ends_early_and_goes_on_later():
    prices, _ = started(noise_problem(127))
    best = prices.node.leaf()[0] + prices.node.penalty
    prices.work(best, [(-1, 0)], 3, 0.005)
    later = prices.work(best, [(-1, 0)], 3, 1.0)
    assert later == prices.bound(5) and len(prices.certificates) > 1


def test_numbers_that_ran_away_are_begun_anew(monkeypatch):
    """Where the best tree is not known yet, what is aimed at cannot be reached; it is once that tree is known."""
    rng = np.random.default_rng(0)
    n = 2000
    x, b = rng.integers(0, n, n) / n, rng.integers(0, 2, (n, 1))
    y = (np.sin(12 * x + b[:, 0]) > 0) ^ (rng.random(n) < 0.1)
    problem = Problem(bin_matrix(np.column_stack([x, b])), np.column_stack([y, ~y]).astype(float), 10.0, None)
    prices, fixed = started(problem)
    node = prices.node
    diverged, restart = [], DualFitting.restart
    monkeypatch.setattr(DualFitting, "restart", lambda boxes: diverged.append(boxes.diverged) or restart(boxes))
    solution = solve_direct(problem)
    best = round(in_fixed_point(problem, fixed, solution.objective))
    for more, leaves, depth, seconds in ((2.0, 10, 2, 0.3), (1.0, 10, 3, 0.02), (0.5, 10, 3, 0.02)):
        bound = prices.work(best + int(more * node.penalty), [(-1, 0)] * leaves, depth, seconds)
        assert bound <= best
    assert all(diverged) and len(diverged) > 0 and not prices.too_large
    assert prices.work(best, [(-1, 0)] * solution.tree.n_leaves, 4, 5.0) == best
    assert solution.status is Status.OPTIMAL


def test_memory_limits_hold():
    problem = noise_problem(128)
    load_kernels([(ROW_DUALS, "")])
    node = prepare(problem, to_fixed_point(problem.losses, problem.leaf_penalty, 100), True)
    clock = Clock(None, new_control())
    clock.fits_memory = lambda more: False
    prices = RowDuals(node, clock)
    assert prices.too_large
    assert prices.work(node.leaf()[0], [(-1, 0)], 3, 10.0) == prices.bound(5)


@pytest.mark.parametrize("refused", [2, 3])
def test_coarse_tables_that_memory_has_no_room_for_are_left_out(refused):
    """Whichever of the two it is (the whole table asks first): the other one is still fitted, and then the whole."""
    load_kernels([(ROW_DUALS, "")])
    problem = noise_problem(0, rate=0.002)
    node = prepare(problem, to_fixed_point(problem.losses, problem.leaf_penalty, 100), True)
    clock, asked = Clock(None, new_control()), []
    clock.fits_memory = lambda more: asked.append(more) or len(asked) != refused
    prices = RowDuals(node, clock, replace(GATES, coarse_codes=(4, 8, 16), most_coarse_share=0.95))
    sizes = [table.n_rows for table in (prices.boxes, *(table for table, _ in prices.tables))]
    assert len(sizes) == 2 and sizes[0] < sizes[1] == node.n_rows and not prices.too_large
    bound = prices.work(node.leaf()[0], [(-1, 0)] * 4, 3, 0.7)
    assert not prices.tables and prices.floor + 5 * node.penalty < bound


def test_a_full_stack_is_hopeless_and_harmless():
    prices, _ = started(noise_problem(129))
    stack = prices.boxes.stack
    prices.boxes.stack = stack._replace(numbers=stack.numbers[:4])
    best = prices.node.leaf()[0] + prices.node.penalty
    assert prices.work(best, [(-1, 0)], 3, 10.0) == prices.bound(5) == prices.floor + 5 * prices.node.penalty
    assert prices.too_large


def test_idle_boxes_make_room(monkeypatch):
    forgotten = []

    def forget(known, n, original=dual_fitting.drop_idle):
        forgotten.append(n - original(known, n))
        return n - forgotten[-1]

    monkeypatch.setattr(dual_fitting, "drop_idle", forget)
    problem = noise_problem(130, rows=600)
    prices, fixed = started(problem, gates=SizeGates(coarse_codes=()))
    boxes = prices.boxes
    boxes.known = boxes.known._replace(index=boxes.known.index[: boxes.n_rows + 1])
    best = prices.node.leaf()[0] + prices.node.penalty
    bound = prices.work(best, [(-1, 0)], 2, 0.5)
    optimum = solve_direct(problem, SearchLimits(time_limit=30.0))
    assert sum(forgotten) > 0 and boxes.known.start[boxes.n_known] <= len(boxes.known.index)
    assert min(best, bound) <= in_fixed_point_at_most(problem, fixed, optimum.objective)


def test_what_it_does_not_take():
    problem = noise_problem(131, rows=50)
    assert row_duals_apply(problem, GATES)
    for rules in ({"max_depth": 3}, {"leaf_penalty": 0.0}, {"losses": problem.losses[:, :1]}):
        fields = {"data": problem.data, "losses": problem.losses, "leaf_penalty": 1.0, "max_depth": None} | rules
        assert not row_duals_apply(Problem(**fields), GATES)
