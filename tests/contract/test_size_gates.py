"""Every way that a search can take, at sizes for brute force: all size gates at their extremes, alone and together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from policytree.objectives import FScore, MonotoneObjective, OmegaFScore, PartialAUC, WeightedAccuracy
from policytree.objectives.accuracy import BalancedAccuracy
from policytree.objectives.auc import AUC
from policytree.objectives.objective import Objective
from policytree.problem.types import GATES, Guesses, Problem, SearchLimits, SizeGates, Status
from policytree.solvers import solve_direct
from policytree.solvers.approximate.auto import solve_auto
from policytree.solvers.constrained.solve import Infeasible, solve_within
from policytree.solvers.core import rows as core_rows
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.exact import binary_features, constraint_generation, direct, engines, incumbent_search
from policytree.solvers.exact.bounds import dual_fitting
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs
from policytree.solvers.exact.bounds.row_duals import RowDuals
from policytree.solvers.exact.incumbent_search import IncumbentSearch
from policytree.solvers.exact.subset_search import SubsetSearch
from policytree.solvers.guided.solve import solve_with_guesses
from policytree.solvers.nonadditive import fractional_binary, ranking, ranking_search
from policytree.solvers.nonadditive.registry import solver_for
from policytree.solvers.rashomon.enumerate import enumerate_rashomon
from tests.constraints.test_budgets import Draw
from tests.contract.test_objectives import random_problem as random_labels
from tests.contract.test_objectives import stats_of_trees, worse_rate
from tests.solvers.test_row_duals import noisy_case
from tests.support import checker, ranking_oracles
from tests.support.near_tie_oracles import Trees
from tests.support.strategies import Case, penalised_case, random_case

INF = math.inf
MOST_DRAWS = 3_000
#: Of every gate: where a way is not taken, or as late as possible, and where tiny problems take it.
EXTREMES = {
    "least_generation_rows": (INF, 0),
    "most_generation_errors": (0, INF),
    "most_generation_columns": (0, INF),
    "most_generation_rows": (0, INF),
    "generation_first_rows": (1_000, 0),
    "generation_added_rows": (1_000, 1),
    "most_priced_columns": (0, INF),
    "least_priced_codes": (INF, 0),
    "least_pricing_seconds": (INF, 0),
    "pricing_share": (0, 5),
    "most_unpriced_depth": (INF, 0),
    "most_setless_depth": (INF, 0),
    "least_coarse_rows": (INF, 0),
    "most_coarse_share": (0, INF),
    "coarse_codes": ((), (2, 4)),
    "most_found_boxes": (300, 1),
    "most_known_boxes": (8_192, 1),
    "box_slice": (2_000_000, 1),
    "least_quick_pricing": (INF, 0),
    "most_table_cells": (0, INF),
    "most_table_additions": (0, INF),
    "most_counted_leaves": (1, 1_024),
    "most_pair_cuts": (0, INF),
    "most_pair_distances": (0, INF),
    "pair_share": (0, INF),
    "most_block_depth": (0, INF),
    "most_block_bytes": (0, INF),
    "most_block_products": (0, INF),
    "most_shared_bytes": (0, INF),
    "least_bits_depth": (INF, 0),
    "bits_gain": (INF, 0),
    "least_set_slice": (1 << 23, 1),
    "most_set_slice": (1 << 28, 1),
    "set_gain": (INF, 0),
    "first_set_places": (1 << 12, 2),
    "most_set_places": (1 << 23, 2),
    "most_set_path": (1 << 27, 0),
    "row_cost": (0, INF),
    "most_set_pairs": (0, INF),
    "most_solved_sets": (1 << 17, 1),
    "most_swept_sides": (1 << 20, 1),
    "most_block_sides": (1 << 17, 1),
    "loose_minimum": (0, 1),
    "most_needed_prices": (0, INF),
    "least_started_depth": (INF, 0),
    "start_share": (0, 1e6),
    "start_advance": (0, 1e6),
    "start_saving": (INF, 0),
    "most_start_seconds": (INF, 0),
    "most_start_cuts": (1_000, 1),
    "most_layer_bytes": (INF, 0),
    "most_ratio_entries": (0, INF),
    "least_ratio_table": (INF, 0),
    "most_unwatched_seconds": (0, INF),
    "most_shallow_bag_depth": (INF, 0),
    "quick_seconds": (0, INF),
    "least_bag_rows": (INF, 0),
    "bag_pricing_seconds": (0, 0.05),
    "most_bag_boxes": (0, 1 << 20),
    "most_boxes_of_a_row": (0, INF),
    "most_fitted_boxes": (0, 1 << 20),
    "least_strips": (8, 1),
    "most_bag_sets": (1 << 12, 4),
    "most_labellings": (2_000, 1),
    "coarse_cuts": ((), (1, 2)),
    "first_tied_values": (1 << 16, 1),
    "most_guessed_cuts": (0, INF),
    "most_polish_seconds": (0, INF),
}


def test_every_gate_is_among_them():
    assert list(EXTREMES) == [field.name for field in fields(SizeGates)]


def drawn_gates(rng: np.random.Generator) -> SizeGates:
    """All shut, all open, one of them alone at an extreme, or each of them somewhere, mostly open."""
    kind = rng.choice(["shut", "open", "one", "mixed"], p=[0.1, 0.2, 0.2, 0.5])
    if kind in ("shut", "open"):
        return SizeGates(**{name: values[kind == "open"] for name, values in EXTREMES.items()})
    if kind == "one":
        name = str(rng.choice(list(EXTREMES)))
        return replace(GATES, **{name: EXTREMES[name][rng.integers(2)]})
    open_ = rng.choice([0.5, 0.8, 0.9])
    at = {name: (*values, getattr(GATES, name)) for name, values in EXTREMES.items()}
    return SizeGates(**{n: v[1] if rng.random() < open_ else v[rng.choice([0, 2])] for n, v in at.items()})


def drawn_limits(rng: np.random.Generator) -> SearchLimits:
    """With one thread or two; a search that should take milliseconds must fail a test, not hang it."""
    return SearchLimits(30.0, n_jobs=int(rng.integers(1, 3)), gates=drawn_gates(rng))


@pytest.fixture
def taken(monkeypatch) -> Counter:
    """How often each way was taken."""
    ways: Counter = Counter()

    def count(owner, name):
        original = getattr(owner, name)

        def counted(*args, **kwargs):
            ways[f"{getattr(owner, '__name__', owner).rpartition('.')[2]}.{name}"] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (RowDuals, "work"), (RowDuals, "_refine"), (dual_fitting, "drop_idle"), (SubsetSearch, "advance"),
        (SubsetSearch, "with_duals"), (constraint_generation.ConstraintGeneration, "_look_at"),
        (engines, "BinaryStack"), (binary_features, "solve_four"), (direct, "solve_one_feature"),
        (core_rows, "_keeps_minima"), (fractional_binary.PairRounds, "_rounds"),
        (IncumbentSearch, "_change"), (incumbent_search, "with_subtrees"), (incumbent_search, "pruned"),
        (ranking_search.RankingSearch, "fit_row_duals"), (ranking._RankingRun, "_fitted"),
    ):  # fmt: skip
        count(owner, name)
    import policytree.solvers.exact.bounds.conflict_pairs as pairs

    count(pairs, "pair_bound")
    return ways


def assert_optimal(case: Case, solution, optimum, gates: SizeGates) -> None:
    """The optimum of brute force with a proof, and a tree that has it."""
    told = f"{case!r}\n{gates!r}"
    checker.check_solution(case.problem(), case.X, solution)
    if optimum is None:
        assert solution.status is Status.INFEASIBLE, told
        return
    assert solution.status is Status.OPTIMAL, told
    room = 1e-9 * (1 + checker.absolute_total(case.losses, case.penalty, 4)) + 2 * solution.resolution
    assert abs(solution.objective - float(optimum)) <= room, told
    assert solution.objective - room <= solution.lower_bound <= float(optimum) + room, told


def two_valued_case(rng: np.random.Generator) -> Case:
    """Columns of two values and two actions, for blocks of every depth and beyond."""
    n, p = int(rng.integers(5, 14)), int(rng.integers(2, 6))
    X = (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(float)
    losses = rng.integers(0, 4, (n, 2)) * (1.0 if rng.random() < 0.5 else 0.125)
    return Case(X, losses, float(rng.choice([0.0, 0.125, 0.5])), int(rng.integers(3, 9)))


def separable_case(rng: np.random.Generator) -> Case:
    """Many codes and few errors, of which some rows prove most."""
    n, p, K = int(rng.integers(10, 15)), int(rng.integers(1, 3)), int(rng.integers(2, 4))
    X = rng.integers(0, 8, (n, p)).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.15])] = np.nan
    weights = rng.integers(1, 6, n) if rng.random() < 0.5 else np.ones(n, np.int64)
    losses = weights[:, None] * (rng.integers(0, K, n)[:, None] != np.arange(K)).astype(float)
    case = Case(X, losses, float(rng.choice([0.0, 1.0])), int(rng.integers(4, 6)))
    if rng.random() < 0.2:
        case = case.but(max_leaf_nodes=int(rng.integers(5, 10)))
    if rng.random() < 0.2:
        case = case.but(feature_costs=rng.integers(0, 2, p) / 8)
    return case


def one_column_case(rng: np.random.Generator) -> Case:
    """One ordered column, and limits of leaves."""
    n, K = int(rng.integers(2, 12)), int(rng.integers(2, 4))
    X = rng.integers(0, 9, (n, 1)).astype(float)
    X[rng.random(n) < rng.choice([0.0, 0.2])] = np.nan
    case = Case(X, rng.integers(-9, 10, (n, K)).astype(float), float(rng.choice([0, 0, 1])), None)
    return case.but(max_leaf_nodes=int(rng.integers(2, 7)), min_leaf=int(rng.choice([1, 1, 2])))


def limited_case(rng: np.random.Generator) -> Case:
    """Leaves of which each has so many rows, and of every arm, among rows that meet that several times."""
    n, p, K = int(rng.integers(9, 16)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    X = rng.integers(0, int(rng.choice([2, 4, 9])), (n, p)).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.15])] = np.nan
    losses = rng.integers(-9, 10, (n, K)) * float(rng.choice([1.0, 0.1]))
    case = Case(X, losses, float(rng.choice([0, 0, 1])), int(rng.integers(2, 5)), min_leaf=int(rng.integers(1, 4)))
    if rng.random() < 0.6:
        case = case.but(arms=rng.permutation(np.arange(n) % K).astype(np.intp), min_leaf_per_arm=1)
    return case if rng.random() < 0.8 else case.but(max_leaf_nodes=int(rng.integers(3, 7)))


def draw_until_taken(check: Callable[[], None], least: int, ways: tuple[str, ...], taken: Counter) -> None:
    """Check at least so many problems, and more until every way was taken; some ways are rare."""
    for draws in range(MOST_DRAWS):
        if draws >= least and all(taken[way] for way in ways):
            return
        check()
    raise AssertionError(f"No problem took {[way for way in ways if not taken[way]]}; taken: {dict(taken)}.")


DIRECT = {
    "any": lambda rng: random_case(rng, max_rows=10),
    "noisy": noisy_case,
    "penalised": penalised_case,
    "two values": two_valued_case,
    "few errors": separable_case,
    "one column": one_column_case,
    "limited": limited_case,
}


def check_direct(kind: str, rng: np.random.Generator) -> None:
    """One problem, of which additive losses are minimised."""
    case, limits = DIRECT[kind](rng), drawn_limits(rng)
    if kind in ("noisy", "penalised") and rng.random() < 0.4:  # else there is no limit, or one of three or four
        case = case.but(max_depth=int(rng.integers(3, 6)))
    off = {name: False for name in solve_direct.switches if rng.random() < 0.1}
    assert_optimal(case, solve_direct(case.problem(), limits, **off), case.optimum(), limits.gates)


@pytest.mark.parametrize("kind", DIRECT)
def test_direct(kind, taken):
    rng = np.random.default_rng([len(kind), 401])
    ways = {
        "any": ("RowDuals.work", "SubsetSearch.advance", "conflict_pairs.pair_bound", "direct.solve_one_feature"),
        "noisy": ("RowDuals.work", "RowDuals._refine", "dual_fitting.drop_idle", "SubsetSearch.with_duals"),
        "penalised": ("RowDuals.work", "SubsetSearch.with_duals"),
        "two values": (
            "engines.BinaryStack",
            "binary_features.solve_four",
            "RowDuals.work",
            "conflict_pairs.pair_bound",
        ),
        "few errors": (
            "ConstraintGeneration._look_at",
            "SubsetSearch.advance",
            "IncumbentSearch._change",
            "incumbent_search.with_subtrees",
            "incumbent_search.pruned",
        ),
        "one column": ("direct.solve_one_feature",),
        "limited": ("rows._keeps_minima",),
    }[kind]
    draw_until_taken(lambda: check_direct(kind, rng), 200, ways, taken)


#: Objectives, and what a bag of leaves loses by definition.
OBJECTIVES = {
    "area": (AUC(), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats)),
    "partial area": (PartialAUC(0.4), lambda leaf_stats: 1 - ranking_oracles.area(leaf_stats, Fraction(0.4))),
    "F-score": (FScore(), lambda leaf_stats: 1 - ranking_oracles.best_f_score(leaf_stats, 1)),
    "F-score by omega": (
        OmegaFScore(1.0, 1.5),
        lambda leaf_stats: 1 - ranking_oracles.omega_f_score(leaf_stats, 1, 1.5),
    ),
    "balanced accuracy": (BalancedAccuracy(), ranking_oracles.balanced_error),
    "weighted accuracy": (WeightedAccuracy(3.0), lambda leaf_stats: ranking_oracles.weighted_error(leaf_stats, 3)),
    "monotone": (MonotoneObjective(worse_rate), lambda leaf_stats: ranking_oracles.errors_of(leaf_stats, worse_rate)),
}


def solve_for(objective: Objective, problem: Problem, y: np.ndarray, weight: np.ndarray, limits: SearchLimits):
    """A solution, and what a share of its objective is worth."""
    if not objective.additive:
        return solver_for(objective)(problem, limits), float(weight.sum())
    weight = objective.row_weights(y, np.arange(2), weight)
    losses = weight[:, None] * (y[:, None] != np.arange(2))
    scaled = replace(problem, losses=losses, leaf_penalty=problem.leaf_penalty / problem.losses.sum() * weight.sum())
    return solve_direct(scaled, limits), float(weight.sum())


def noisy_labels(rng: np.random.Generator):
    """Labels that no tree sorts out, with a few heavy rows."""
    n, p = int(rng.integers(6, 11)), int(rng.integers(1, 3))
    X, y = rng.integers(0, int(rng.integers(3, 6)), (n, p)).astype(float), rng.integers(0, 2, n)
    y[:2] = 0, 1
    weight = rng.choice([1.0, 1.0, 2.0, 5.0, 30.0], n) if rng.random() < 0.7 else np.ones(n)
    return X, y, weight, {"max_depth": int(rng.integers(3, 5))}


def check_objective(name: str, rng: np.random.Generator) -> None:
    """One problem of labels, of which the whole bag of leaves is judged."""
    objective, lost = OBJECTIVES[name]
    X, y, weight, rules = (random_labels if name == "monotone" or rng.random() < 0.5 else noisy_labels)(rng)
    if name == "F-score" and rng.random() < 0.5:  # for blocks
        X, rules = (X > 0).astype(float), {"max_depth": 3}
    limits, price = drawn_limits(rng), float(rng.choice([0.0, 0.01, 0.03, 0.1]))
    if rng.random() < 0.5:  # boxes leave nothing to prices of rows
        limits = replace(limits, gates=replace(limits.gates, most_bag_boxes=0, least_bag_rows=0))
    losses = weight[:, None] * (y[:, None] != np.arange(2))
    problem = Problem(
        bin_matrix(X), losses, price * weight.sum(), rules["max_depth"], rules.get("min_samples_leaf", 1),
        max_leaf_nodes=rules.get("max_leaf_nodes"), root_features=tuple(rules.get("root_feature", ())) or None,
    )  # fmt: skip
    best = min(float(lost(leaf_stats)) + price * len(leaf_stats) for leaf_stats in stats_of_trees(X, y, weight, rules))
    solution, unit = solve_for(objective, problem, y, weight, limits)
    told = f"{problem!r}\n{limits.gates!r}"
    assert solution.status is Status.OPTIMAL, told
    assert solution.objective / unit == pytest.approx(best, abs=1e-9), told
    assert best - 3e-9 <= solution.lower_bound / unit <= best + 1e-9, told


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives(name, taken):
    rng = np.random.default_rng([len(name), 402])
    ways = {
        "area": ("RankingSearch.fit_row_duals", "_RankingRun._fitted"),
        "partial area": ("RankingSearch.fit_row_duals", "_RankingRun._fitted"),
        "F-score": ("PairRounds._rounds",),
        "F-score by omega": ("RankingSearch.fit_row_duals", "_RankingRun._fitted"),
    }.get(name, ())
    draw_until_taken(lambda: check_objective(name, rng), 100, ways, taken)


def check_budget(rng: np.random.Generator) -> None:
    """One problem with budgets and shares."""
    case, limits = Draw(int(rng.integers(2**31))), drawn_limits(rng)
    vectors = case.vectors()
    allowed = case.allowed(vectors)
    if not vectors:
        found = solve_within(case.problem(), case.constraints(), limits)
        assert found.solution.status is Status.INFEASIBLE
    elif not allowed:
        with pytest.raises(Infeasible) as refused:
            solve_within(case.problem(), case.constraints(), limits)
        assert refused.value.status is Status.INFEASIBLE
    else:
        found = solve_within(case.problem(), case.constraints(), limits)
        best = float(min(v[0] for v in allowed))
        assert found.solution.status is Status.OPTIMAL, limits.gates
        assert found.solution.objective == pytest.approx(best, abs=1e-9), limits.gates


def test_budgets():
    rng = np.random.default_rng(403)
    for _ in range(40):
        check_budget(rng)


def check_near_ties(rng: np.random.Generator) -> None:
    """All trees near the best one: their number and their values."""
    case, limits = random_case(rng, max_rows=7).but(max_depth=int(rng.integers(0, 4))), drawn_limits(rng)
    trees, every = Trees(case), Counter()
    for (value, _, _), count in trees.count(trees.rows, case.max_depth).items():
        every[value] += count
    if not every:
        return
    slack, most = Fraction(int(rng.integers(0, 3))), int(rng.choice([1, 3, 50]))
    limit = min(every) + trees.value(slack)
    found = enumerate_rashomon(case.problem(), lambda best, leaf: slack, most, limits)
    assert found.n_trees == sum(count for value, count in every.items() if value <= limit), f"{case!r}\n{limits.gates}"
    values = [value for value in sorted(every) if value <= limit for _ in range(min(every[value], most))][:most]
    assert found.objectives.tolist() == pytest.approx([value / trees.denominator for value in values], rel=1e-12)


def test_near_ties():
    rng = np.random.default_rng(404)
    for _ in range(30):
        check_near_ties(rng)


def thresholds(x: np.ndarray) -> np.ndarray:
    """Midway between neighbouring values."""
    values = np.unique(x)
    return (values[1:] + values[:-1]) / 2


def check_guesses(rng: np.random.Generator) -> None:
    """Guessed thresholds and lower bounds: the optimum within the guesses, up to what theorem 1 states."""
    case, limits = noisy_case(rng, rows=(4, 10)), drawn_limits(rng)
    case = case.but(X=np.nan_to_num(case.X), categorical=(), max_depth=int(rng.integers(2, 5)))
    problem = case.problem()
    kept = [values[rng.random(len(values)) < 0.6] for values in (thresholds(x) for x in case.X.T)]
    reference = rng.random(len(case.X)) * case.losses.max(axis=1) if rng.random() < 0.4 else None
    solution = solve_with_guesses(problem, Guesses(thresholds=tuple(kept), reference_losses=reference), limits)
    coarse = np.column_stack([np.searchsorted(k, x) for k, x in zip(kept, case.X.T, strict=True)]).astype(float)
    within, exact = float(case.but(X=coarse).optimum()), float(case.optimum())
    told = f"{case!r} {kept} {reference}\n{limits.gates!r}"
    checker.check_solution(problem, case.X, solution)
    assert solution.status.proved, told
    assert exact - 1e-9 <= solution.objective <= within + solution.guarantees.get("theorem_1", 0.0) + 1e-9, told
    assert solution.lower_bound <= within + 1e-9, told
    automatic = solve_auto(problem, limits)
    assert automatic.objective == pytest.approx(exact, abs=1e-9), told


def test_guesses():
    rng = np.random.default_rng(405)
    for _ in range(30):
        check_guesses(rng)


def test_pairs_of_rows_are_never_bounded_where_that_is_shut():
    """A gate that nothing passes would make the tests above say nothing."""
    case = noisy_case(np.random.default_rng(406))
    for name, limit in (("most_pair_cuts", 0), ("most_pair_distances", 0), ("pair_share", 0)):
        gates = replace(SizeGates(most_priced_columns=0, pair_share=INF), **{name: limit})
        node = direct.prepare(case.problem(), to_fixed_point(case.losses, case.penalty, 4), True)
        clock = direct.Clock(None)
        assert ConflictPairs(node, clock, replace(GATES, most_priced_columns=0, pair_share=INF)).pays(1.0)
        assert not ConflictPairs(node, clock, gates).pays(1.0)
