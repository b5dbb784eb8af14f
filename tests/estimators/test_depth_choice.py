"""The depth that data choose: what it is compared with, by whose rows, and who takes it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value, tree_path
from policytree.constraints import Budget, Share
from policytree.encoded import encode
from policytree.estimators import depth_choice
from policytree.evaluation import budget_path, near_ties
from policytree.exceptions import InputError
from policytree.problem.types import Status
from tests.support.streamed import to_learn

LINEAR = LinearRegression()


def exclusive_or(n: int, seed: int, gain: float = 1.0):
    """Rewards of two arms: the second gains where two covariates have one sign, and loses elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    effect = gain * np.where((X[:, 0] > 0) == (X[:, 1] > 0), 0.5, -0.5)
    return X, np.column_stack([np.zeros(n), effect]) + rng.normal(size=(n, 2)), rng.integers(0, 2, n)


def test_a_rule_of_two_questions_is_found_to_be_one():
    X, rewards, _ = exclusive_or(600, 1)
    tree = PolicyTree(max_depth="auto", random_state=0).fit(X, rewards)
    assert tree.max_depth_ == tree.get_depth() == 2
    table = tree.depth_choice_.table
    assert table["max_depth"].tolist() == [0, 1, 2, 3] and table["chosen"].tolist() == [False, False, True, False]
    assert table["gain"].iloc[2] > 3 * table["standard_error"].iloc[2]
    assert tree.get_params()["max_depth"] == "auto"
    again = PolicyTree(max_depth=2).fit(X, rewards)
    assert again.objective_value_ == tree.objective_value_ and again.max_depth_ == 2 and again.depth_choice_ is None


def test_the_best_treatment_for_all_is_judged_on_all_rows():
    """It is named by the rows that judge it: a tree has to be better by more than that flatters it."""
    X, rewards, _ = exclusive_or(300, 2)
    rewards[:, 1] += 0.3
    first = PolicyTree(max_depth="auto", random_state=0).fit(X, rewards).depth_choice_.table.iloc[0]
    assert first["value"] == pytest.approx(rewards.mean(axis=0).max()) and first["gain"] == 0


def test_a_tree_must_gain_more_than_its_standard_error_over_one_treatment_for_all():
    """Gain and error are those of the paired differences on held-out rows; with less than that, depth 0 is taken."""
    chosen = []
    for seed in range(8):
        X, rewards, _ = exclusive_or(120, 40 + seed, gain=0.9)
        tree = PolicyTree("auto", 0.02, min_samples_leaf=8, random_state=seed).fit(X, rewards)
        rows, folds = depth_choice.RewardRows(X, -rewards, np.ones(120)), np.random.RandomState(seed)
        plans = [depth_choice._folds(rows, folds) for _ in range(depth_choice.REPEATS)]
        scores, *_ = depth_choice.held_out_scores(tree, rows, [(depth, None) for depth in (1, 2, 3)], 0.02, plans)
        more = scores - rewards[:, rewards.mean(axis=0).argmax()]
        gains, errors = more.mean(axis=1), more.std(axis=1, ddof=1) / np.sqrt(120)
        table = tree.depth_choice_.table
        np.testing.assert_allclose(table["gain"], [0.0, *gains], atol=1e-12)
        np.testing.assert_allclose(table["standard_error"], [0.0, *errors], atol=1e-12)
        best = gains.argmax()
        chosen.append(tree.max_depth_ > 0)
        assert chosen[-1] == (gains[best] > errors[best]), "one standard error, no less and no more"
    assert set(chosen) == {False, True}, "draws on both sides"


@pytest.mark.slow
def test_without_effects_hardly_a_tree_is_chosen():
    """``benchmarks/depth_choice.py`` counts by the hundred; 25 have more than 8 once in a thousand times."""
    chosen = []
    for seed in range(25):
        X, rewards, _ = exclusive_or(300, 100 + seed, gain=0.0)
        leaves = {"min_samples_leaf": 16, "regularization": "auto"}
        chosen.append(PolicyTree(max_depth="auto", random_state=seed, **leaves).fit(X, rewards).max_depth_ > 0)
    assert np.sum(chosen) <= binom.ppf(0.999, 25, 0.1)


