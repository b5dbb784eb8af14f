import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value, policy_value
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, PLUG_IN, POLICY
from policytree.exceptions import InputError, OverlapWarning, SearchWarning
from policytree.problem.types import Status
from policytree.weighting.study_data import by_columns


class KnownNuisances:
    """Doubly robust scores with the true outcome means (W columns named after arms) and given propensities."""

    def __init__(self, treatments):
        self.treatments_ = treatments

    def predict_outcomes(self, *, X, W):
        return pd.DataFrame({label: np.asarray(W[str(label)]) for label in self.treatments_})

    def predict_rewards(self, Y, T, *, X, W, propensity):
        rewards = self.predict_outcomes(X=X, W=W)
        for k, label in enumerate(self.treatments_):
            probability = np.asarray(propensity)[:, k]
            rewards[label] += (label == T) * (Y - rewards[label]) / probability
        return rewards


class Fake(BaseEstimator):
    """A policy learner that notes what it was given. Its rule: "right" where x is positive, whichever way is better."""

    def __init__(self, direction="maximize", log=None):
        self.direction = direction
        self.log = log

    def __sklearn_clone__(self):
        return type(self)(self.direction, self.log)  # clones share the log

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        if self.log is not None:
            self.log.append({"Y": Y, "T": T, "X": X, "W": W, "propensity": propensity})
            self.log[-1] |= {"sample_weight": sample_weight, "groups": groups}
        self.reward_estimator_ = KnownNuisances(np.unique(T))
        self.policy_tree_ = f"tree of {len(Y)} rows"
        return self

    def predict(self, X):
        if self.log is not None:
            self.log[-1]["predicted"] = X
        return np.where(np.asarray(X["x"]) > 0, "right", "left")


@pytest.fixture
def trial(rng):
    """300 rows of 100 persons; "right" helps where x > 0 and harms elsewhere."""
    n = 300
    person = np.repeat(np.arange(100), 3)
    x = np.repeat(rng.normal(size=100), 3)
    share = np.repeat(rng.uniform(0.3, 0.7, size=100), 3)
    treated = np.repeat(rng.random(100), 3) < share
    mean = pd.DataFrame({"left": x, "right": x + np.sign(x)})
    y = np.where(treated, mean["right"], mean["left"]) + rng.normal(size=n)
    return {
        "Y": y,
        "T": np.where(treated, "right", "left"),
        "X": pd.DataFrame({"x": x, "row": np.arange(n)}),
        "W": mean,
        "propensity": np.column_stack([1 - share, share]),
        "groups": person,
    }


def evaluate(estimator, trial, **options):
    options = {"cv": 4, "n_repeats": 1, "random_state": 3, **trial, **options}
    return by_columns(cross_val_policy_value, estimator, **options)


def test_an_interrupted_search_ends_all_folds(trial):
    """Searches answer Ctrl-C by keeping their best tree: here nobody would hear of it."""

    class Interrupted(Fake):
        status_ = Status.INTERRUPTED

    log = []
    with pytest.raises(KeyboardInterrupt):
        evaluate(Interrupted(log=log), trial)
    assert len(log) == 1

    class Rival(PolicyTree):
        def fit(self, X, rewards):
            super().fit(X, rewards)
            self.status_ = Status.INTERRUPTED
            return self

    with pytest.raises(KeyboardInterrupt):
        model = DRPolicyTree(LinearRegression(), max_depth=0, cv=2)
        evaluate(model, trial, rivals={"another": Rival(max_depth=0)})


