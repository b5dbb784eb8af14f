"""Recurrence over resamples: against counting by hand; clusters, copies, Ctrl-C."""

import os
import signal
import subprocess
import sys
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, policy_value
from policytree.evaluation import policy_stability
from policytree.evaluation.stability.resamples import Split, draw_rows, splits_of
from policytree.evaluation.stability.tables import PolicyStability
from policytree.exceptions import InputError, OverlapWarning, SearchWarning

ROOT = Path(__file__).resolve().parents[2]


class Threshold(BaseEstimator):
    """Treats those above the mean outcome of its rows; notes what it was given."""

    log: list = []  # noqa: RUF012

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        self.log.append({"Y": Y, "groups": groups, "X": X})
        self.cut_ = np.mean(Y)
        return self

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > self.cut_, "yes", "no")


@pytest.fixture
def study(rng):
    n = 60
    return {"Y": rng.normal(size=n), "T": np.resize(["yes", "no"], n), "X": rng.normal(size=(n, 1)), "propensity": 0.5}


@pytest.fixture(autouse=True)
def _empty_log():
    Threshold.log.clear()


def stability(estimator, study, **options):
    options = {"n_resamples": 7, "random_state": 0, **study, **options}
    return policy_stability(estimator, options.pop("Y"), options.pop("T"), **options)


def result(policies, weight=None, shown=None, splits=None, covariates=None, shown_splits=()):
    policies = np.asarray(policies)
    return PolicyStability(
        treatments=np.array(["a", "b", "c"]), index=pd.RangeIndex(policies.shape[1]), policies=policies,
        splits=splits or ((),) * len(policies), n_leaves=(1,) * len(policies), shown=shown, shown_splits=shown_splits,
        covariates=covariates or {"x": np.arange(1.0, 11.0)}, sample_weight=weight, method="bootstrap", share=0.5,
        n_requested=len(policies),
    )  # fmt: skip


# --- counting ---


def test_a_leaf_comes_again_where_most_of_its_people_get_what_it_gives():
    """Leaf 1 gives a to three people, of whom the last weighs as much as the others; leaf 2 gives b to two."""
    policies = [[0, 0, 1, 1, 1], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 2]]
    leaves, given = np.array([1, 1, 1, 2, 2]), np.array(["a", "a", "a", "b", "b"])
    assert result(policies).leaf_shares(leaves, given) == {1: 0.5, 2: 0.25}
    heavy = result(policies, weight=np.array([1.0, 1.0, 3.0, 2.0, 1.0]))
    assert heavy.leaf_shares(leaves, given) == {1: 0.5, 2: 0.75}
    with pytest.raises(InputError, match="for each of the 5 people"):
        result(policies).leaf_shares(leaves[:4], given)


def test_shares_and_agreement_are_counted(rng):
    policies, weight, shown = rng.integers(0, 3, (9, 25)), rng.uniform(0.1, 2, 25), rng.integers(0, 3, 25)
    found = result(policies, weight, shown)
    shares = found.arm_shares()
    for i, k in ((0, 0), (7, 1), (24, 2)):
        assert shares.iloc[i, k] == sum(policies[b, i] == k for b in range(9)) / 9

    def alike(rules):
        return np.mean([np.average(a == b, weights=weight) for a, b in combinations(rules, 2)])

    assert found.agreement == pytest.approx(alike(policies), rel=1e-12)
    left = [alike(np.delete(policies, j, axis=0)) for j in range(9)]
    assert found.agreement_error == pytest.approx(np.sqrt(8 / 9 * np.sum((left - np.mean(left)) ** 2)), rel=1e-9)
    table = found.pairwise_agreement().to_numpy()
    assert (table == table.T).all() and (np.diag(table) == 1).all()
    assert table[np.triu_indices(9, 1)].mean() == pytest.approx(found.agreement)
    assert found.agreement_with_shown == pytest.approx(
        np.mean([np.average(p == shown, weights=weight) for p in policies])
    )
    settled = [np.bincount(policies[:, i]).max() >= 0.6 * 9 for i in range(25)]
    assert found.settled_share(0.6) == pytest.approx(np.average(settled, weights=weight))


