"""Weights as integer counts: the counts, what they promise, and the tree they lead to."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.exceptions import InputError
from policytree.problem.types import Problem, Status
from policytree.solvers.approximate.duplication import (
    integer_counts,
    rounding_guarantee,
    solve_duplication,
    tree_rounding_error,
)
from policytree.solvers.approximate.sampling import solve_sampling
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.labelled import LabelledRows
from policytree.solvers.exact.direct import solve_direct
from tests.support import oracles, strategies


def labelled_problem(rng, n=200, n_values=8, p=4, weight=None, penalty=0.01, max_depth=2):
    """Noisy labels of a depth-two rule as a Problem, with X, y and the weights."""
    X = rng.integers(0, n_values, (n, p)).astype(float)
    y = ((X[:, 0] > n_values / 2) ^ (X[:, 1] > n_values / 3) ^ (rng.random(n) < 0.15)).astype(int)
    w = rng.lognormal(size=n) if weight is None else weight
    losses = w[:, None] * (np.arange(2) != y[:, None])
    return Problem(bin_matrix(X), losses, penalty * w.sum(), max_depth), X, y, w


def test_counts_follow_algorithm_1(rng):
    w = np.array([0.12, 1.0, 0.5, 0.004, 0.333])
    made = integer_counts(w, 100)
    assert made.counts.tolist() == [12, 100, 50, 0, 33]
    assert np.bincount(made.rows(), minlength=5).tolist() == made.counts.tolist()
    assert integer_counts(w * 7.3e-5, 100).counts.tolist() == made.counts.tolist()


def test_small_multiples_are_exact_and_have_no_common_divisor():
    assert integer_counts(np.array([0.3, 0.9, 0.6, 0.0]), 10).counts.tolist() == [1, 3, 2, 0]
    assert integer_counts(np.array([1.0, 2.0, 2.0]), 100).counts.tolist() == [1, 2, 2]
    assert integer_counts(np.full(3, 0.7), 1).counts.tolist() == [1, 1, 1]
    # 40 is beyond factor 10, so it is rounded: 4, 10 and 0 tenths have the divisor 2
    assert integer_counts(np.array([16.0, 40.0, 1.0]), 10).counts.tolist() == [2, 5, 0]


@pytest.mark.parametrize("bad", [[1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [[1.0]]])
def test_bad_weights_are_refused(bad):
    with pytest.raises(InputError, match="weight"):
        integer_counts(np.array(bad))


@pytest.mark.parametrize("factor", [0, -3, 2.5, True])
def test_bad_factors_are_refused(factor):
    with pytest.raises(InputError, match="factor"):
        integer_counts(np.ones(3), factor)


@settings(max_examples=300)
@given(
    weight=st.lists(st.floats(0.01, 100.0), min_size=1, max_size=12),
    factor=st.sampled_from([1, 2, 5, 10, 100, 1000]),
    mask=st.integers(0, 2**12 - 1),
)
def test_no_error_rate_leaves_the_bounds_of_theorem_2(weight, factor, mask):
    """Any set of misclassified rows, so the errors of any tree."""
    w = np.array(weight)
    made = integer_counts(w, factor)
    promise = rounding_guarantee(w, made)
    wrong = (mask >> np.arange(len(w))) & 1
    apart = abs((w @ wrong) / w.sum() - (made.counts @ wrong) / made.counts.sum())
    assert apart <= promise["rounding_error"] + 1e-12
    assert promise["rounding_error"] <= promise["theorem_2"] + 1e-12


@settings(max_examples=200)
@given(
    case=strategies.cases(max_rows=7, max_features=2, constraints=False, costs=False),
    factor=st.sampled_from([1, 2, 3, 10]),
    seed=st.integers(0, 2**31),
)
def test_no_tree_leaves_the_bounds_of_its_rounding(case, factor, seed):
    """Every tree of depth one, with its errors counted from the definition; and the tree that comes out."""
    case = case.but(max_depth=1, losses=case.losses * np.random.default_rng(seed).lognormal(size=(len(case.X), 1)))
    problem = case.problem()
    labelled = LabelledRows.of(problem)
    if not len(labelled.weight):
        return
    made = integer_counts(labelled.weight, factor)
    above, below = tree_rounding_error(problem, labelled, made)
    assert max(above, below) <= rounding_guarantee(labelled.weight, made)["rounding_error"] + 1e-12
    best = np.inf
    for rule in oracles.enumerate_trees(oracles.all_splits(case.X, case.categorical), case.losses.shape[1], 1):
        actions = np.array([oracles.leaf_of(rule, row)[1] for row in case.X.tolist()])
        wrong = actions[labelled.row] != labelled.label
        weighted = labelled.weight @ wrong / labelled.total
        counted = made.counts @ wrong / made.counts.sum()
        assert counted - above - 1e-12 <= weighted <= counted + below + 1e-12
        best = min(best, labelled.constant + labelled.total * weighted + case.penalty * oracles.count_leaves(rule))
    solution = solve_duplication(problem, factor=factor)
    assert best <= solution.objective + 1e-9
    assert solution.lower_bound <= best + 1e-9
    assert solution.gap <= (above + below) * labelled.total + 1e-9


def test_rows_that_repeat_round_to_nothing():
    """Two kinds of rows, each with many weights: what is rounded up and down in a kind makes up for one another."""
    rng = np.random.default_rng(35)
    problem, *_ = labelled_problem(rng, n=20_000, n_values=2, p=2)
    said = solve_duplication(problem, factor=10).guarantees
    assert said["tree_rounding_error"] < 0.1 * said["rounding_error"]


def test_the_rounding_error_is_reached():
    w = np.array([3.3, 1.0, 2.7])
    made = integer_counts(w, 5)
    share = w / w.sum() - made.counts / made.counts.sum()
    assert share[share > 0].sum() == pytest.approx(rounding_guarantee(w, made)["rounding_error"], abs=1e-15)


def test_printed_theorem_by_hand():
    """Weights 1 and 1.8, factor 2: counts 1 and 2; means 1.4 and 1.35 on the scale 2 / 1.8 copies a unit."""
    made = integer_counts(np.array([1.0, 1.8]), 2)
    assert made.counts.tolist() == [1, 2]
    promise = rounding_guarantee(np.array([1.0, 1.8]), made)
    assert promise["epsilon"] == pytest.approx(0.1 / 1.35)
    assert promise["eta"] == pytest.approx(1 / 0.9)
    assert promise["zeta"] == pytest.approx(1.0)
    assert promise["psi"] == pytest.approx(2.0)
    assert promise["theorem_2"] == pytest.approx(max(0.1 / 1.35, (0.2 / 1.8 * 2 + 0.1 / 1.35) / (1 / 0.9)))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_enclose_the_optimum(seed):
    rng = np.random.default_rng([seed, 31])
    problem, *_ = labelled_problem(rng, penalty=[0.0, 0.02][seed % 2])
    if seed % 3 == 0:
        problem = Problem(problem.data, rng.normal(size=(200, 3)), 0.5, 2, min_leaf=1 + 5 * (seed % 2))
    optimum = solve_direct(problem).objective
    for factor in (1, 3, 10, 100, 10_000):
        solution = solve_duplication(problem, factor=factor)
        assert solution.lower_bound <= optimum + 1e-9
        assert solution.objective >= optimum - 1e-9
        total = (problem.losses.max(axis=1, keepdims=True) - problem.losses).sum()
        said = solution.guarantees
        assert said["tree_rounding_error"] <= said["rounding_error"] + 1e-9 <= said["theorem_2"] + 2e-9
        assert solution.gap <= 2 * said["tree_rounding_error"] + 1e-9
        assert said["theorem_2"] <= total * (1 + 1e-12)
    assert solution.objective == pytest.approx(optimum, rel=1e-3)


def test_whole_weights_are_solved_exactly(rng):
    problem, _, _, w = labelled_problem(rng, weight=rng.integers(1, 6, 200).astype(float))
    solution = solve_duplication(problem, factor=10)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(solve_direct(problem).objective, rel=1e-13)
    assert solution.guarantees["rounding_error"] / w.sum() <= 1e-15
    assert solution.guarantees["dropped_weight"] == 0


def test_algorithm_1_as_printed_divides_by_the_sum():
    """Weights 2, 6, 12 of 20: factor 50 makes 5, 15 and 30 copies, so 1, 3 and 6; factor 9 makes 1, 3 and 5."""
    w = np.array([2.0, 6.0, 12.0])
    made = integer_counts(w, 50, divide_by="sum")
    assert made.counts.tolist() == [1, 3, 6] and made.of_largest == pytest.approx(6.0)
    rounded = integer_counts(w, 9, divide_by="sum")  # 0.9, 2.7 and 5.4 copies
    assert rounded.counts.tolist() == [1, 3, 5] and rounded.of_largest == pytest.approx(5.4)
    assert rounding_guarantee(w, rounded)["rounding_error"] == pytest.approx(12 / 20 - 5 / 9)
    with pytest.raises(InputError, match="rounds to zero copies with factor=99"):
        integer_counts(np.ones(300), 99, divide_by="sum")  # as printed, with the factor that is printed
    with pytest.raises(InputError, match="divide_by must be one of largest, sum; got 'mean'"):
        integer_counts(w, divide_by="mean")


def test_dividing_by_the_sum_is_a_larger_factor_of_the_largest():
    problem, X, y, w = labelled_problem(np.random.default_rng([1, 31]), penalty=0.01)
    printed = solve_duplication(problem, factor=2_000, divide_by="sum")
    copies = np.floor(2_000 * w / w.sum() + 0.5)
    repeated = solve_direct(Problem(problem.data, losses_of(y, copies), 0.01 * copies.sum(), 2))
    wrong = printed.tree.action[printed.tree.apply(X)] != y
    assert copies[wrong].sum() / copies.sum() + 0.01 * printed.tree.n_leaves == pytest.approx(
        repeated.objective / copies.sum()
    )


def test_leaves_that_do_not_pay_by_the_real_weights_are_taken_back():
    """Then the returned tree is not the one of the repeated rows: rarely with many copies, and never to its loss."""
    taken, of_repeated_rows = [], []

    def kept(problem, limits=None):
        of_repeated_rows.append(solve_direct(problem, limits))
        return of_repeated_rows[-1]

    for seed in range(60):
        problem, X, y, w = labelled_problem(np.random.default_rng([seed, 36]), n=60, penalty=0.02)
        solution = solve_duplication(problem, factor=2, solve=kept)
        before = of_repeated_rows[-1].tree
        wrong = before.action[before.apply(X)] != y
        assert solution.objective <= w[wrong].sum() + problem.leaf_penalty * before.n_leaves + 1e-9
        taken.append(solution.guarantees["leaves_taken_back"])
        assert taken[-1] == before.n_leaves - solution.tree.n_leaves
    assert 0 < np.count_nonzero(taken) < 30


@pytest.mark.parametrize("seed", range(4))
def test_counts_have_the_optimum_of_repeated_rows(seed):
    """Our integer counts against physically repeated rows, both solved by the direct solver."""
    rng = np.random.default_rng([seed, 32])
    problem, X, y, w = labelled_problem(rng, penalty=0.01)
    made = integer_counts(w, 7)
    rows = made.rows()
    losses = (np.arange(2) != y[rows, None]).astype(float)
    repeated = solve_direct(Problem(bin_matrix(X[rows]), losses, 0.01 * len(rows), 2))
    counted = solve_direct(Problem(problem.data, losses_of(y, made.counts), 0.01 * len(rows), 2))
    assert counted.objective == repeated.objective


def losses_of(y, counts):
    """Losses of rows that stand ``counts`` times."""
    return counts[:, None] * (np.arange(2) != y[:, None]).astype(float)


@pytest.mark.parametrize("seed", range(3))
def test_dl85_finds_the_same_on_repeated_rows(seed):
    """An independent, unweighted solver on the physically duplicated data."""
    pydl85 = pytest.importorskip("pydl85")
    rng = np.random.default_rng([seed, 33])
    problem, X, y, w = labelled_problem(rng, n=150, n_values=5, penalty=0.0)
    made = integer_counts(w, 5)
    rows = made.rows()
    table = np.column_stack([X[:, j] <= v for j in range(X.shape[1]) for v in np.unique(X[:, j])[:-1]]).astype(int)
    peer = pydl85.DL85Classifier(max_depth=2, min_sup=1)
    peer.fit(table[rows], y[rows])
    ours = solve_direct(Problem(problem.data, losses_of(y, made.counts), 0.0, 2))
    assert ours.objective == peer.error_
    full = solve_duplication(problem, factor=5)
    wrong = full.tree.action[full.tree.apply(X)] != y
    assert made.counts[wrong].sum() == peer.error_
    assert w[wrong].sum() == pytest.approx(full.objective)


@pytest.mark.parametrize("seed", range(2))
def test_gosdt_finds_the_same_on_repeated_rows(seed):
    """An independent, unweighted solver with a leaf penalty, without a depth limit."""
    gosdt = pytest.importorskip("gosdt")
    rng = np.random.default_rng([seed, 34])
    problem, X, y, w = labelled_problem(rng, n=120, n_values=4, p=3, penalty=0.02, max_depth=None)
    made = integer_counts(w, 4)
    rows = made.rows()
    table = np.column_stack([X[:, j] <= v for j in range(X.shape[1]) for v in np.unique(X[:, j])[:-1]]).astype(bool)
    peer = gosdt.GOSDTClassifier(regularization=0.02, time_limit=60)
    peer.fit(table[rows], y[rows])
    ours = solve_duplication(problem, factor=4)
    wrong = ours.tree.action[ours.tree.apply(X)] != y
    objective = made.counts[wrong].sum() / len(rows) + 0.02 * ours.tree.n_leaves
    counted = solve_direct(Problem(problem.data, losses_of(y, made.counts), 0.02 * len(rows), None))
    assert counted.objective / len(rows) == pytest.approx(peer.result_.model_loss + _leaves(peer) * 0.02, abs=1e-6)
    assert objective >= counted.objective / len(rows) - 1e-12


def _leaves(peer) -> int:
    """Leaves of gosdt's first tree."""

    def count(node) -> int:
        return 1 if "prediction" in node else count(node["true"]) + count(node["false"])

    return count(json.loads(peer.result_.model)[0])