def test_values_are_those_of_the_held_out_rewards(trial):
    table = evaluate(Fake(), trial)
    expected = KnownNuisances(np.array(["left", "right"])).predict_rewards(
        trial["Y"], trial["T"], X=trial["X"], W=trial["W"], propensity=trial["propensity"]
    )
    pd.testing.assert_frame_equal(table.rewards, expected)
    rule = np.where(trial["X"]["x"] > 0, "right", "left")
    np.testing.assert_array_equal(table.policy, rule)
    rules = {POLICY: rule, "always left": "left", "always right": "right", PLUG_IN: rule}
    assert list(table.estimates) == [POLICY, "always left", "always right", AS_RANDOMIZED, PLUG_IN]
    assert list(table.differences) == list(table.estimates)[1:]
    for name, policy in rules.items():
        value = policy_value(policy, expected, groups=trial["groups"])
        assert table.estimates[name].value == pytest.approx(value.value, rel=1e-12)
        assert table.estimates[name].standard_error == pytest.approx(value.standard_error, rel=1e-12)
        if name != POLICY:
            difference = policy_value(rule, expected, baseline=policy, groups=trial["groups"])
            assert table.differences[name].value == pytest.approx(difference.value, rel=1e-12)
            assert table.differences[name].standard_error == pytest.approx(difference.standard_error, rel=1e-12)


def test_status_quo_is_the_mean_outcome(trial):
    table = evaluate(Fake(), trial)
    assert table.estimates[AS_RANDOMIZED].value == pytest.approx(trial["Y"].mean(), rel=1e-12)
    influence = table.estimates[POLICY].influence - table.estimates[AS_RANDOMIZED].influence
    sums = pd.Series(influence).groupby(trial["groups"]).sum()
    by_hand = np.sqrt(100 / 99 * (sums**2).sum()) / 300
    assert table.differences[AS_RANDOMIZED].standard_error == pytest.approx(by_hand, rel=1e-12)
    assert table.estimates[POLICY].n_clusters == 100


# Nothing that is judged was seen ----------------------------------------------------------------------------------


def test_fits_never_see_the_held_out_persons(trial):
    log = []
    evaluate(Fake(log=log), trial, sample_weight=np.ones(300))
    assert len(log) == 4
    judged = []
    for call in log:
        seen, held_out = call["X"]["row"].to_numpy(), call["predicted"]["row"].to_numpy()
        assert not set(seen) & set(held_out)
        assert not set(trial["groups"][seen]) & set(trial["groups"][held_out])
        assert len(seen) + len(held_out) == 300
        judged.extend(held_out)
        for name in ("Y", "T", "propensity"):
            np.testing.assert_array_equal(call[name], trial[name][seen])
        np.testing.assert_array_equal(call["W"], trial["W"].to_numpy()[seen])
        assert len(call["sample_weight"]) == len(seen)
        assert len(np.unique(call["groups"])) == len(np.unique(trial["groups"][seen]))
    assert sorted(judged) == list(range(300))


class Memoriser(Fake):
    """Recommends to the rows it saw the arm with the larger realised reward, and to others its neighbour's arm."""

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        super().fit(Y, T, X=X, W=W, propensity=propensity, sample_weight=sample_weight, groups=groups)
        rewards = self.reward_estimator_.predict_rewards(Y, T, X=X, W=W, propensity=propensity)
        self.x_, self.best_ = np.asarray(X["x"]), rewards.idxmax(axis=1).to_numpy()
        return self

    def predict(self, X):
        return self.best_[np.abs(np.asarray(X["x"])[:, None] - self.x_).argmin(axis=1)]


def test_a_memoriser_gets_its_honest_value(rng):
    """Pure noise: in sample the memorised rule looks excellent; its held-out value is that of any rule, zero."""
    n = 2_000
    trial = {
        "Y": rng.normal(size=n),
        "T": rng.choice(["left", "right"], size=n),
        "X": pd.DataFrame({"x": rng.normal(size=n)}),
        "W": pd.DataFrame(np.zeros((n, 2)), columns=["left", "right"]),
        "propensity": np.full((n, 2), 0.5),
    }
    fitted = Memoriser().fit(**trial, sample_weight=None, groups=None)
    nuisances = {name: trial[name] for name in ("X", "W", "propensity")}
    in_sample = fitted.reward_estimator_.predict_rewards(trial["Y"], trial["T"], **nuisances)
    assert policy_value(fitted.predict(trial["X"]), in_sample).lower > 0.5
    held_out = evaluate(Memoriser(), trial).estimates[POLICY]
    assert abs(held_out.value) < 3 * held_out.standard_error < 0.2


def test_trees_of_all_folds_are_kept(trial):
    table = evaluate(Fake(), trial)
    sizes = np.bincount(table.folds.fold)
    assert table.trees == tuple(f"tree of {300 - size} rows" for size in sizes)


