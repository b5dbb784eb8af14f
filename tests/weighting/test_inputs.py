"""Unusable inputs get one sentence, in every scheme and converter; never a silent NaN, never a lost name."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator
from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting import (
    LogitPropensity,
    MatchingRewards,
    feature_propensity_weights,
    row_costs,
    weighted_labels,
)
from policytree.weighting.costs import subtract_costs
from policytree.weighting.label_weights import cost_matrix_losses
from policytree.weighting.registry import SCHEMES
from policytree.weighting.study_data import StudyData

LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


class Speechless(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


class Overconfident(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.9)


GOOD = {"Y": np.arange(20.0), "T": np.tile([0, 1], 10), "X": np.arange(40.0).reshape(20, 2)}
GAPS = np.where(np.arange(20) == 3, np.nan, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": GAPS}, "Y has 1 missing value.s., the first in row 3"),
        ({"Y": pd.Series(GAPS, name="earnings")}, r"Y \(column 'earnings'\) has 1 missing"),
        ({"Y": np.where(GAPS == 1, 1.0, np.inf)}, "Y has 1 infinite"),
        ({"Y": ["high"] * 20}, "Y holds values that are not numbers"),
        ({"Y": [], "T": [], "X": None}, "Y has no rows"),
        ({"Y": np.ones((20, 2))}, "Y must be one column"),
        ({"T": GAPS}, "T has 1 missing"),
        ({"T": pd.Series([None] + ["a"] * 19, name="arm")}, r"T \(column 'arm'\) has 1 missing"),
        ({"T": ["a"] * 20}, "T holds only one treatment, a; at least two"),
        ({"T": [0, 1]}, "T has 2 rows, but Y has 20"),
        ({"T": [0] * 18 + [1] * 2}, "Treatment 1 has 2 rows, fewer than cv=5 folds; set cv=2"),
        ({"X": np.ones((3, 2))}, "X has 3 rows, but 20 are needed"),
        ({"X": np.ones(20)}, "X must be a table"),
        ({"W": np.full((20, 1), np.inf)}, "Column 'x0' of W holds infinite"),
        ({"W": pd.DataFrame({"X": [np.inf] * 20})}, "Column 'X' of W holds infinite"),
        ({"propensity": 0.0}, "propensity of treatment 0 is 1.0 in row 0"),
        ({"propensity": 1.2}, "strictly between 0 and 1"),
        ({"propensity": np.where(GAPS == 1, 0.5, np.nan)}, "is nan in row 3"),
        ({"propensity": {0: 0.5, 1: 0.4}}, "sum to 0.9"),
        ({"propensity": {0: 0.5}}, "no probability for treatment 1"),
        ({"propensity": {0: 0.5, 1: 0.3, 2: 0.2}}, "names treatment 2, which does not occur"),
        ({"propensity": np.full((20, 3), 1 / 3)}, r"propensity has shape \(20, 3\)"),
        ({"propensity": np.full(7, 0.5)}, r"propensity has shape \(7,\)"),
        ({"propensity": "half"}, "propensity holds values that are not numbers"),
        ({"T": np.tile([0, 1, 2, 3], 5), "propensity": 0.5}, "there are 4 treatments"),
        ({"sample_weight": -np.ones(20)}, "20 negative"),
        ({"sample_weight": np.zeros(20)}, "zero in all rows"),
        ({"sample_weight": np.tile([0.0, 1.0], 10)}, "treatment 0 have sample_weight zero"),
        ({"groups": [1, 2]}, "groups has 2 rows"),
        ({"groups": np.zeros(20)}, "The data have 1 clusters; folds need at least two"),
        ({"T": [0] * 10 + list(range(1, 11))}, "Treatment 1 has 1 rows, fewer than cv=5"),
        ({"X": np.full((20, 1), 1e200)}, "Column 'x0' of X holds values beyond 1e.100"),
        ({"X": pd.DataFrame(np.ones((20, 2)), columns=["a", "a"])}, "more than one column 'a'"),
        ({"sample_weight": np.eye(1, 20)[0] + np.eye(1, 20, 1)[0]}, "have sample_weight zero; use fewer folds"),
        ({"propensity": pd.DataFrame(np.full((20, 2), 0.5), columns=[0, 0])}, "more than one column '0'"),
        ({"propensity": {0: np.full(20, 0.5), 1: [0.5]}}, "gives 1 values for treatment 1 and 20 rows"),
        ({"groups": GAPS}, "groups has 1 missing"),
    ],
)
def test_bad_input_gets_one_sentence(change, message):
    arguments = {**GOOD, **change}
    with pytest.raises(InputError, match=message) as caught:
        RewardEstimator(**LINEAR).fit(arguments.pop("Y"), arguments.pop("T"), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "magic"}, "method must be 'dr', 'dr_normalized'"),
        ({"method": None}, "method must be 'dr', 'dr_normalized'.* got None"),
        ({"min_propensity": None}, "min_propensity must lie in .* got None"),
        ({"model_regression": Speechless()}, "Speechless predicts 4 missing or infinite values"),
        ({"model_propensity": Overconfident()}, "Overconfident gives probabilities that sum to 1.8"),
        ({"min_propensity": 0.5}, r"min_propensity must lie in \[0, 1/K\)"),
        ({"model_regression": "forest"}, "model_regression must be 'auto' or a scikit-learn estimator"),
        ({"model_regression": 3}, "model_regression must be 'auto' or a scikit-learn estimator; got int"),
        ({"model_propensity": LinearRegression()}, "model_propensity must be a classifier"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, message):
    with pytest.raises(InputError, match=message):
        RewardEstimator(**parameters).fit(GOOD["Y"], GOOD["T"], X=GOOD["X"])


def study(rng, n=100):
    return {"Y": rng.normal(size=n), "T": np.arange(n) % 2, "X": rng.normal(size=(n, 3))}


STRESS = {
    "twenty arms of five rows": lambda d: {"T": np.arange(100) % 20},
    "twenty arms, binary outcome": lambda d: {"T": np.arange(100) % 20, "Y": (np.arange(100) % 3 == 0) * 1.0},
    "an arm of five rows": lambda d: {"T": (np.arange(100) < 5) * 1},
    "a constant outcome": lambda d: {"Y": np.full(100, 3.0)},
    "one event": lambda d: {"Y": (np.arange(100) == 0) * 1.0},
    "a perfect predictor of treatment": lambda d: {"X": np.column_stack([d["T"], d["X"]])},
    "a perfect predictor of the outcome": lambda d: {"X": d["Y"][:, None]},
    "large outcomes": lambda d: {"Y": d["Y"] * 1e150},
    "small outcomes": lambda d: {"Y": d["Y"] * 1e-150},
    "large covariates": lambda d: {"X": d["X"] * 1e60},
    "constant covariates": lambda d: {"X": np.ones((100, 2))},
    "an id column": lambda d: {"X": pd.DataFrame({"id": [f"p{i}" for i in range(100)]})},
    "more covariates than rows": lambda d: {"X": np.random.default_rng(3).normal(size=(100, 150))},
    "mixed labels": lambda d: {"T": [1 if t else "one" for t in d["T"]]},
    "nullable integers": lambda d: {"T": pd.array(d["T"], dtype="Int64"), "Y": pd.array(d["T"] * 1.5, dtype="Float64")},
    "tiny weights": lambda d: {"sample_weight": np.full(100, 1e-200)},
    "huge weights": lambda d: {"sample_weight": np.full(100, 1e200)},
    "weights of very different size": lambda d: {"sample_weight": np.where(np.arange(100) < 40, 1e8, 1e-8)},
    "many weights of zero": lambda d: {"sample_weight": (np.arange(100) % 4 > 1) * 1.0},
}


@pytest.mark.parametrize("case", STRESS)
@pytest.mark.parametrize("method", [*sorted(SCHEMES), "matching"])
def test_hard_data_give_finite_rewards(case, method, rng):
    data = study(rng)
    data |= STRESS[case](data)
    estimator = MatchingRewards(2, random_state=0)
    if method != "matching":
        estimator = RewardEstimator(method=method, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        rewards = estimator.fit_predict(data.pop("Y"), data["T"], **{k: v for k, v in data.items() if k != "T"})
    assert rewards.shape == (100, len(set(data["T"])))
    assert np.isfinite(rewards.to_numpy()).all()


@pytest.mark.parametrize("method", [*sorted(SCHEMES), "matching"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": np.r_[np.nan, np.zeros(99)]}, "Y has 1 missing"),
        ({"Y": np.r_[np.inf, np.zeros(99)]}, "Y has 1 infinite"),
        ({"T": np.r_[np.nan, np.arange(99) % 2]}, "T has 1 missing"),
        ({"T": np.zeros(100)}, "T holds only one treatment, 0.0"),
        ({"T": np.linspace(0, 1, 100)}, "T holds 100 different numbers, as doses or a covariate do"),
        ({"T": (np.arange(100) < 4) * 1}, "Treatment 1 has 4 rows, fewer than (cv|n_splits)=5"),
        ({"sample_weight": np.r_[-1.0, np.ones(99)]}, "sample_weight has 1 negative"),
        ({"sample_weight": np.zeros(100)}, "sample_weight is zero in all rows"),
        ({"sample_weight": np.arange(100) % 2}, "treatment 0 have sample_weight zero"),
        ({"sample_weight": np.r_[np.inf, np.ones(99)]}, "sample_weight has 1 infinite"),
        ({"X": np.full((100, 2), np.inf)}, "Column 'x0' of X holds infinite values"),
        ({"X": np.full((100, 1), "a")}, "X holds values that are not numbers"),
    ],
)
def test_every_scheme_refuses_what_it_cannot_use(method, change, message, rng):
    data = study(rng) | change
    estimator = MatchingRewards(2) if method == "matching" else RewardEstimator(method=method)
    with pytest.raises(InputError, match=message):
        estimator.fit(data.pop("Y"), data.pop("T"), **data)


LABELS = list("abab")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weighted_labels([[1e308, -1e308]]), "differ by more than a number can hold"),
        (lambda: weighted_labels([[1.0, 2.0]], sample_weight=[0.0]), "zero in all rows"),
        (lambda: weighted_labels([[1.0, 2.0]], sample_weight=[-1.0]), "1 negative"),
        (lambda: cost_matrix_losses(LABELS, [["x", 1], [1, 0]]), "costs holds values that are not numbers"),
        (lambda: cost_matrix_losses(LABELS, [[1, 2], [3]]), "costs holds values that are not numbers"),
        (lambda: cost_matrix_losses(LABELS, {"a": 1}), "pairs .true class, predicted class. .* got the key 'a'"),
        (lambda: cost_matrix_losses(LABELS, pl.DataFrame({"a": [0, 1], "b": [1, 0]})), "but no row labels"),
        (lambda: cost_matrix_losses(LABELS, pd.DataFrame(0, list("aab"), list("ab"))), "more than one row a"),
        (lambda: feature_propensity_weights([0] * 9, np.ones((9, 1))), "feature holds only one value, 0"),
        (lambda: feature_propensity_weights(LABELS, None), "X is missing"),
        (lambda: feature_propensity_weights(LABELS, np.ones((4, 1)), min_propensity=2), "min_propensity must lie"),
        (lambda: LogitPropensity.table(LABELS, X=np.ones((4, 1)), level=95), "level must lie between"),
        (lambda: subtract_costs(np.ones((2, 2)), {0: 1.0}), "rewards must be a DataFrame"),
        (lambda: row_costs(np.ones((2, 2)), {0: 1.0}), "need a table with named columns"),
        (lambda: row_costs(pd.DataFrame({"age": [1.0]}), {}), "No cost is given"),
        (lambda: row_costs(pd.DataFrame({"age": [1.0]}), {"a": "age"}, scale=(1,)), "scale must be two numbers"),
        (lambda: MatchingRewards(2.5).fit([1.0] * 4, LABELS, X=np.ones((4, 1))), "n_neighbors must be at least 1 and"),
        (lambda: MatchingRewards(penalty="x").fit([1.0] * 4, LABELS, X=np.ones((4, 1))), "penalty must be a finite"),
        (lambda: MatchingRewards(exact=3).fit([1.0] * 20, LABELS * 5, X=np.ones((20, 1))), "exact must be 'none'"),
        (lambda: MatchingRewards().fit([1.0] * 20, LABELS * 5, X=np.ones((20, 0))), "X has no columns to match on"),
        (lambda: MatchingRewards(True).fit([1.0] * 4, LABELS, X=np.ones((4, 1))), "n_neighbors must be at least 1 and"),
        (lambda: MatchingRewards(1).fit([1.0] * 20, LABELS * 5, X=np.full((20, 1), 1e200)), "values beyond 1e.100"),
        (lambda: RewardEstimator().fit([1e200] * 4, LABELS), "Y holds values beyond 1e.151"),
        (lambda: RewardEstimator().fit([1j] * 4, LABELS), "Y holds complex numbers; give real ones"),
        (
            lambda: RewardEstimator(LinearRegression).fit([1.0] * 4, LABELS, X=np.ones((4, 1))),
            "write LinearRegression..",
        ),
        (lambda: cost_matrix_losses(["a", "b"], {("a", "b"): [1, 2]}), "one number for the pair"),
        (lambda: feature_propensity_weights(LABELS, np.ones((4, 1)), min_propensity="a"), "min_propensity must lie"),
        (lambda: row_costs(pd.DataFrame({"age": [1.0]}), [1]), "Costs must be a mapping"),
        (lambda: row_costs(pd.DataFrame({"age": [1.0]}), {"a": "age"}, scale=5), "scale must be two numbers"),
        (lambda: row_costs(pd.DataFrame({"age": [1.0]}), {"a": "age"}, scale=(1, np.inf)), "scale must be two numbers"),
        (
            lambda: subtract_costs(pd.DataFrame(np.zeros((3, 2)), columns=["a", "b"]), pd.Series({"a": 1, "c": 2})),
            "costs names treatment c",
        ),
        (lambda: LogitPropensity.table(LABELS, X=np.ones((4, 1)), level="a"), "level must lie between"),
    ],
)
def test_every_converter_refuses_in_one_sentence(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_propensity_of_zero_where_treated_is_said(rng):
    class Certain(Overconfident):
        def predict_proba(self, X):
            return np.column_stack([np.ones(len(X)), np.zeros(len(X))])

    estimator = RewardEstimator(LinearRegression(), Certain(), min_propensity=0.0, random_state=0)
    said = r"reward of treatment 1 in row \d+ is .*inf: its propensity is zero"
    with np.errstate(divide="ignore"), pytest.raises(InputError, match=said):
        estimator.fit(**study(rng))


# Names survive --------------------------------------------------------------------------------------------------


def test_polars_goes_through_from_data_to_tree(rng):
    n = 300
    frame = pl.DataFrame(
        {
            "arm": np.array(["placebo", "drug"])[np.arange(n) % 2],
            "pain": rng.normal(size=n) + (np.arange(n) % 2) * np.where(np.arange(n) % 3, -2.0, 2.0),
            "age": rng.normal(size=n),
            "third": np.array(["yes", "no", "no"])[np.arange(n) % 3],
            "site": rng.choice(["Oslo", "Rome"], size=n),
        }
    )
    X, W = frame[["age", "third"]], frame[["site"]]
    arguments = {"X": X, "W": W, "propensity": pl.DataFrame({"placebo": [0.5] * n, "drug": [0.5] * n})}
    estimator = RewardEstimator(LinearRegression(), random_state=0)
    rewards = estimator.fit_predict(frame["pain"], frame["arm"], **arguments)
    in_pandas = {name: table.to_pandas() for name, table in arguments.items()}
    expected = estimator.fit_predict(frame["pain"].to_pandas(), frame["arm"].to_list(), **in_pandas)
    assert list(rewards.columns) == ["drug", "placebo"]
    np.testing.assert_allclose(rewards, expected, rtol=1e-9)
    assert estimator.covariates_.names() == ["age", "third=no", "third=yes", "site=Oslo", "site=Rome"]
    rows = weighted_labels(pl.from_pandas(rewards))
    np.testing.assert_array_equal(rows.label, rewards.idxmax(axis=1).to_numpy()[rows.row])
    assert set(rows.label) == {"drug", "placebo"}
    fees = row_costs(frame, {"drug": lambda d: 0.01 * d["age"], "placebo": 0.0})
    np.testing.assert_allclose(subtract_costs(pl.from_pandas(rewards), fees), rewards - fees)
    tree = DRPolicyTree(LinearRegression(), direction="maximize", max_depth=1, random_state=0)
    tree.fit(StudyData.of(frame["pain"], frame["arm"], **arguments, sample_treatment_costs=pl.from_pandas(fees)))
    text = tree.export_text()
    assert "third" in text and "drug" in text and "placebo" in text
    assert set(tree.predict(X)) == {"drug", "placebo"}


def test_costs_as_a_series_are_read_by_label():
    rewards = pd.DataFrame(np.zeros((2, 2)), columns=["no", "yes"])
    assert subtract_costs(rewards, pd.Series({"yes": 1.0, "no": 2.0})).to_numpy().tolist() == [[-2.0, -1.0]] * 2
    assert subtract_costs(rewards, {"yes": 1.0}).to_numpy().tolist() == [[0.0, -1.0]] * 2  # as many rows as labels