def test_less_is_better_too():
    X, rewards, _ = exclusive_or(400, 3)
    more = PolicyTree(max_depth="auto", random_state=0).fit(X, rewards)
    less = PolicyTree(max_depth="auto", random_state=0, direction="minimize").fit(X, -rewards)
    np.testing.assert_array_equal(more.predict(X), less.predict(X))
    np.testing.assert_allclose(more.depth_choice_.table["value"], -less.depth_choice_.table["value"])
    np.testing.assert_allclose(more.depth_choice_.table["gain"], less.depth_choice_.table["gain"])


def test_held_out_scores_are_those_of_trees_of_the_other_folds():
    """Against plain fits of the same folds."""
    X, rewards, _ = exclusive_or(120, 4)
    tree = PolicyTree(max_depth="auto", random_state=5)
    tree._prepare(X, rewards)
    rows = depth_choice.RewardRows(X, -rewards, np.ones(120))
    plans = [depth_choice._folds(rows, np.random.RandomState(k)) for k in range(2)]
    scores, n_leaves, asked = depth_choice.held_out_scores(tree, rows, [(1, None), (2, None)], 0.01, plans)
    wanted, leaves, times = np.zeros((2, 120)), np.zeros(2), np.zeros((2, 4))
    for plan in plans:
        for train, test in plan.splits():
            for i in (0, 1):
                plain = PolicyTree(max_depth=i + 1, regularization=0.01, max_bins=32).fit(X[train], rewards[train])
                wanted[i, test] += rewards[test, plain.predict(X[test])] / 2
                leaves[i] += plain.get_n_leaves() / 10
                times[i] += np.isin(np.arange(4), plain.tree_.feature[~plain.tree_.is_leaf])
    np.testing.assert_allclose(scores, wanted)
    np.testing.assert_allclose(n_leaves, leaves)
    np.testing.assert_array_equal(asked, times / 10)


@pytest.mark.parametrize("method", ["regression", "ipw"])
def test_trees_of_other_rewards_are_judged_by_doubly_robust_ones(method):
    """Predictions of outcomes carry no noise: judged by themselves, whatever trees they bring gains its error."""
    X, rewards, T = exclusive_or(240, 6)
    Y, leaves = rewards[np.arange(240), T], {"min_samples_leaf": 1, "min_samples_per_treatment": 0}
    model = DRPolicyTree(LINEAR, method=method, regularization=0.01, cv=2, random_state=0, **leaves)
    model.set_params(max_depth="auto", direction="maximize").fit(Y, T, X=X, propensity=0.5)
    learnt, judged = model.tree_rewards_.to_numpy(), model.rewards_.to_numpy()
    for_all = judged[:, learnt.mean(axis=0).argmax()]
    rng, scores = np.random.RandomState(0), np.zeros((3, 240))
    for _ in range(depth_choice.REPEATS):
        plan = depth_choice._folds(depth_choice.RewardRows(X, -learnt, np.ones(240)), rng)
        for train, test in plan.splits():
            for depth in (1, 2, 3):
                tree = PolicyTree(max_depth=depth, regularization=0.01, max_bins=32).fit(X[train], learnt[train])
                scores[depth - 1, test] += judged[test, tree.predict(X[test])] / depth_choice.REPEATS
    table, more = model.depth_choice_.table, scores - for_all
    np.testing.assert_allclose(table["value"], [for_all.mean(), *scores.mean(axis=1)])
    np.testing.assert_allclose(table["gain"], [0.0, *more.mean(axis=1)], atol=1e-12)
    np.testing.assert_allclose(table["standard_error"][1:], more.std(axis=1, ddof=1) / np.sqrt(240))