def test_folds_are_balanced_over_arms_and_redrawn_by_random_state(trial):
    folds = evaluate(Fake(), trial).folds
    shares = pd.crosstab(folds.fold, trial["T"], normalize="index")["right"]
    assert (shares - (trial["T"] == "right").mean()).abs().max() < 0.05  # one person is 0.04 of a fold
    np.testing.assert_array_equal(folds.fold, evaluate(Fake(), trial).folds.fold)
    assert (folds.fold != evaluate(Fake(), trial, random_state=4).folds.fold).any()


# Direction, weights, forms ----------------------------------------------------------------------------------------


def test_minimize_changes_the_plug_in_rule_but_no_sign(trial):
    up, down = evaluate(Fake("maximize"), trial), evaluate(Fake("minimize"), trial)
    opposite = {"left": "right", "right": "left"}
    np.testing.assert_array_equal(down.plug_in, [opposite[label] for label in up.plug_in])
    for name in (POLICY, "always left", AS_RANDOMIZED):
        assert down.estimates[name].value == up.estimates[name].value
    assert down.differences["always left"].value == up.differences["always left"].value
    assert down.estimates[PLUG_IN].value < down.estimates[POLICY].value < up.estimates[PLUG_IN].value + 1e-12
    assert "higher is better" in up.to_text()
    assert "lower is better" in down.to_text()


def test_weights_reach_the_averages(trial, rng):
    weight = rng.uniform(0, 2, size=300)
    table = evaluate(Fake(), trial, sample_weight=weight)
    assert table.estimates[AS_RANDOMIZED].value == pytest.approx(np.average(trial["Y"], weights=weight), rel=1e-12)
    expected = policy_value(table.policy, table.rewards, groups=trial["groups"], sample_weight=weight)
    assert table.estimates[POLICY].standard_error == pytest.approx(expected.standard_error, rel=1e-12)


def test_polars_frames_stay_polars(trial):
    log = []
    plain = evaluate(Fake(), trial)
    frames = {name: pl.DataFrame(trial[name].to_dict("list")) for name in ("X", "W")}
    table = evaluate(Fake(log=log), trial | frames)
    assert isinstance(log[0]["X"], pl.DataFrame) and isinstance(log[0]["W"], pl.DataFrame)
    assert table.estimates[POLICY].value == plain.estimates[POLICY].value


def test_propensity_frames_are_cut_and_constants_passed_on(trial):
    log = []
    labelled = pd.DataFrame(trial["propensity"], columns=["left", "right"], index=trial["X"].index)
    evaluate(Fake(log=log), trial, propensity=labelled)
    assert list(log[0]["propensity"]) == ["left", "right"]
    np.testing.assert_array_equal(log[0]["propensity"], trial["propensity"][log[0]["X"]["row"]])

    class TakesConstants(Fake):
        def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
            assert propensity == {"left": 0.5, "right": 0.5}
            super().fit(Y, T, X=X, W=W, propensity=propensity, sample_weight=sample_weight, groups=groups)
            known = self.reward_estimator_
            score = known.predict_rewards
            known.predict_rewards = lambda Y, T, *, X, W, propensity: score(
                Y, T, X=X, W=W, propensity=np.tile(list(propensity.values()), (len(Y), 1))
            )
            return self

    assert evaluate(TakesConstants(), trial, propensity={"left": 0.5, "right": 0.5}).estimates[POLICY].n == 300


def test_integer_labels_and_own_folds(trial):
    coded = (trial["T"] == "right").astype(int)
    means = trial["W"].set_axis(["0", "1"], axis=1)

    class Coded(Fake):
        def predict(self, X):
            return (np.asarray(X["x"]) > 0).astype(int)

    folds = trial["groups"] % 5
    table = evaluate(Coded(), trial | {"T": coded, "W": means}, cv=folds)
    np.testing.assert_array_equal(table.folds.fold, folds)
    assert list(table.rewards) == [0, 1]
    assert "always 1" in table.estimates
    assert set(table.policy) == {0, 1}