def test_scaled_weights_change_nothing(rng):
    problem, *_ = labelled_problem(rng)
    solution = solve_duplication(problem, factor=13)
    for factor in (3.0, 0.1, 1e-6, 2.0**40):
        scaled = Problem(problem.data, problem.losses * factor, problem.leaf_penalty * factor, 2)
        other = solve_duplication(scaled, factor=13)
        assert other.objective == pytest.approx(solution.objective * factor, rel=1e-12)
        assert other.counters["duplicated_rows"] == solution.counters["duplicated_rows"]


def test_leaf_sizes_count_the_rows_of_the_data(rng):
    problem, X, *_ = labelled_problem(rng, penalty=0.0)
    constrained = Problem(problem.data, problem.losses, 0.0, 2, min_leaf=35)
    tree = solve_duplication(constrained, factor=2).tree
    assert np.bincount(tree.apply(X))[tree.is_leaf].min() >= 35
    impossible = Problem(problem.data, problem.losses, 0.0, 2, min_leaf=201)
    assert solve_duplication(impossible).status is Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(6))
def test_costs_of_tests_are_those_of_all_rows(seed):
    """Counted in persons, whatever their weights, and kept in proportion to the losses."""
    rng = np.random.default_rng([seed, 36])
    problem, *_ = labelled_problem(rng, weight=rng.integers(0, 4, 200).astype(float), penalty=0.005)
    costs = problem.losses.sum() / 200 * np.array([0.1, 0.0, 0.3, 0.02])
    persons = rng.integers(1, 3, 200).astype(float)
    for weights in (None, persons):
        priced = replace(problem, feature_costs=costs, weights=weights)
        best = solve_direct(priced)
        solution = solve_duplication(priced, factor=10)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(best.objective, rel=1e-12)
        rounded = solve_duplication(replace(priced, losses=problem.losses * rng.uniform(0.8, 1.2, (200, 1))), factor=5)
        assert rounded.lower_bound <= rounded.objective
        sampled = solve_sampling(priced, n_draws=3)
        assert sampled.lower_bound <= best.objective <= sampled.objective + 1e-9


def test_nothing_to_lose(rng):
    case = strategies.random_case(rng)
    for K in (1, 3):
        problem = case.but(losses=np.ones((len(case.X), K)), min_leaf=1, arms=None, min_leaf_per_arm=0).problem()
        assert solve_duplication(problem).tree.n_leaves == 1
