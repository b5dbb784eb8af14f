"""Near-ties against brute force: counts, lists, decisions, columns, exclusions; and the published example."""

import _thread
import json
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from policytree import CostSensitiveTreeClassifier, DRPolicyTree, OptimalTreeClassifier, PolicyTree
from policytree.evaluation import near_ties
from policytree.evaluation.stability.rashomon_decisions import TreeList, decide
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.kernels.enumeration.tied_trees import CARRIED, COUNTED, add
from policytree.solvers.rashomon import enumerate as solver
from policytree.solvers.rashomon.enumerate import enumerate_rashomon
from tests.support.near_tie_oracles import Trees
from tests.support.strategies import cases, random_case

DATA = Path(os.environ.get("POLICYTREE_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
SLACKS = [Fraction(0), Fraction(1, 8), Fraction(1), Fraction(5), Fraction(1000)]


def tied(case, slack, most=50, **limits):
    return enumerate_rashomon(case.problem(), lambda best, leaf: slack, most, SearchLimits(**limits))


def check_against_counts(case, slack, most):
    """Number of trees, and the values of the best of them, against the number of trees of every value."""
    trees = Trees(case)
    every = Counter()
    for (value, _, _), count in trees.count(trees.rows, case.max_depth).items():
        every[value] += count
    if not every:
        with pytest.raises(InputError, match="more rows than there are"):
            tied(case, slack, most)
        return
    limit = min(every) + trees.value(slack)
    found = tied(case, slack, most)
    assert found.n_trees == sum(count for value, count in every.items() if value <= limit), case
    values = [value for value in sorted(every) if value <= limit for _ in range(min(every[value], most))][:most]
    assert found.best == Fraction(values[0], trees.denominator)
    assert found.objectives.tolist() == pytest.approx([value / trees.denominator for value in values], rel=1e-12)
    assert len({tuple(tree) for tree in found.trees.tolist()}) == len(values)


# --- trees ---


@pytest.mark.parametrize("seed", range(60))
def test_counts_of_random_problems(seed):
    """All constraints together: ties, weights, missing values, categories, prices, minimum counts, limits of leaves."""
    rng = np.random.default_rng(seed)
    case = random_case(rng, max_rows=7)
    case = case.but(max_depth=int(rng.integers(0, 4)))
    check_against_counts(case, SLACKS[rng.integers(len(SLACKS))], int(rng.choice([1, 3, 50, 3_000])))


@settings(max_examples=40)
@given(cases(max_rows=6, max_features=2, max_actions=3))
def test_counts_of_drawn_problems(case):
    check_against_counts(case.but(max_depth=min(case.max_depth or 0, 2)), Fraction(1), 20)


@pytest.mark.parametrize("seed", range(200, 230))
def test_listed_trees_are_all_there_are(seed):
    """Each tree's actions, questions, leaves and value, against writing down every tree."""
    rng = np.random.default_rng(seed)
    case = random_case(rng, max_rows=6, max_features=2).but(max_depth=2, min_leaf=1, min_leaf_per_arm=0)
    trees, problem = Trees(case), case.problem()
    found = enumerate_rashomon(problem, lambda best, leaf: Fraction(2), 100_000)
    limit = found.best + 2
    K = case.losses.shape[1]
    wanted = Counter()
    for value, leaves, gives, asks in trees.write(trees.rows, 2):
        if Fraction(value, trees.denominator) <= limit:
            wanted[value, leaves, tuple(gives[i] for i in sorted(gives)), asks] += 1
    listed = TreeList(problem, found, tuple(range(K)))
    decided = decide(problem, found, np.ones(len(case.X)))
    got = Counter()
    for i, tree in enumerate(listed):
        policy = tree.action[tree.apply(case.X)]
        assert (policy == decided.actions(decided.of_tree[i])[decided.group]).all()
        asks = frozenset(tree.used_features.tolist())
        assert asks == frozenset(np.flatnonzero(listed.asks[i]).tolist())
        assert tree.n_leaves == listed.n_leaves[i]
        got[round(found.objectives[i] * trees.denominator), tree.n_leaves, tuple(policy.tolist()), asks] += 1
    assert got == wanted
    assert len(decided) == len({key[2] for key in wanted})


def test_counts_beyond_64_bits_are_carried():
    state = np.array([(1 << 62) - 3, 5, 0, 0])
    add.py_func(state, 10)
    assert (state[COUNTED], state[CARRIED]) == (7, 6)
    pairs = solver.Values(np.zeros(1, np.int64), np.ones(1, np.int32), np.array([1 << 40]))
    assert pairs.pairs(pairs, 0) == 1 << 80


def test_all_values_of_a_side_are_counted_where_not_all_are_listed(rng):
    """Depth three with few listed trees, little room at first, and as many trees as when all are listed."""
    X = rng.integers(0, 4, (60, 3)).astype(float)
    problem = Problem(bin_matrix(X), rng.integers(0, 9, (60, 3)).astype(float), 1.0, 3)
    every = enumerate_rashomon(problem, lambda best, leaf: best / 10, 500_000)
    little_room = SearchLimits(gates=SizeGates(first_tied_values=4))
    few = enumerate_rashomon(problem, lambda best, leaf: best / 10, 7, little_room)
    assert every.n_trees == len(every.trees) == few.n_trees > 1_000
    assert few.objectives.tolist() == every.objectives[:7].tolist()


@pytest.mark.parametrize("depth, count", [(2, 33), (3, 727)])
def test_compas(depth, count):
    """All 134 thresholds, price .01, epsilon .02: the least 2,533.21 errors and prices."""
    path = DATA / "classification" / "compas.csv.gz"
    if not path.exists():
        pytest.skip("needs classification/compas.csv.gz: set POLICYTREE_DATA")
    frame = pd.read_csv(path)
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    ties = near_ties(OptimalTreeClassifier(regularization=0.01), X, y, max_depth=depth, epsilon=0.02)
    assert (ties.n_trees, ties.complete, ties.truncated) == (count, True, False)
    assert ties.objective * len(y) == pytest.approx(2_533.21, abs=1e-9)
    assert ties.simplest.n_leaves == 3


# --- near what ---


@pytest.fixture
def labels(rng):
    X = pd.DataFrame(
        {"age": rng.integers(20, 40, 200), "sex": rng.choice(["f", "m"], 200), "score": rng.normal(size=200)}
    )
    y = np.where((X["age"] > 30) ^ (rng.random(200) < 0.2), "yes", "no")
    return X, y


@pytest.fixture
def trial(rng):
    X = pd.DataFrame(rng.normal(size=(80, 3)).round(1), columns=["a", "b", "c"])
    rewards = pd.DataFrame(rng.normal(size=(80, 3)), columns=["x", "y", "z"])
    rewards["y"] += np.where(X["a"] > 0, 1.0, -1.0)
    return X, rewards


def test_epsilon_is_a_share_of_the_least_objective(labels):
    X, y = labels
    tree = OptimalTreeClassifier(regularization=0.01, max_depth=2).fit(X, y)
    ties = near_ties(tree, X, y, epsilon=0.05)
    assert ties.objective == pytest.approx(tree.objective_value_)
    assert ties.limit == pytest.approx(1.05 * tree.objective_value_)
    same = near_ties(tree, X, y, slack=0.05 * tree.objective_value_)
    assert same.n_trees == ties.n_trees
    assert near_ties(tree, X, y).epsilon == 0.02


def test_epsilon_of_rewards_is_a_share_of_the_gain_over_one_treatment(trial, rng):
    """The zero of rewards means nothing: constants of rows or signs change no near-tie."""
    X, rewards = trial
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    ties = near_ties(tree, X, rewards, epsilon=0.1)
    gain = tree.objective_value_ - rewards.mean().max()
    assert ties.limit == pytest.approx(tree.objective_value_ - 0.1 * gain)
    assert (np.diff(ties.objectives) <= 0).all() and ties.objectives[-1] >= ties.limit - 1e-12
    shifted = near_ties(PolicyTree(max_depth=2), X, rewards.add(rng.normal(size=80).round(3), axis=0), epsilon=0.1)
    negated = near_ties(PolicyTree(max_depth=2, direction="minimize"), X, -rewards, epsilon=0.1)
    assert ties.n_trees == shifted.n_trees == negated.n_trees > 1
    assert negated.limit == pytest.approx(-ties.limit)


def test_decimals_are_meant_as_they_are_printed():
    """Ten rows, one error more is a tenth: 0.1 + 0.1 is within a slack of 0.2, and of an epsilon of 1."""
    X, y = np.arange(10.0)[:, None], np.array([0, 0, 0, 1, 0, 1, 1, 1, 0, 1])
    tree = OptimalTreeClassifier(regularization=0.0, max_depth=1)
    errors = [int(((X[:, 0] <= cut) == y).sum()) for cut in range(9)]
    errors += [10 - wrong for wrong in errors] + [int(y.sum()), int((1 - y).sum())]
    for more in (0, 1, 2, 3):
        ties = near_ties(tree, X, y, slack=more / 10)
        assert ties.n_trees == sum(wrong <= min(errors) + more for wrong in errors)
    assert near_ties(tree, X, y, epsilon=1.0).n_trees == sum(wrong <= 2 * min(errors) for wrong in errors)


def test_weights_and_prices_of_columns(labels, rng):
    """A row of weight two is two rows; columns that cost something are charged for who reaches the question."""
    X, y = labels
    weight = rng.integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    tree = OptimalTreeClassifier(regularization=0.01, max_depth=2, feature_costs={"score": 0.002})
    one = near_ties(tree, X, y, epsilon=0.1, sample_weight=weight)
    other = near_ties(tree, X.iloc[twice], y[twice], epsilon=0.1)
    assert (one.n_trees, one.n_decisions) == (other.n_trees, other.n_decisions)
    assert one.settled_share == pytest.approx(other.settled_share)
    assert len(one.policy()) == np.count_nonzero(weight)


def test_costs_and_doubly_robust_rewards(labels, rng):
    X, y = labels
    costs = {("yes", "no"): 3.0, ("no", "yes"): 1.0}
    ties = near_ties(CostSensitiveTreeClassifier(costs, max_depth=2), X, y)
    assert ties.n_trees >= 1 and ties.trees.actions == ("no", "yes")
    negative = pd.DataFrame(rng.normal(size=(200, 2)), columns=["p", "q"])
    with pytest.raises(InputError, match="some costs are negative; pass slack"):
        near_ties(CostSensitiveTreeClassifier(max_depth=1), X, negative)
    assert near_ties(CostSensitiveTreeClassifier(max_depth=1), X, negative, slack=0.01).n_trees >= 1
    T = rng.choice(["drug", "none"], 200)
    model = DRPolicyTree(max_depth=1, random_state=0).fit(rng.normal(size=200), T, X=X)
    found = near_ties(model, X, slack=0.05)
    assert found.objective == pytest.approx(model.objective_value_)
    assert set(found.policy()) <= {"drug", "none"}


# --- what they have in common ---


def test_decisions_people_and_columns_by_hand(labels):
    X, y = labels
    ties = near_ties(OptimalTreeClassifier(regularization=0.01, max_depth=2), X, y, epsilon=0.15)
    encoded = OptimalTreeClassifier(regularization=0.01, max_depth=2).fit(X, y).encoder_.encode(X)
    policies = np.array([np.array(tree.actions)[tree.action[tree.apply(encoded)]] for tree in ties.trees])
    different = {tuple(policy) for policy in policies}
    assert 1 < len(different) == ties.n_decisions < ties.n_trees == len(ties.trees)
    table = ties.decisions()
    assert table["n_trees"].sum() == ties.n_trees
    for number, row in table.iterrows():
        same = np.flatnonzero((policies == ties.policy(number)).all(axis=1))
        assert len(same) == row["n_trees"] and row["tree"] in same
        assert row["objective"] == ties.objectives[same[0]]
        assert row["differs"] == pytest.approx(np.mean(policies[same[0]] != policies[0]))
        assert row["n_leaves"] == min(ties.trees[i].n_leaves for i in same)
    functions = np.array(sorted(different))
    assert (ties.settled() == (functions == functions[0]).all(axis=0)).all()
    assert ties.settled_share == pytest.approx((functions == functions[0]).all(axis=0).mean())
    pairs = [(a == b).mean() for i, a in enumerate(functions) for b in functions[:i]]
    assert ties.agreement == pytest.approx(np.mean(pairs))
    assert ties.arm_shares()["yes"].to_numpy() == pytest.approx((functions == "yes").mean(axis=0))
    asked = np.array([[name in {X.columns[j] for j in tree.used_features} for name in X] for tree in ties.trees])
    shares = ties.variables().loc[X.columns]
    assert shares["trees"].to_numpy() == pytest.approx(asked.mean(axis=0))
    assert ties.avoiding("score").tolist() == np.flatnonzero(~asked[:, 2]).tolist()
    need = [np.mean([asked[(policies == f).all(axis=1), j].all() for f in functions]) for j in range(3)]
    assert shares["decisions"].to_numpy() == pytest.approx(need)


def test_simplest_is_that_of_all_near_ties(labels):
    """Also where the list is too short to hold it."""
    X, y = labels
    tree = OptimalTreeClassifier(regularization=0.002, max_depth=3)
    long, short = (near_ties(tree, X, y, epsilon=0.05, most=most) for most in (20_000, 3))
    assert long.n_trees == short.n_trees == len(long.trees) > len(short.trees) == 3
    assert short.truncated and not long.truncated
    sizes = [(n, k) for n, k in zip(long.trees.n_leaves, long.trees.asks.sum(axis=1), strict=True)]
    for ties in (long, short):
        assert (ties.simplest.n_leaves, len(ties.simplest.used_features)) == min(sizes)
    assert "about the best 3 of them" in str(short)


def test_doing_without_columns(labels):
    """Its cost is that of an exact search without them, and near-ties without them are those listed."""
    X, y = labels
    tree = OptimalTreeClassifier(regularization=0.01, max_depth=2).fit(X, y)
    ties = near_ties(tree, X, y, epsilon=0.1, without=["sex", 0, ["age", "score"]])
    table = ties.without()
    assert table.index.tolist() == ["sex", "age", "age, score"]
    for names in (["sex"], ["age"], ["age", "score"]):
        kept = [name for name in X if name not in names]
        best = OptimalTreeClassifier(regularization=0.01, max_depth=2).fit(X[kept], y).objective_value_
        row = table.loc[", ".join(names)]
        assert row["objective"] == pytest.approx(best)
        assert row["cost"] == pytest.approx(best - tree.objective_value_)
        assert row["near_tie"] == (best <= ties.limit)
        assert row["n_trees"] == len(ties.avoiding(names))
    assert "Doing without sex costs nothing" in str(ties)
    assert "no near-tie does without" in str(ties)


def test_as_plain_values(labels):
    ties = near_ties(OptimalTreeClassifier(regularization=0.01, max_depth=2), *labels, without="sex")
    plain = json.loads(json.dumps(ties.to_dict()))
    assert plain["n_trees"] == ties.n_trees
    assert len(plain["decisions"]) == ties.n_decisions
    assert plain["without"][0]["columns"] == ["sex"]


def test_rows_that_are_all_alike():
    ties = near_ties(
        OptimalTreeClassifier(regularization=0.01, max_depth=3), np.ones((5, 2)), [0, 0, 1, 0, 0], slack=1.0
    )
    assert (ties.n_trees, ties.n_decisions, ties.agreement, ties.settled_share) == (2, 2, 0.0, 0.0)
    assert ties.simplest.n_leaves == 1
    one = near_ties(OptimalTreeClassifier(regularization=0.01, max_depth=3), np.arange(4.0)[:, None], [1, 1, 1, 1])
    assert (one.n_trees, one.n_decisions, one.agreement, one.settled_share) == (1, 1, 1.0, 1.0)
    assert "There is 1 tree of depth at most 3" in str(one)


# --- limits and refusals ---


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_keeps_what_was_found(rng):
    X = rng.integers(0, 40, (2_000, 6)).astype(float)
    problem = Problem(bin_matrix(X), rng.normal(size=(2_000, 2)), 0.0, 3)
    reports = []

    def progress(done, total):
        if not reports:
            _thread.interrupt_main()
        reports.append((done, total))

    found = enumerate_rashomon(problem, lambda best, leaf: Fraction(20), 10, progress=progress)
    assert found.status is Status.INTERRUPTED and not found.complete
    assert found.n_trees >= len(found.trees) == 10
    assert reports[-1][0] < reports[-1][1]


def test_a_time_limit_leaves_a_lower_bound(rng):
    X = rng.integers(0, 60, (2_000, 8)).astype(float)
    y = np.where((X[:, 0] > 30) ^ (rng.random(2_000) < 0.3), 1, 0)
    with pytest.warns(SearchWarning, match="at least .* near-ties"):
        ties = near_ties(
            OptimalTreeClassifier(regularization=0.001), X, y, max_depth=3, epsilon=0.3, most=100, time_limit=3.0
        )
    assert len(ties.trees) > 0 and ties.objectives[0] == pytest.approx(ties.objective)
    assert not ties.complete and ties.truncated and ties.n_trees > 0
    assert "at least" in str(ties)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epsilon": -0.1}, "epsilon must be a finite number >= 0"),
        ({"epsilon": "a"}, "epsilon must be a finite number >= 0"),
        ({"slack": np.inf}, "slack must be a finite number >= 0"),
        ({"slack": 1e308}, r"slack must be a finite number >= 0 \(at most 1e\+100\)"),
        ({"slack": 0.1, "epsilon": 0.1}, "give one of them"),
        ({"most": 0}, "most must be"),
        ({"most": 10**30}, "most must be at most 10,000,000"),
        ({"max_depth": 4}, "depth 0 to 3, and max_depth is 4"),
        ({"max_depth": 1.5}, "max_depth must be an integer"),
        ({"without": "weight"}, "without names the column 'weight'"),
        ({"without": [["age", "weight"]]}, "without names the column 'weight'"),
        ({"time_limit": -1}, "time_limit must be"),
        ({"memory_limit": 1_000}, "memory_limit is"),
    ],
)
def test_refusals(labels, options, message):
    with pytest.raises(InputError, match=message):
        near_ties(OptimalTreeClassifier(regularization=0.01, max_depth=2), *labels, **options)