def test_progress_is_told_of_every_fold(trial):
    calls = []
    evaluate(Fake(), trial, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


class Warns(Fake):
    def predict(self, X):
        warnings.warn(f"{len(X)} rows overlap little", OverlapWarning, stacklevel=2)
        warnings.warn("the search stopped early", SearchWarning, stacklevel=2)
        return super().predict(X)


def test_overlap_is_warned_of_once_and_other_warnings_pass(trial):
    with pytest.warns() as caught:
        evaluate(Warns(), trial)
    overlap = [w for w in caught if w.category is OverlapWarning]
    assert len(overlap) == 1
    assert "3 more such warnings" in str(overlap[0].message)
    assert [str(w.message) for w in caught if w.category is SearchWarning] == ["the search stopped early"] * 4


# The table --------------------------------------------------------------------------------------------------------


def test_frame_and_text_hold_the_same_numbers(trial):
    table = evaluate(Fake(), trial, level=0.9)
    frame = table.to_frame()
    assert list(frame.index) == list(table.estimates)
    assert frame.loc["always left", "difference_lower"] == table.differences["always left"].lower
    assert frame.loc[POLICY].filter(like="difference").isna().all()
    text = str(table)
    row = next(line for line in text.splitlines() if line.startswith("always left"))
    numbers = row.replace("[", " ").replace("]", " ").replace(",", " ").split()[2:]
    np.testing.assert_allclose(
        [float(v) for v in numbers], frame.loc["always left"].to_numpy()[[0, 1, 2, 3, 4, 6, 7]], atol=6e-4
    )
    assert "90% interval" in text
    assert "300 rows in 100 clusters" in text


# Bad input --------------------------------------------------------------------------------------------------------


class NeedsRewards(BaseEstimator):
    def fit(self, X, rewards):
        return self


class Sideways(Fake):
    def predict(self, X):
        return np.full(len(X), "sideways")


@pytest.mark.parametrize(
    ("estimator", "change", "message"),
    [
        (NeedsRewards(), {}, "NeedsRewards does not estimate its own rewards"),
        (Fake("up"), {}, "direction must be"),
        (Sideways(), {}, "label that is not among T's treatments"),
        (Fake(), {"X": pd.DataFrame({"x": np.zeros(299)})}, "X has 299 rows, but Y has 300"),
        (Fake(), {"W": np.zeros((301, 2))}, "W has 301 rows, but Y has 300"),
        (Fake(), {"T": np.full(300, "left")}, "only one treatment, left"),
        (Fake(), {"T": np.r_[["middle"], np.full(299, "left")]}, "Treatment middle has 1 cluster"),
        (Fake(), {"Y": np.r_[np.nan, np.zeros(299)]}, "Y has 1 missing value"),
        (Fake(), {"subgroups": {"clinic": [1] * 300}}, "subgroups must be a table or a column"),
        (Fake(), {"cv": 1}, "cv of the evaluation must be at least 2"),
        (Fake(), {"cv": np.arange(300) % 4}, "one cluster in different folds"),
        (Fake(), {"validation": "nested"}, "validation must be 'repeated', 'sequential' or 'split'"),
        (Fake(), {"validation": "split", "n_repeats": 2}, "judges every row once; leave n_repeats out"),
        (Fake(), {"n_jobs": 0}, "n_jobs must be a nonzero integer or None; got 0"),
        (Fake(), {"n_repeats": 0}, "n_repeats must be a whole number of at least 1, 'adaptive' or None"),
        (
            Fake(),
            {"n_repeats": 3, "cv": np.arange(300) // 3 % 4},
            "With given folds every repetition would",
        ),
    ],
)
def test_bad_input_is_named(trial, estimator, change, message):
    with pytest.raises(InputError, match=message):
        evaluate(estimator, trial | change)


def test_a_bad_level_is_refused_before_any_fit(trial):
    log = []
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        evaluate(Fake(log=log), trial, level=95)
    assert not log


def test_rivals_that_cannot_be_shown_or_read_are_refused(trial):
    with pytest.raises(InputError, match="'as randomised', which is the name of another rule"):
        evaluate(Fake(), trial, rivals={AS_RANDOMIZED: PolicyTree()})