def three_leaves(n: int, seed: int):
    """Rewards of two arms: the second gains below a quarter of one covariate and above half of another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    effect = np.where(X[:, 0] < -0.7, 1.0, np.where(X[:, 1] > 0, 1.0, -1.0))
    return X, np.column_stack([np.zeros(n), effect]) + rng.normal(size=(n, 2))


def test_the_fewest_leaves_within_the_error_of_the_best_are_taken():
    X, rewards = three_leaves(600, 3)
    tree = PolicyTree(max_depth="auto", max_leaf_nodes="auto", random_state=0).fit(X, rewards)
    assert (tree.max_depth_, tree.max_leaf_nodes_, tree.get_n_leaves()) == (2, 3, 3)
    table = tree.depth_choice_.leaves
    assert table["max_leaf_nodes"].tolist() == [2, 3, 4]
    within = table["behind"] <= 0.25 * table["standard_error"]
    assert table["chosen"].tolist() == [False, True, False] and within.tolist()[:2] == [False, True]
    text = str(tree.depth_choice_)
    assert text.startswith("depth 2 of 0 to 3, chosen by 5-fold cross-validated value, 2 times; at most 3 leaves that")
    assert text.endswith("ask about x0 or x1 only, by the trees of 4 times 5 folds")
    plain = PolicyTree(max_depth=2, max_leaf_nodes=3).fit(X, rewards)
    assert plain.objective_value_ == tree.objective_value_
    assert depth_choice.of_chosen_size(tree).get_params()["max_leaf_nodes"] == 3
    less = PolicyTree("auto", max_leaf_nodes="auto", direction="minimize", random_state=0).fit(X, -rewards)
    np.testing.assert_allclose(less.depth_choice_.leaves["behind"], table["behind"])
    np.testing.assert_allclose(less.depth_choice_.leaves["value"], -table["value"])


def test_columns_that_do_not_recur_are_not_asked_about():
    """A column of noise that the best tree asks about, and few trees of the folds do, is left out."""
    rng = np.random.default_rng(19)
    X = pd.DataFrame(rng.normal(size=(250, 8)), columns=list("abcdefgh"))
    effect = np.where((X["a"] < -0.3) | (X["b"] > 0), 0.6, -0.6)
    rewards = np.column_stack([np.zeros(250), effect]) + rng.normal(size=(250, 2))
    tree = PolicyTree("auto", max_leaf_nodes="auto", random_state=0).fit(X, rewards)
    columns = tree.depth_choice_.columns
    n_trees = depth_choice.N_FOLDS * depth_choice.STABLE_REPEATS
    np.testing.assert_allclose(columns["share"] * n_trees, (columns["share"] * n_trees).round(), atol=1e-9)
    assert columns["stable"].tolist() == (columns["share"] >= min(0.9, columns["share"].max())).tolist()
    stable = columns.loc[columns["stable"], "column"].tolist()
    size = {"max_depth": tree.max_depth_, "max_leaf_nodes": tree.max_leaf_nodes_}
    free = PolicyTree(**size).fit(X, rewards)
    assert set(free.feature_names_in_[free.tree_.used_features]) - set(stable), "its best tree asks about noise"
    held = PolicyTree(**size, split_features=stable).fit(X, rewards)
    assert tree.objective_value_ == held.objective_value_ < free.objective_value_
    assert f"leaves that ask about {' or '.join(stable)} only, by the trees of" in str(tree.depth_choice_)
    assert depth_choice.of_chosen_size(tree).split_features == stable
    alone = PolicyTree("auto", max_leaf_nodes="auto", split_features=["b", "c"], random_state=0).fit(X, rewards)
    assert alone.max_depth_ == 0 or set(alone.depth_choice_.stable_columns) <= {"b", "c"}
    rewards[:, 1] += effect
    roots = PolicyTree("auto", max_leaf_nodes="auto", root_feature=["a", "h"], random_state=0).fit(X, rewards)
    assert roots.depth_choice_.stable_columns == ["a", "b", "h"], "what a search may begin with stays"


def test_the_column_that_recurs_most_is_stable_and_its_share_is_said():
    """Four columns say nearly the same, so that none is asked about by nine of ten trees."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=150)
    X = pd.DataFrame({name: common + 0.25 * rng.normal(size=150) for name in "abcd"})
    rewards = np.column_stack([np.zeros(150), 0.9 * np.sign(common)]) + rng.normal(size=(150, 2))
    choice = PolicyTree("auto", max_leaf_nodes="auto", random_state=0).fit(X, rewards).depth_choice_
    (name,) = choice.stable_columns
    share = choice.columns.set_index("column")["share"][name]
    assert share == choice.columns["share"].max() < 0.9
    assert choice.in_words == f"{name} (in {100 * share:.0f} of 100)"


def test_constraints_that_stable_columns_cannot_keep_are_said_to_be_theirs(monkeypatch):
    X, rewards = three_leaves(300, 3)

    def none_keeps(*given):
        raise InputError("No tree keeps to all constraints.")

    monkeypatch.setattr(depth_choice, "_fewest_leaves", none_keeps)
    with pytest.raises(InputError, match=r"lets trees ask only about x0 or x1, and then: No tree .* a number"):
        PolicyTree("auto", max_leaf_nodes="auto", random_state=0).fit(X, rewards)


