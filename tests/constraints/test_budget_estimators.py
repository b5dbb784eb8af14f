"""Budgets and shares as users ask for them: PolicyTree, DRPolicyTree, budget_path, spend on other people, pictures."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value, policy_value, tree_path
from policytree.constraints import Budget, Share
from policytree.estimators import within_limits
from policytree.evaluation import budget_path
from policytree.evaluation.policy_value.rule_names import POLICY
from policytree.exceptions import InputError, SearchWarning
from policytree.plotting.budget import BudgetPathDisplay
from policytree.problem.types import Status
from policytree.solvers.constrained.solve import Infeasible
from policytree.weighting.study_data import StudyData
from tests.support.simulations import assert_errors_are_as_said

matplotlib.use("Agg")
COSTS = {"drug": 100.0, "surgery": 300.0}


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 12, (n, 3)), columns=["age", "income", "risk"]).astype(float)
    rewards = pd.DataFrame({"none": np.zeros(n), "drug": X["age"] / 6 - 1, "surgery": X["income"] / 3 - 2.0})
    rewards[["drug", "surgery"]] += rng.normal(size=(n, 2))
    return X, rewards


def spend_of(chosen, costs=COSTS, weight=None):
    return float(np.average([costs.get(k, 0.0) for k in chosen], weights=weight))


def test_a_tree_keeps_to_its_budget_and_says_what_it_spends():
    X, rewards = people()
    free = PolicyTree(max_depth=2).fit(X, rewards)
    tree = PolicyTree(max_depth=2, constraints=[Budget(60.0)]).fit(X, rewards, budget_costs=COSTS)
    assert spend_of(free.predict(X)) > 60.0 >= tree.spend_
    assert spend_of(tree.predict(X)) == pytest.approx(tree.spend_)
    assert tree.status_ is Status.OPTIMAL and tree.optimality_gap_ == 0
    assert tree.objective_value_ < free.objective_value_
    assert tree.score(X, rewards) == pytest.approx(tree.objective_value_)
    assert tree.shares_ == pytest.approx(pd.Series(tree.predict(X)).value_counts(normalize=True).to_dict())
    assert tree.multipliers_["budget"] > 0


def test_a_budget_that_does_not_bind_costs_nothing():
    X, rewards = people()
    free = PolicyTree(max_depth=2).fit(X, rewards)
    tree = PolicyTree(max_depth=2, constraints=[Budget(300.0), Share("drug", most=1.0)]).fit(
        X, rewards, budget_costs=COSTS
    )
    assert tree.objective_value_ == pytest.approx(free.objective_value_)
    assert tree.multipliers_ == {"budget": 0.0, "max_share": {"drug": 0.0}}
    again = tree.set_params(constraints=[]).fit(X, rewards)
    assert not hasattr(again, "spend_") and again.objective_value_ == free.objective_value_


def test_shares_count_weights_and_labels_of_any_type():
    X, rewards = people()
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(X))
    named = rewards.set_axis([0, 1, 2], axis=1)
    tree = PolicyTree(constraints=[Share(2, most=0.1), Share(1, least=0.5)]).fit(X, named, sample_weight=weight)
    chosen = tree.predict(X)
    assert weight[chosen == 2].sum() <= 0.1 * weight.sum() and weight[chosen == 1].sum() >= 0.5 * weight.sum()
    assert sum(tree.shares_.values()) == pytest.approx(1.0) and tree.spend_ is None


def test_costs_of_persons_and_rows_of_weight_zero():
    X, rewards = people()
    rng = np.random.default_rng(2)
    costs = pd.DataFrame({"none": 0.0, "drug": rng.uniform(50, 150, len(X)), "surgery": 300.0})
    weight = rng.integers(0, 3, len(X)).astype(float)
    tree = PolicyTree(constraints=[Budget(40.0)]).fit(
        X, rewards, sample_weight=weight, budget_costs=costs[["surgery", "none", "drug"]]
    )
    spent = costs.to_numpy()[np.arange(len(X)), costs.columns.get_indexer(tree.predict(X))]
    assert np.average(spent, weights=weight) == pytest.approx(tree.spend_)
    assert tree.spend_ <= 40.0
    kept = weight > 0
    again = PolicyTree(constraints=[Budget(40.0)]).fit(
        X[kept], rewards[kept], sample_weight=weight[kept], budget_costs=costs.loc[kept]
    )
    assert again.objective_value_ == tree.objective_value_


def test_outcomes_that_are_better_when_small():
    X, rewards = people()
    largest = PolicyTree(constraints=[Budget(60.0)]).fit(X, rewards, budget_costs=COSTS)
    smallest = PolicyTree(constraints=[Budget(60.0)], direction="minimize").fit(X, -rewards, budget_costs=COSTS)
    assert smallest.objective_value_ == pytest.approx(-largest.objective_value_)
    assert smallest.multipliers_["budget"] == pytest.approx(largest.multipliers_["budget"])


@pytest.mark.parametrize(
    ("options", "fit", "words"),
    [
        ({"constraints": [Budget(10.0)]}, {}, "budget_costs"),
        ({}, {"budget_costs": COSTS}, "no Budget"),
        (
            {"constraints": [Budget(10.0)]},
            {"budget_costs": {"drug": np.nan}},
            "budget_costs: The cost of treatment drug is nan",
        ),
        (
            {"constraints": [Budget(10.0)]},
            {"budget_costs": np.zeros((4, 3))},
            r"budget_costs: costs has shape \(4, 3\)",
        ),
        ({"constraints": [Budget(10.0)]}, {"budget_costs": {"pill": 1.0}}, "pill"),
        ({"constraints": [Share("pill", most=0.3)]}, {}, "The largest share names treatment pill"),
        (
            {"constraints": [Share("none", most=0.3), Share("drug", most=0.3), Share("surgery", most=0.3)]},
            {},
            "leaves 0.1 of the people",
        ),
        ({"constraints": [Share("none", least=0.6), Share("drug", least=0.6)]}, {}, "asks for 1.2"),
        ({"constraints": [Share("drug", least=0.6), Share("drug", most=0.5)]}, {}, "Share of 'drug' twice; make one"),
        ({"constraints": [Share("drug", most=0.5)], "guesses": "all"}, {}, "exact search"),
        ({"constraints": [Share("drug", most=0.5)], "solver": "sampling"}, {}, "exact search"),
        ({"constraints": [Budget(-1.0)]}, {"budget_costs": COSTS}, "spends less than 0 a person, but the budget is -1"),
        (
            {"constraints": [Share(k, least=0.33) for k in ("none", "drug", "surgery")], "max_depth": 1},
            {},
            "all constraints at once",
        ),
        ({"constraints": [Share("none", least=0.1, most=0.5)], "max_depth": 0}, {}, "at once"),
        ({"min_samples_leaf": 400, "constraints": [Budget(10.0)]}, {"budget_costs": COSTS}, "more rows than there are"),
    ],
)  # fmt: skip
def test_refusals(options, fit, words):
    X, rewards = people()
    with pytest.raises(InputError, match=words):
        PolicyTree(**options).fit(X, rewards, **fit)


def test_the_least_budget_that_is_named_is_enough():
    X, rewards = people()
    costs = np.random.default_rng(0).uniform(5, 6, rewards.shape)
    with pytest.raises(InputError, match="spends less than") as refused:
        PolicyTree(constraints=[Budget(3.0)]).fit(X, rewards, budget_costs=costs)
    least = float(str(refused.value).split("less than ")[1].split()[0])
    assert PolicyTree(constraints=[Budget(least)]).fit(X, rewards, budget_costs=costs).spend_ <= least
    with pytest.raises(InputError):
        PolicyTree(constraints=[Budget(least - 0.001)]).fit(X, rewards, budget_costs=costs)


def test_deep_trees_warn_of_their_gap():
    X, rewards = people()
    with pytest.warns(SearchWarning, match="more than three levels"):
        tree = PolicyTree(max_depth=4, constraints=[Budget(60.0)]).fit(X, rewards, budget_costs=COSTS)
    assert tree.status_ is Status.HEURISTIC and tree.optimality_gap_ > 0 and tree.spend_ <= 60.0


def study(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 8, (n, 2)), columns=["age", "risk"]).astype(float)
    T = rng.choice(["no", "yes"], n)
    Y = (T == "yes") * (X["age"] - 2) + rng.normal(size=n)
    return Y.to_numpy(), T, X


def doubly_robust(**options):
    return DRPolicyTree(LinearRegression(), LogisticRegression(), random_state=0, **options)


def test_doubly_robust_trees_pass_budgets_on_also_where_they_are_refitted():
    Y, T, X = study()
    tree = doubly_robust(constraints=[Budget(20.0)]).fit(StudyData.of(Y, T, X=X, budget_costs={"yes": 100.0}))
    assert tree.spend_ <= 20.0
    assert 100.0 * np.mean(tree.predict(X) == "yes") == pytest.approx(tree.spend_)
    costs = pd.DataFrame({"no": 0.0, "yes": np.where(X["risk"] > 3, 50.0, 100.0)})
    table = cross_val_policy_value(
        doubly_robust(constraints=[Budget(20.0)]),
        StudyData.of(Y, T, X=X, budget_costs=costs),
        cv=2,
        n_repeats=1,
        random_state=0,
    )
    assert table.estimates[POLICY].value > 0
    shares = cross_val_policy_value(
        doubly_robust(constraints=[Share("yes", most=0.2)]), Y, T, X=X, cv=2, n_repeats=1, random_state=0
    )
    assert shares.estimates[POLICY].value > 0


def test_doubly_robust_trees_refuse_before_nuisances_are_fitted():
    Y, T, X = study()
    with pytest.raises(InputError, match="The largest share names treatment maybe"):
        DRPolicyTree("not even a learner", constraints=[Share("maybe", most=0.3)]).fit(Y, T, X=X)


def test_a_path_has_the_best_tree_of_each_of_its_budgets():
    X, rewards = people()
    path = budget_path(PolicyTree(max_depth=2), X, rewards, budget_costs=COSTS)
    frame = path.to_frame()
    assert path.proved and len(path) > 3 and (frame["rows"] == "training rows").all()
    assert (np.diff(path.spend) > 0).all() and (np.diff(path.values) > 0).all() and (np.diff(path.low) < 0).all()
    for estimator, spend, value in zip(path.estimators, path.spend, path.values, strict=True):
        best = PolicyTree(max_depth=2, constraints=[Budget(spend)]).fit(X, rewards, budget_costs=COSTS)
        assert [best.objective_value_, value] == pytest.approx([estimator.objective_value_] * 2)
        assert estimator.spend_ == spend
        assert spend_of(estimator.predict(X)) == pytest.approx(spend)
    between = (path.spend[1] + path.spend[2]) / 2
    tree = PolicyTree(max_depth=2, constraints=[Budget(between)]).fit(X, rewards, budget_costs=COSTS)
    assert path.values[1] - 1e-9 <= tree.objective_value_ <= path.bound_at(between) + 1e-9


def test_a_path_on_other_people():
    X, rewards = people()
    Z, theirs = people(seed=1)
    path = budget_path(PolicyTree(max_depth=1), X, rewards, budget_costs=COSTS)
    table = path.evaluate(Z, theirs, budget_costs=COSTS, groups=np.arange(len(Z)) // 2)
    chosen = path.estimators[-1].predict(Z)
    last = table.iloc[-1]
    assert last["spend", "value"] == pytest.approx(spend_of(chosen))
    assert last["value", "value"] == pytest.approx(path.estimators[-1].score(Z, theirs))
    assert (table["value", "lower"] <= table["value", "value"]).all() and (table["rows", ""] == "held out").all()
    net = path.evaluate(Z, theirs, budget_costs=COSTS, sample_treatment_costs={"surgery": 1.0})
    less = (chosen == "surgery").mean()
    assert net.iloc[-1]["value", "value"] == pytest.approx(last["value", "value"] - less)


def test_what_paths_refuse():
    X, rewards = people()
    with pytest.raises(InputError, match="takes a PolicyTree"):
        budget_path(doubly_robust(), X, rewards, budget_costs=COSTS)
    with pytest.raises(InputError, match="takes no Share"):
        budget_path(PolicyTree(constraints=[Share("drug", most=0.3)]), X, rewards, budget_costs=COSTS)
    with pytest.raises(InputError, match="takes no constraints"):
        tree_path(PolicyTree(constraints=[Share("drug", most=0.3)]), X, rewards)
    path = budget_path(PolicyTree(max_depth=1), X, rewards, budget_costs=COSTS)
    with pytest.raises(InputError, match="cheapest tree spends"):
        path.bound_at(-1.0)
    with pytest.raises(InputError, match="column for each treatment"):
        path.evaluate(X, rewards[["none", "drug"]], budget_costs=COSTS)


def test_the_picture_of_a_path():
    import matplotlib.pyplot as plt

    X, rewards = people()
    path = budget_path(PolicyTree(max_depth=1), X, rewards, budget_costs=COSTS)
    held_out = path.evaluate(*people(seed=1), budget_costs=COSTS)
    display = path.plot(held_out, unit="points", trees=[1, len(path)])
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == ["trees, training rows", "the same trees, held out"]
    assert any(path.estimators[-1].export_text() in t.get_text() for axes in display.figure_.axes for t in axes.texts)
    alone = path.plot(ax=plt.subplots()[1])
    assert "training rows" in alone.ax_.get_ylabel() and len(alone.figure_.axes) == 1
    with pytest.raises(InputError, match="corners 1 to"):
        path.plot(trees=[99])
    with pytest.raises(InputError, match="evaluate this path"):
        BudgetPathDisplay(path, held_out.iloc[1:])
    plt.close("all")


def test_spend_and_shares_of_policies():
    chosen = np.array(["drug", "none", "surgery", "drug"])
    spend = policy_value(chosen, COSTS)
    assert spend.value == 125.0 and spend.standard_error == pytest.approx(np.std([100, 0, 300, 100], ddof=1) / 2)
    assert policy_value(np.array([0, 1, 1]), {1: 30.0}).value == 20.0
    frame = pd.DataFrame({"none": 0.0, "drug": [1.0, 2.0, 3.0, 4.0], "surgery": 9.0})
    assert policy_value(chosen, frame, sample_weight=[1, 1, 0, 2]).value == pytest.approx((1 + 0 + 2 * 4) / 4)
    assert policy_value(["drug", "drug"], {"drug": 2.0}).value == 2.0
    assert policy_value(chosen, COSTS, baseline="surgery").value == 125.0 - 300.0
    assert policy_value("surgery", COSTS, baseline=chosen).value == 300.0 - 125.0
    shares = [policy_value(chosen, {arm: 1.0}).value for arm in ("none", "drug", "surgery", "other")]
    assert shares == [0.25, 0.5, 0.25, 0.0]
    with pytest.raises(InputError, match="at least two"):
        policy_value(chosen, {"drug": 1.0}, groups=[1, 1, 1, 1])
    with pytest.raises(InputError, match="one a row, where rewards is a mapping; got 'drug'"):
        policy_value("drug", {"drug": 1.0})


def test_the_error_of_a_spend_is_as_said_with_clusters():
    """A share is a spend at a price of one."""
    rng, found = np.random.default_rng(0), []
    groups = np.repeat(np.arange(40), 5)
    for _ in range(300):
        common = np.repeat(rng.normal(size=40), 5)
        chosen = np.where(common + rng.normal(size=200) > 0, "yes", "no")
        spend = policy_value(chosen, {"yes": 10.0}, groups=groups)
        found.append((spend.value, spend.standard_error))
    assert_errors_are_as_said(*np.transpose(found), 5.0)


def test_parameters_survive_cloning():
    tree = clone(PolicyTree(constraints=[Budget(1.0), Share("a", most=0.3), Share("b", least=0.1)]))
    assert tree.constraints == [Budget(1.0), Share("a", most=0.3), Share("b", least=0.1)]


@pytest.mark.parametrize("price", [1e9, 1e15, 1e30])
def test_prices_that_forbid_a_column_leave_all_digits_to_the_rewards(rng, price):
    X, rewards = rng.integers(0, 5, (30, 3)).astype(float), rng.normal(size=(30, 2))
    shares = {"constraints": [Share(1, least=0.1, most=0.3)]}
    dear = PolicyTree(feature_costs={2: price}, **shares).fit(X, rewards)
    free = PolicyTree(split_features=[0, 1], **shares).fit(X, rewards)
    assert dear.status_ is Status.OPTIMAL
    assert dear.objective_value_ == pytest.approx(free.objective_value_, rel=1e-13)
    assert dear.solution_.resolution < 1e-9
    forced = PolicyTree(max_depth=1, feature_costs={0: price}, split_features=[0], **shares)
    with pytest.raises(InputError, match="cannot be told apart"):
        forced.fit(X, rewards)


@pytest.mark.parametrize(
    "limit",
    [
        Share("drug", most=1.0),
        Share("drug", least=1.0),
        Budget(100.0),
        Share("surgery", most=0.0),
    ],
)
@pytest.mark.parametrize("equal", [False, True])
def test_limits_that_a_rule_meets_to_the_last_digit_are_met_with_real_weights(rng, limit, equal):
    X, rewards = people(9)
    rewards["drug"] += 100.0  # for everybody, if that is allowed
    weight = np.full(9, 1 / 3) if equal else rng.uniform(size=9)
    costs = {"budget_costs": COSTS} if limit.needs else {}
    fitted = PolicyTree(max_depth=1, constraints=[limit]).fit(X, rewards, sample_weight=weight, **costs)
    assert (fitted.predict(X) == "drug").all()
    assert fitted.status_ is Status.OPTIMAL


def test_half_of_equal_real_weights_is_half(rng):
    X, rewards = pd.DataFrame({"age": np.arange(10.0)}), pd.DataFrame({"no": np.zeros(10), "yes": np.ones(10)})
    fitted = PolicyTree(max_depth=1, constraints=[Share("yes", most=0.5)]).fit(
        X, rewards, sample_weight=np.full(10, 1 / 7)
    )
    assert fitted.objective_value_ == pytest.approx(0.5)


@pytest.mark.parametrize(("labels", "named"), [([0, 1], 1.0), ([False, True], 1), (["0", "1"], "1")])
def test_shares_hold_however_a_label_is_written(rng, labels, named):
    X, rewards = pd.DataFrame({"age": np.arange(10.0)}), pd.DataFrame(np.eye(2)[[1] * 10], columns=labels)
    fitted = PolicyTree(max_depth=1, constraints=[Share(named, most=0.5)]).fit(X, rewards)
    assert fitted.shares_[labels[1]] == 0.5


@pytest.mark.parametrize("depth", [1, 4])
def test_the_least_spend_is_named_also_where_questions_have_prices(depth):
    X, rewards = people(20)
    tree = PolicyTree(max_depth=depth, constraints=[Budget(1.9)], feature_costs={"age": 0.1})
    with pytest.raises(InputError, match=r"spends less than 2 a person, but the budget is 1\.9; raise it"):
        tree.fit(X, rewards, budget_costs={"none": 2.0, "drug": 3.0, "surgery": 4.0})


def test_costs_that_cannot_be_added_up_are_refused():
    X, rewards = people(20)
    for budget, costs, words in [(1.0, {"drug": 1.7e308}, "larger unit"), (10**400, COSTS, "finite number")]:
        with pytest.raises(InputError, match=words):
            PolicyTree(constraints=[Budget(budget)]).fit(X, rewards, budget_costs=costs)


def test_a_path_without_proof_has_a_bound_that_holds():
    X, rewards = people()
    proved = budget_path(PolicyTree(max_depth=2), X, rewards, budget_costs=COSTS)
    with pytest.warns(SearchWarning, match="without a proof"):
        stopped = budget_path(PolicyTree(max_depth=2, time_limit=0), X, rewards, budget_costs=COSTS)
    for budget in proved.spend:
        assert stopped.bound_at(max(budget, stopped.spend[0])) >= proved.bound_at(budget)


def test_an_interrupt_before_any_tree_keeps_to_the_limits_is_one_sentence(monkeypatch):
    def interrupted(*args, **options):
        raise Infeasible(None, None, Status.INTERRUPTED)

    X, rewards = people(20)
    monkeypatch.setattr(within_limits, "solve_within", interrupted)
    with pytest.raises(InputError, match="found before the interrupt; wait longer, or loosen a limit"):
        PolicyTree(constraints=[Share("none", most=0.1)]).fit(X, rewards)
