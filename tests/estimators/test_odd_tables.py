"""Tables and columns that users really have: one sentence for what cannot be used, the right tree for what can."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import (
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
    cross_val_policy_value,
    policy_value,
    tree_path,
)
from policytree.diagnostics import check_rewards
from policytree.evaluation import budget_path, near_ties
from policytree.exceptions import InputError

N = 40
WAVES = np.sin(np.outer(np.arange(1, N + 1), [1.0, 2.0, 3.0]))
X = pd.DataFrame({"age": WAVES[:, 0], "site": np.resize(["x", "y", "z"], N)})
REWARDS = pd.DataFrame(WAVES[:, 1:], columns=["no", "yes"])
Y = (WAVES[:, 1] > 0).astype(int)
MASKED = np.ma.masked_greater(WAVES, 0.9)


def fitted(**settings):
    return PolicyTree(max_depth=2, **settings).fit(X, REWARDS)


def with_column(values):
    return pd.DataFrame({"a": values})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fitted().predict(X[["site", "age"]]), "same order as they were in fit.*feature_names_in_"),
        (lambda: fitted().predict(X[["site"]]), "(?s)now missing.*age"),
        (lambda: PolicyTree().fit(WAVES, REWARDS).predict(np.full((2, 3), "a")), "pass a.* DataFrame"),
        (
            lambda: PolicyTree().fit(WAVES * 1j, REWARDS),
            "Complex data not supported: X holds complex numbers; give real ones.$",
        ),
        (lambda: PolicyTree().fit(WAVES, REWARDS.to_numpy() * 1j), "rewards holds complex numbers"),
        (lambda: OptimalTreeClassifier().fit(WAVES, Y, sample_weight=np.ones(N) * 1j), "sample_weight"),
        (lambda: PolicyTree().fit(MASKED, REWARDS), "X is a masked array"),
        (lambda: PolicyTree().fit(WAVES, MASKED[:, 1:]), "rewards is a masked array"),
        (lambda: OptimalTreeClassifier().fit(WAVES, Y, sample_weight=MASKED[:, 0]), "sample_weight is a masked array"),
        (
            lambda: PolicyTree().fit(with_column(2**53 + np.arange(N)), REWARDS),
            r"'a' of X holds integers beyond 2\*\*53",
        ),
        (lambda: PolicyTree().fit(with_column([2**400 + k for k in range(N)]), REWARDS), r"beyond 2\*\*53"),
        (lambda: PolicyTree().fit((2**63 + np.arange(N, dtype=np.uint64))[:, None], REWARDS), r"'x0' of X holds integ"),
        (
            lambda: PolicyTree().fit(with_column(pd.array([None, *range(2**60, 2**60 + N - 1)], "Int64")), REWARDS),
            r"beyond 2\*\*53",
        ),
        (lambda: policy_value(None, {"yes": 1}), "policy must be"),
        (lambda: DRPolicyTree().fit(Y, Y, X), r"fit takes Y, T by position and the rest by name: fit\(Y, T, X="),
        (lambda: DRPolicyTree().score(Y, Y, X=X), r"fit the tree before you call its score\(Y, T, X=X\)"),
        (lambda: RewardEstimator().fit(Y, Y, X), r"fit takes Y, T by position"),
        (lambda: RewardEstimator().fit_predict(Y, Y, X, None), r"fit_predict takes Y, T by position"),
        (lambda: tree_path(PolicyTree(), X, REWARDS, colour=1), "fit of PolicyTree takes no argument 'colour'"),
        (lambda: near_ties(OptimalTreeClassifier(max_depth=2), WAVES, Y, slack=0.1, T=Y), "takes no argument 'T'"),
        (lambda: budget_path(PolicyTree(), X, REWARDS, budget_costs={"yes": 1}, colour=1), "takes no argument"),
    ],
)
def test_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize("kind", ["int64", "Int64", "int64[pyarrow]", "float64"])
def test_columns_of_integers_without_any_value(kind):
    with pytest.raises(InputError, match="X has no rows"):
        PolicyTree().fit(with_column(pd.array([], dtype=kind)), REWARDS[:0])
    if kind != "int64":
        gaps = pd.DataFrame({"none": pd.array([None] * N, dtype=kind), "age": X["age"]})
        assert PolicyTree(max_depth=1).fit(gaps, REWARDS).get_used_features() == ["age"]


def test_integers_that_floats_can_tell_apart_are_numbers():
    tree = PolicyTree(max_depth=1).fit(with_column(2**53 - np.arange(N)), REWARDS).tree_
    assert tree.n_leaves == 2


def test_integers_of_128_bits():
    small = pl.DataFrame({"a": pl.Series(range(N), dtype=pl.Int128)})
    assert PolicyTree(max_depth=1).fit(small, REWARDS).tree_.n_leaves == 2
    with pytest.raises(InputError, match=r"beyond 2\*\*53"):
        PolicyTree(max_depth=1).fit(small + 2**100, REWARDS)


def test_missing_values_of_pandas_and_arrow_in_text_are_missing():
    gaps = X["site"].where(X["age"] < 0.5)
    forms = [gaps.astype(object).where(gaps.notna(), missing) for missing in (None, np.nan, pd.NA)]
    forms += [gaps.astype("string"), gaps.astype("string[pyarrow]"), gaps.astype("category"), gaps.convert_dtypes()]
    trees = [PolicyTree(max_depth=2).fit(X.assign(site=form), REWARDS).tree_ for form in forms]
    assert len({str(PolicyTree(max_depth=2).fit(X.assign(site=form), REWARDS).to_dict()) for form in forms}) == 1
    assert trees[0].features[1].has_missing


def test_arrow_tables_are_tables():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"age": WAVES[:, 0], "count": np.arange(N), "site": X["site"].tolist()})
    same = X.assign(count=np.arange(N))[["age", "count", "site"]]
    model = PolicyTree(max_depth=2).fit(table, pa.Table.from_pandas(REWARDS))
    assert model.to_dict() == PolicyTree(max_depth=2).fit(same, REWARDS).to_dict()
    assert (model.predict(table) == model.predict(same)).all()


@pytest.fixture(scope="module")
def fitted_on_an_array():
    return PolicyTree(max_depth=1).fit(np.arange(4.0)[:, None], np.array([[0, 1.0], [0, 1], [1, 0], [1, 0]]))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2020", "2021", None]).tz_localize("UTC")),
        pd.Series(pd.to_datetime(["2020", "2021", None])),
        pd.Series(pd.to_timedelta(["1 day", None])),
        pd.Series(["1", "2"]),
        pd.Series(["x", None]),
    ],
)
def test_what_an_array_taught_reads_numbers_only(fitted_on_an_array, column):
    with pytest.raises(InputError, match="Column 'a' of X"):
        fitted_on_an_array.encoder_.encode(with_column(column))


def test_what_an_array_taught_reads_columns_with_gaps_by_their_place(fitted_on_an_array):
    columns = with_column(pd.array([0, 3, None], "Int64"))
    plain = np.array([[0.0], [3.0], [np.nan]])
    np.testing.assert_array_equal(fitted_on_an_array.encoder_.encode(columns), plain)


@pytest.mark.parametrize("validation", ["repeated", "sequential", "split"])
def test_treatments_that_are_true_and_false_are_judged_like_others(validation):
    """As a file's column of TRUE and FALSE is read; pandas takes a list of them for a mask of rows."""
    rng = np.random.default_rng(3)
    x = pd.DataFrame({"a": rng.normal(size=120).round(1)})
    got = rng.permutation(np.arange(120) % 2).astype(bool)
    y = got * x["a"] + rng.normal(size=120)
    tables, linear = [], (LinearRegression(), LogisticRegression())
    for T in (got, np.where(got, "given", "a control")):
        model = DRPolicyTree(*(() if validation == "split" else linear), max_depth=1, cv=3, random_state=0)
        table = cross_val_policy_value(model, y, T, X=x, validation=validation, random_state=0)
        known = model.fit(y, T, X=x).reward_estimator_
        check_rewards(known.rewards_, y, T, propensity=known.propensity_)
        tables.append(table.to_frame().iloc[:, :4].to_numpy(dtype=float, na_value=np.nan))
    np.testing.assert_array_equal(*tables)