def test_leaves_are_chosen_only_where_a_tree_is():
    X, rewards, _ = exclusive_or(200, 2, gain=0.0)
    tree = PolicyTree("auto", "auto", max_leaf_nodes="auto", min_samples_leaf=16, random_state=0).fit(X, rewards)
    assert tree.max_depth_ == 0 and tree.depth_choice_.leaves is None and tree.max_leaf_nodes_ is None
    with pytest.raises(InputError, match="max_leaf_nodes='auto' goes with max_depth='auto'"):
        PolicyTree(max_depth=2, max_leaf_nodes="auto").fit(X, rewards)
    with pytest.raises(InputError, match="max_leaf_nodes must be an integer >= 1, 'auto' or None; got 'few'"):
        PolicyTree("auto", max_leaf_nodes="few").fit(X, rewards)


def test_every_refit_chooses_its_leaves_anew():
    X, rewards = three_leaves(300, 4)
    rng = np.random.default_rng(0)
    T = rng.integers(0, 2, 300)
    data = {"X": X, "propensity": 0.5}
    model = DRPolicyTree(LINEAR, max_depth="auto", max_leaf_nodes="auto", cv=2, random_state=0)
    found = cross_val_policy_value(model, rewards[np.arange(300), T], T, **data, cv=2, n_repeats=1, random_state=0)
    assert all(tree.depth_choice_.leaves is not None for tree in found.trees if tree.max_depth_)
    assert {tree.max_depth_ for tree in found.trees} - {0}, "some refit has a tree"


def test_clusters_are_never_split(monkeypatch):
    X, rewards, _ = exclusive_or(200, 5)
    groups, seen = np.repeat(np.arange(50), 4)[np.random.default_rng(6).permutation(200)], []
    original = depth_choice.held_out_scores

    def spy(estimator, rows, depths, price, plans):
        seen.extend((rows.groups, plan.fold) for plan in plans)
        return original(estimator, rows, depths, price, plans)

    monkeypatch.setattr(depth_choice, "held_out_scores", spy)
    PolicyTree(max_depth="auto", random_state=0).fit(X, rewards, groups=groups)
    assert len(seen) == 2
    for clusters, fold in seen:
        assert all(len(set(fold[clusters == c])) == 1 for c in np.unique(clusters))


def test_rows_of_no_weight_have_no_say():
    X, rewards, _ = exclusive_or(300, 7)
    weight = np.r_[np.ones(200), np.zeros(100)]
    all_rows = PolicyTree(max_depth="auto", random_state=0).fit(X, rewards, sample_weight=weight)
    some = PolicyTree(max_depth="auto", random_state=0).fit(X[:200], rewards[:200])
    pd.testing.assert_frame_equal(all_rows.depth_choice_.table, some.depth_choice_.table)


def test_smallest_leaves_shrink_with_the_rows():
    """As many rows in every leaf as half of all would leave no split on four fifths of them."""
    X, rewards, T = exclusive_or(400, 8)
    tree = PolicyTree(max_depth="auto", min_samples_leaf=90, min_samples_per_treatment=30, random_state=0)
    assert tree.fit(X, rewards, T).max_depth_ == 2