def test_estimators_that_cannot_be_asked(labels, trial):
    X, y = labels
    with pytest.raises(InputError, match="max_depth is None; pass max_depth=3"):
        near_ties(OptimalTreeClassifier(), X, y)
    with pytest.raises(InputError, match="has to be fitted first"):
        near_ties(DRPolicyTree(), X)
    with pytest.raises(InputError, match="y is lacking"):
        near_ties(OptimalTreeClassifier(max_depth=1), X)
    with pytest.raises(InputError, match="got str"):
        near_ties("tree", X, y)
    fitted = PolicyTree(max_depth=1).fit(*trial)
    with pytest.raises(InputError, match="pass the rows and the arguments of its fit"):
        near_ties(fitted, *trial, sample_treatment_costs={"x": 1.0, "y": 2.0, "z": 0.0})
    ties = near_ties(fitted, *trial)
    with pytest.raises(InputError, match="names 'd', which X does not have"):
        ties.avoiding(["a", "d"])


@pytest.mark.parametrize("price", [1e9, 1e15, 1e30])
def test_prices_that_forbid_a_column_leave_all_digits_to_the_losses(rng, price):
    X, rewards = rng.integers(0, 5, (30, 3)).astype(float), rng.normal(size=(30, 2))
    dear = near_ties(PolicyTree(max_depth=2, feature_costs={2: price}), X, rewards, slack=0.05)
    free = near_ties(PolicyTree(max_depth=2, split_features=[0, 1]), X, rewards, slack=0.05)
    assert (dear.n_trees, dear.objective) == (free.n_trees, pytest.approx(free.objective, rel=1e-13))


def test_prices_that_drown_the_losses_are_refused(rng):
    X, rewards = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    with pytest.raises(InputError, match=r"cannot be told apart; lower them, or forbid by max_leaf_nodes"):
        near_ties(PolicyTree(max_depth=1, regularization=1e16), X, rewards, slack=0.05)


def test_leaves_of_a_study_count_the_treatments_of_the_fit(rng):
    """A DRPolicyTree asks for rows of every treatment by default; its near-ties need not be told who got what."""
    X = pd.DataFrame({"age": rng.integers(20, 80, 200)})
    T = rng.choice(["drug", "none"], 200)
    Y = (T == "drug") * np.where(X["age"] > 50, 1.0, -1.0) + rng.normal(size=200)
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    ties = near_ties(model, X, slack=0.1)
    assert str(ties) == str(near_ties(model, X, T=T, slack=0.1)) and ties.n_trees >= 1