def test_splits_and_ranges_are_counted():
    one = (Split("x", 0, 2.5), Split("x", 1, 2.7), Split("town", 1, np.nan, "Rome"))
    two, three = (Split("x", 0, 9.5),), (Split("town", 0, np.nan, "Oslo"), Split("x", 1, np.inf))
    found = result(
        np.zeros((4, 3), int), splits=(one, two, three, ()), shown=np.zeros(3, int), shown_splits=one,
        covariates={"town": np.empty(0), "x": np.arange(1.0, 11.0), "age": np.arange(5.0)},
    )  # fmt: skip
    features = found.feature_shares()
    assert list(features.index) == ["x", "town", "age"]
    assert features.loc["x"].tolist() == [0.75, np.sqrt(0.75 * 0.25 / 4), 0.5, 0.5]
    assert features.loc["town", ["anywhere", "root", "level 2"]].tolist() == [0.5, 0.25, 0.25]
    ranges = found.threshold_shares(9)
    low = ranges.loc[("x", "2 to 3")]
    assert (low["share"], low["median"], low["part"], low["parts"]) == (0.25, 2.6, 1, 9), "once per resample"
    assert ranges.loc[("x", "9 to 10"), "share"] == 0.25 and ranges.loc[("x", "is known"), "share"] == 0.25
    assert ranges.loc[("town", "= Rome"), "share"] == ranges.loc[("town", "= Oslo"), "share"] == 0.25
    own = found.shown_split_shares()
    assert own["split"].tolist() == ["x ≤ 2.5", "x ≤ 2.7", "town = Rome"] and own["level"].tolist() == [1, 2, 2]
    assert own["covariate"].tolist() == [0.75, 0.75, 0.5]
    assert own["same level"].tolist() == [0.5, 0.5, 0.25]
    assert own["same range"].tolist() == [0.25, 0.25, 0.25]
    text = str(found)
    assert "applied to all 3 visits." in found.to_text(unit="visits") and "100% of visits" in found.to_text(
        unit="visits"
    )
    assert "x ≤ 2.5" in text and "100% of people get the same treatment in at least 90% of them (Monte-Carlo" in text


def test_every_threshold_of_a_tree_has_a_range(rng):
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.integers(0, 3, 200), "c": rng.choice(["u", "v", "w"], 200)})
    X.loc[::7, "a"] = np.nan
    T = rng.integers(0, 2, 200)
    Y = T * (X["a"].fillna(1.0) > 0.2) + 0.3 * (X["c"] == "u") * T + rng.normal(size=200)
    model = DRPolicyTree(LinearRegression(), max_depth=2, cv=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    found = policy_stability(model, Y, T, X=X, propensity=0.5, n_resamples=6, random_state=0)
    assert found.shown_splits == splits_of(model.tree_) and len(found.shown_splits) == model.get_n_leaves() - 1
    asked = found.feature_shares()["anywhere"]
    ranges = found.threshold_shares()["share"].groupby(level="covariate").sum()
    for name in X:
        assert asked[name] <= ranges.get(name, 0.0) + 1e-12
    assert [len(tree) for tree in found.splits] == [leaves - 1 for leaves in found.n_leaves]
    np.testing.assert_array_equal(found.shown, model.predict(X))
    assert found.shown_split_shares()["covariate"].between(0, 1).all()
    assert "How often the splits of the rule to show recur" in str(found)


# --- resampling ---


def test_copies_and_clusters_stay_together(study):
    stability(Threshold(), study)
    for given in Threshold.log:
        positions = [int(np.flatnonzero(study["Y"] == y)[0]) for y in given["Y"]]
        assert given["groups"].tolist() == positions, "copies of a row carry its own number"
        assert len(set(positions)) < 60 == len(positions)
    Threshold.log.clear()
    persons = np.repeat(np.arange(20), 3)
    stability(Threshold(), study, groups=persons)
    for given in Threshold.log:
        counts = np.bincount(given["groups"], minlength=20)
        assert (counts % 3 == 0).all() and counts.sum() == 60


def test_policies_are_of_everybody(study):
    found = stability(Threshold(), study)
    for given, policy in zip(Threshold.log, found.policies, strict=True):
        np.testing.assert_array_equal(found.treatments[policy] == "yes", study["X"][:, 0] > np.mean(given["Y"]))
    assert found.shown is None and found.splits == ((),) * 7 and np.isnan(found.agreement_with_shown)
    again = stability(Threshold(), study)
    np.testing.assert_array_equal(found.policies, again.policies)


def test_subsamples_are_shares_of_clusters():
    units = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5])
    for rows in draw_rows("subsample", 0.3, units, 20, 0):
        chosen, counts = np.unique(units[rows], return_counts=True)
        assert len(chosen) == 3 and (counts == np.bincount(units)[chosen]).all()
        assert len(np.unique(rows)) == len(rows)
    sizes = np.mean([len(np.unique(units[rows])) for rows in draw_rows("bootstrap", 0.3, units, 2_000, 0)])
    assert sizes == pytest.approx(10 * (1 - 0.9**10), abs=0.1)