def test_every_refit_chooses_anew_and_the_honest_way_too():
    X, rewards, T = exclusive_or(300, 9, gain=0.8)
    Y = rewards[np.arange(300), T]
    model = DRPolicyTree(LINEAR, max_depth="auto", regularization="auto", cv=3, random_state=0)
    table = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=3, n_repeats=2, random_state=0)
    assert len({tree.max_depth_ for tree in table.trees}) > 1 or table.trees[0].depth_choice_ is not None
    assert all(tree.get_depth() <= tree.max_depth_ for tree in table.trees)
    fitted = model.fit(Y, T, X=X, propensity=0.5, groups=np.arange(300) // 2)
    assert fitted.max_depth_ == fitted.policy_tree_.max_depth_ and "depth" in fitted.certificate()


def test_budgets_and_shares_hold_for_one_treatment_as_well():
    X, rewards, _ = exclusive_or(300, 10)
    rewards[:, 1] += 1.0  # the dear treatment is the better one nearly everywhere
    tree = PolicyTree(max_depth="auto", constraints=[Budget(0.5)], random_state=0).fit(
        X, rewards, budget_costs=[0.0, 1.0]
    )
    table = tree.depth_choice_.table
    assert table["value"].iloc[0] == pytest.approx(rewards[:, 0].mean()) and tree.spend_ <= 0.5
    shared = PolicyTree(max_depth="auto", constraints=[Share(0, least=0.3), Share(1, least=0.3)], random_state=0).fit(
        X, rewards
    )
    assert shared.depth_choice_.table["max_depth"].tolist() == [1, 2, 3]  # one treatment for all keeps to none
    assert min(shared.shares_.values()) >= 0.3


def test_questions_that_cost_have_to_pay():
    X, rewards, _ = exclusive_or(400, 11)
    free = PolicyTree(max_depth="auto", random_state=0).fit(X, rewards)
    dear = PolicyTree(max_depth="auto", random_state=0, feature_costs=[0.4] * 4).fit(X, rewards)
    assert free.max_depth_ == 2 and dear.max_depth_ == 0


def test_what_takes_a_number_takes_the_chosen_one():
    X, rewards, _ = exclusive_or(120, 12, gain=2.0)
    tree = PolicyTree(max_depth="auto", regularization="auto", max_bins=16, random_state=0).fit(X, rewards)
    same = PolicyTree(max_depth=tree.max_depth_, regularization=tree.regularization_, max_bins=16).fit(X, rewards)
    assert near_ties(tree, X, rewards).n_trees == near_ties(same, X, rewards).n_trees
    assert tree_path(tree, X, rewards).n_leaves.tolist() == tree_path(same, X, rewards).n_leaves.tolist()
    spends = [budget_path(each, X, rewards, budget_costs=[0, 1]).spend.tolist() for each in (tree, same)]
    assert spends[0] == spends[1]
    for refuse in (near_ties, tree_path):
        with pytest.raises(InputError, match="max_depth='auto' is chosen by fit"):
            refuse(clone(tree), X, rewards)


def test_the_price_alone():
    X, rewards, _ = exclusive_or(200, 13)
    tree = PolicyTree(max_depth=2, regularization="auto").fit(X, rewards)
    error = (rewards[:, 1] - rewards[:, 0]).std() / np.sqrt(200)
    assert tree.regularization_ == pytest.approx(error / 4, rel=0.1) and tree.depth_choice_ is None
    assert "per leaf" in tree.certificate()


def test_what_cannot_be_used_is_refused():
    X, rewards, _ = exclusive_or(40, 14)
    for name in ("max_depth", "regularization"):
        with pytest.raises(InputError, match=f"{name} must be .* >= 0, 'auto'.*; got 'deep'"):
            PolicyTree(**{name: "deep"}).fit(X, rewards)
    with pytest.raises(InputError, match="judges trees by rows that they were not learnt from, and there is 1"):
        PolicyTree(max_depth="auto").fit(X[:1], rewards[:1])
    with pytest.raises(InputError, match="judges trees by clusters"):
        PolicyTree(max_depth="auto").fit(X, rewards, groups=np.zeros(40))
    with pytest.raises(InputError, match="Choosing the depth by parts of the rows: No tree"):
        impossible = {"constraints": [Share(0, least=0.5), Share(1, least=0.5)], "min_samples_leaf": 25}
        PolicyTree(max_depth="auto", random_state=0, **impossible).fit(X, rewards)


def test_encoded_rows_take_a_number(tmp_path):
    frame = pd.DataFrame(exclusive_or(60, 15)[0], columns=list("abcd")).assign(no=0.0, yes=1.0)
    data = encode(to_learn(frame, list("abcd"), rewards=["no", "yes"]), directory=tmp_path / "rows")
    for name in ("max_depth", "regularization"):
        with pytest.raises(InputError, match=f"{name}='auto' is not available for encoded rows"):
            PolicyTree(**{name: "auto"}).fit(data)


def test_ctrl_c_ends_it(monkeypatch):
    """Without a tree of all rows there is none to keep."""
    X, rewards, _ = exclusive_or(60, 16)
    original = PolicyTree._fit_job

    def interrupted(self, job):
        fitted = original(self, job)
        self.status_ = Status.INTERRUPTED
        return fitted

    monkeypatch.setattr(PolicyTree, "_fit_job", interrupted)
    with pytest.raises(KeyboardInterrupt):
        PolicyTree(max_depth="auto", random_state=0).fit(X, rewards)


def test_a_time_limit_is_shared_by_the_searches():
    X, rewards, _ = exclusive_or(400, 17)
    limits = []
    original = PolicyTree._fit_job

    def noted(self, job):
        limits.append(self.time_limit)
        return original(self, job)

    tree = PolicyTree(max_depth="auto", time_limit=60.0, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PolicyTree, "_fit_job", noted)
        tree.fit(X, rewards)
    assert sum(limits[:30]) == pytest.approx(60.0) and limits[-1] == 60.0