WRAPPED = {
    "lazy": pl.DataFrame.lazy,
    "lazy of narwhals": lambda table: nw.from_native(table.lazy()),
    "narwhals": nw.from_native,
    "batch": lambda table: table.to_arrow().to_batches()[0],
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_tables_of_all_kinds_are_collected_at_fit_and_later(wrap):
    plain, table = fitted(), wrap(pl.from_pandas(X))
    model = PolicyTree(max_depth=2).fit(table, REWARDS)
    np.testing.assert_array_equal(model.predict(table), plain.predict(X))
    np.testing.assert_array_equal(plain.predict(table), plain.predict(X))


@pytest.mark.parametrize(
    ("T", "words"),
    [
        ([{}] * N, "^T holds lists or tables; give one label a row.$"),
        ([None] * N, "^T has 40 missing value"),
    ],
)
def test_treatments_that_are_none(T, words):
    with pytest.raises(InputError, match=words):
        DRPolicyTree(max_depth=1, cv=2).fit(WAVES[:, 1], T, X=X)


@pytest.mark.parametrize("kind", [np.float16, np.longdouble])
def test_treatments_in_floats_of_other_sizes(kind):
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(WAVES[:, 1], (np.arange(N) % 2).astype(kind), X=X)
    assert model.treatments_.tolist() == [0.0, 1.0]


def test_numbers_of_small_types_are_numbers():
    assert fitted(regularization=np.float32(0.01)).regularization_ == pytest.approx(0.01)


def test_names_that_are_equal_but_differ_as_text():
    frame = pd.DataFrame(np.ones((4, 2)), columns=pd.Index([1, 1.0], dtype=object))
    with pytest.raises(InputError, match="more than one column '1'"):
        PolicyTree(max_depth=1).fit(frame, np.eye(4)[:, :2])