def test_processes_do_not_change_the_result(study):
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    seen = []
    one = stability(model, study, n_resamples=4, progress=lambda *done: seen.append(done))
    two = stability(model, study, n_resamples=4, n_jobs=2)
    np.testing.assert_array_equal(one.policies, two.policies)
    assert one.splits == two.splits and seen == [(k, 4) for k in (1, 2, 3, 4)]


def test_warnings_of_refits_are_passed_on_once(study):
    class Warner(Threshold):
        def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
            warnings.warn("overlap", OverlapWarning, stacklevel=1)
            self.cut_ = 0.0
            return self

    with pytest.warns(OverlapWarning, match="In a resample: overlap .6 more such warnings") as heard:
        stability(Warner(), study)
    assert len(heard) == 1


# --- Ctrl-C ---


def test_the_error_of_the_settled_share_is_its_spread_over_simulations(rng):
    """Thresholds drawn anew for 20 resamples, 200 people, 80 times; no policy twice, and one policy only."""
    x, shares, errors = np.sort(rng.normal(size=200)), [], []
    for _ in range(80):
        found = result((x > 0.6 * rng.normal(size=(20, 1))).astype(int))
        shares.append(found.settled_share())
        errors.append(found.settled_error())
    assert np.mean(errors) == pytest.approx(np.std(shares), rel=0.25)
    assert result(np.ones((5, 4), int)).settled_error() == 0.0


class Interrupted(Threshold):
    """Ctrl-C comes during the fourth fit."""

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        if len(self.log) == 3:
            raise KeyboardInterrupt
        rows = {"sample_weight": sample_weight, "groups": groups}
        return super().fit(Y, T, X=X, W=W, propensity=propensity, **rows)


def test_what_is_done_is_kept(study):
    with pytest.warns(SearchWarning, match="Interrupted after 3 of 7 resamples"):
        found = stability(Interrupted(), study)
    assert (found.n_resamples, found.n_requested) == (3, 7)
    assert "on 3 bootstrap samples (interrupted: 7 were asked for)" in str(found)
    Threshold.log.clear()
    np.testing.assert_array_equal(found.policies, stability(Threshold(), study).policies[:3])


class Failing(Threshold):
    """Some fits fail: the first, which is done alone, and a later one."""

    fails = (0, 3)

    def fit(self, Y, T, *, X, W, propensity, sample_weight, groups):
        if len(self.log) in self.fails:
            self.log.append({})
            raise np.linalg.LinAlgError("Singular matrix")
        rows = {"sample_weight": sample_weight, "groups": groups}
        return super().fit(Y, T, X=X, W=W, propensity=propensity, **rows)


def test_resamples_that_fail_are_left_out_and_counted(study):
    told = []
    with pytest.warns(SearchWarning, match=r"2 of 7 resamples are left out.*Singular matrix"):
        found = stability(Failing(), study, progress=lambda done, total: told.append((done, total)))
    assert (found.n_resamples, found.n_requested, len(found.failures)) == (5, 7, 2)
    assert "2 more are left out" in str(found) and "interrupted" not in str(found)
    assert told == [(k, 7) for k in range(1, 8)]
    Threshold.log.clear()
    everything = stability(Threshold(), study).policies
    np.testing.assert_array_equal(found.policies, np.delete(everything, Failing.fails, axis=0))


class AlwaysFailing(Failing):
    fails = range(100)


def test_where_all_resamples_fail_the_reason_comes_through(study):
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        stability(AlwaysFailing(), study)


def test_before_two_resamples_there_is_nothing_to_keep(study):
    Threshold.log.extend([{}, {}])
    with pytest.raises(KeyboardInterrupt):
        stability(Interrupted(), study)


SCRIPT = """
import numpy as np, warnings
from sklearn.linear_model import LinearRegression
from policytree import DRPolicyTree, policy_value
from policytree.evaluation import policy_stability
if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    found = policy_stability(model, rng.normal(size=200), T, X=X, propensity=0.5, n_resamples=5000, random_state=0,
                             n_jobs=2, progress=lambda done, total: print(done, flush=True))
    print("kept", found.n_resamples, "of", found.n_requested)
"""


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.slow
def test_ctrl_c_in_a_terminal(tmp_path):
    """The signal goes to all processes of the group, as from a keyboard."""
    file = tmp_path / "run.py"
    file.write_text(SCRIPT)
    run = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        cwd=ROOT,
    )  # fmt: skip
    for line in run.stdout:
        if line.startswith("5"):
            break
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0 and "Traceback" not in err, err
    assert out.splitlines()[-1].startswith("kept ") and out.splitlines()[-1].endswith("of 5000")


# --- refusals and policies side by side ---


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "jackknife"}, "method must be 'bootstrap' or 'subsample'"),
        ({"n_resamples": 1}, "n_resamples must be a whole number of at least 2"),
        ({"share": 1.0}, "share must lie between 0.1 and 0.9"),
        ({"n_jobs": 0}, "n_jobs must be a nonzero integer"),
        ({"T": ["yes"] * 60}, "only one treatment"),
    ],
)
def test_bad_arguments_are_one_sentence(study, change, words):
    with pytest.raises(InputError, match=words):
        stability(Threshold(), study, **change)


def test_estimators_without_outcomes_are_refused(study):
    with pytest.raises(InputError, match="does not estimate its own rewards"):
        stability(LinearRegression(), study)
    with pytest.raises(InputError, match=r"at must be above 0\.5"):
        result(np.zeros((3, 4), int)).settled_share(0.5)
    with pytest.raises(InputError, match="n_ranges must be"):
        result(np.zeros((3, 4), int)).threshold_shares(0)


def test_agreement_of_named_policies():
    policies = {"tree": ["a", "b", "b", "c"], "greedy": ["a", "b", "c", "c"], "all a": "a"}
    tree, weight = np.array(policies["tree"]), [1, 1, 2, 1]
    same = {arm: (tree == arm).astype(float) for arm in "abc"}  # what somebody gets counts where the tree gives it too
    agreement = [policy_value(policies[name], same, sample_weight=weight).value for name in ("greedy", "tree")]
    assert agreement == pytest.approx([0.6, 1.0])
    assert policy_value(tree, {"a": 1.0}, sample_weight=weight).value == pytest.approx(0.2)
