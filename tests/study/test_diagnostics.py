"""Diagnostics a reviewer asks for: numbers by hand, warnings with numbers, pictures that show the table."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import RewardEstimator
from policytree.diagnostics.calibration import calibration_table, outcome_calibration_table, outcome_fit_table
from policytree.diagnostics.overlap_balance import balance_table, crump_trimming, effective_sample_size, overlap_table
from policytree.exceptions import BalanceWarning, InputError, OverlapWarning


def observational(rng, n=2_000, strength=1.0):
    X = pd.DataFrame({"age": rng.normal(size=n), "town": rng.choice(["Oslo", "Rome"], size=n)})
    p = 1 / (1 + np.exp(-strength * X["age"].to_numpy()))
    T = np.where(rng.random(n) < p, "drug", "none")
    return X, T, pd.DataFrame({"drug": p, "none": 1 - p})


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_effective_sample_size():
    assert effective_sample_size(np.ones(7)) == pytest.approx(7)
    assert effective_sample_size([1.0, 0.0, 0.0]) == 1.0
    assert effective_sample_size([3.0, 1.0]) == pytest.approx(16 / 10)
    assert effective_sample_size([0.0]) == 0.0


def test_overlap_by_hand():
    p = pd.DataFrame({"a": [0.5, 0.25, 0.75, 0.5], "b": [0.5, 0.75, 0.25, 0.5]})
    table = overlap_table(p, ["a", "b", "a", "a"], sample_weight=[1, 1, 1, 2])
    assert table["rows"].to_dict() == {"a": 3, "b": 1}
    assert table.loc["a", "share"] == pytest.approx(0.8)
    w = np.array([2.0, 4 / 3, 4.0])
    assert table.loc["a", "effective_rows"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert table.loc["a", ["smallest", "median", "largest"]].tolist() == [0.25, 0.5, 0.75]


def test_missing_overlap_is_warned_about_with_numbers():
    p = pd.DataFrame({"a": np.r_[np.full(10, 0.01), np.full(90, 0.5)]})
    p["b"] = 1 - p["a"]
    with pytest.warns(OverlapWarning, match=r"Treatment a has a propensity of at most 0.01 for 10.0% of the rows"):
        overlap_table(p, ["b"] * 10 + ["a", "b"] * 45)


def test_trimming_is_the_best_threshold(rng):
    _, T, p = observational(rng, 400, strength=3.0)
    found = crump_trimming(p, T)
    g = (1 / p).sum(axis=1).to_numpy()
    kept = found.keep

    def bound(keep):
        return g[keep].sum() / keep.sum() ** 2

    assert all(bound(kept) <= bound(g <= c) + 1e-15 for c in g)
    assert 0 < (~kept).sum() < 200
    # the published first-order condition: the threshold is about twice the mean of what is kept
    assert found.threshold <= 2 * g[kept].mean() + 1e-9
    assert g[~kept].min() > 2 * np.append(g[kept], g[~kept].min()).mean() - 1.0
    inside = p["drug"].between(found.alpha - 1e-9, 1 - found.alpha + 1e-9).to_numpy()
    assert (inside == kept).all()
    assert found.table["dropped"].sum() == (~kept).sum()
    assert found.table["rows"].sum() == 400


def test_a_trial_is_not_trimmed():
    p = pd.DataFrame({k: np.full(30, 1 / 3) for k in "abc"})
    found = crump_trimming(p, list("abc") * 10)
    assert found.keep.all()
    assert found.alpha is None
    with pytest.raises(InputError, match="propensity holds zeros"):
        crump_trimming(pd.DataFrame({"a": [0.0, 0.5], "b": [1.0, 0.5]}), ["b", "a"])
    with pytest.raises(InputError, match="row 0 could not get treatment a, but it did"):
        overlap_table(pd.DataFrame({"a": [0.0, 0.5], "b": [1.0, 0.5]}), ["a", "b"])
    with pytest.raises(InputError, match="propensity of treatment a is 4 in row 1"):
        overlap_table(pd.DataFrame({"a": [0.5, 4.0], "b": [0.5, 0.5]}), ["a", "b"])
    with pytest.raises(InputError, match="propensity has missing or infinite values, the first in row 0"):
        calibration_table(pd.DataFrame({"a": [np.nan, 0.5], "b": [0.5, 0.5]}), ["a", "b"])


def test_balance_by_hand():
    X = pd.DataFrame({"x": [0.0, 2.0, 1.0, 5.0]})
    p = pd.DataFrame({"a": [0.5, 0.25, 0.5, 0.5], "b": [0.5, 0.75, 0.5, 0.5]})
    said = r"1 of 1 differences exceed 0.1 .* 1 of 1 variance ratios lie outside 0.5 to 2; the farthest is 4.50 in x"
    with pytest.warns(BalanceWarning, match=said):
        table = balance_table(["a", "a", "b", "b"], X=X, propensity=p)
    row = table.loc[("b - a", "x")]
    scale = np.sqrt((1.0 + 4.0) / 2)
    assert row["difference_before"] == pytest.approx((3.0 - 1.0) / scale)
    assert row["variance_ratio_before"] == pytest.approx(4.0)
    mean_a = (0 * 2 + 2 * 4) / 6
    assert row["difference_after"] == pytest.approx((3.0 - mean_a) / scale)
    assert row["variance_ratio_after"] == pytest.approx(4.0 / ((2 * mean_a**2 + 4 * (2 - mean_a) ** 2) / 6))


def test_true_propensities_balance(rng):
    X, T, p = observational(rng, 20_000)
    table = balance_table(T, X=X, propensity=p)
    assert table["difference_before"].abs().max() > 0.5
    assert table["difference_after"].abs().max() < 0.1
    assert [name for _, name in table.index] == ["age", "town=Oslo", "town=Rome"]


def test_balance_with_gaps_constants_and_three_arms(rng):
    X = pd.DataFrame({"x": rng.normal(size=90), "same": 1.0})
    X.loc[:10, "x"] = np.nan
    table = balance_table(np.tile(["a", "b", "c"], 30), X=X)
    assert sorted(set(table.index.get_level_values("comparison"))) == ["b - a", "c - a", "c - b"]
    assert table.xs("x", level="covariate").notna().all().all()
    assert table.xs("same", level="covariate").isna().all().all()


def test_calibration_of_true_propensities(rng):
    _, T, p = observational(rng, 20_000)
    table = calibration_table(p, T)
    assert table.groupby("treatment")["rows"].sum().tolist() == [20_000, 20_000]
    z = (table["observed"] - table["predicted"]) / table["standard_error"]
    assert np.abs(z).max() < 3.5
    with pytest.warns(UserWarning, match=r"In \d+ of 20 bins the share .* the farthest: 2000 rows with propensity 0.1"):
        wrong = calibration_table(1 - p, T)
    assert np.abs((wrong["observed"] - wrong["predicted"]) / wrong["standard_error"]).max() > 10


@pytest.mark.parametrize("n_bins", [0, -1, 1.5, "ten", True])
def test_numbers_of_bins_are_checked(n_bins):
    half = pd.DataFrame({"a": np.full(8, 0.5), "b": np.full(8, 0.5)})
    with pytest.raises(InputError, match="n_bins must be an integer >= 1"):
        calibration_table(half, ["a", "b"] * 4, n_bins=n_bins)
    with pytest.raises(InputError, match="n_bins must be an integer >= 1"):
        outcome_calibration_table(half, np.arange(8.0), ["a", "b"] * 4, n_bins=n_bins)


def test_more_bins_than_rows_are_as_many_as_rows():
    p = pd.DataFrame({"a": np.linspace(0.2, 0.8, 7)})
    p["b"] = 1 - p["a"]
    table = calibration_table(p, list("abababa"), n_bins=10**9)
    assert table["rows"].tolist() == [1] * 14


def test_constant_propensities_make_one_bin():
    table = calibration_table(pd.DataFrame({"a": [0.5] * 4, "b": [0.5] * 4}), list("abab"))
    assert table["rows"].tolist() == [4, 4]
    assert table["observed"].tolist() == [0.5, 0.5]


def test_outcome_fit_by_hand():
    regression = pd.DataFrame({"a": [1.0, 2.0, 9.0], "b": [9.0, 9.0, 4.0]})
    table = outcome_fit_table(regression, [1.0, 4.0, 4.0], ["a", "a", "b"])
    assert table.loc["a", "bias"] == pytest.approx(1.0)
    assert table.loc["a", "rmse"] == pytest.approx(np.sqrt(2.0))
    assert table.loc["a", "r2"] == pytest.approx(1 - 2.0 / 2.25)
    assert table.loc["a", "standard_error"] == pytest.approx(np.sqrt(2.0) / 2)
    assert np.isnan(table.loc["b", "r2"])


def test_a_few_rows_that_decide_are_warned_about():
    p = pd.DataFrame({"a": np.r_[0.011, np.full(99, 0.9)]})
    p["b"] = 1 - p["a"]
    T = ["a"] + ["b"] * 10 + ["a"] * 89
    with (
        pytest.warns(OverlapWarning, match=r"the 90 rows of treatment a are as good as \d\.\d: a few rows decide"),
        pytest.warns(OverlapWarning, match=r"weights of treatment a have mean 1\.90 .* the propensities do not fit"),
    ):
        overlap_table(p, T)


def test_outcome_models_that_do_not_fit_are_warned_about_with_numbers(rng):
    T, truth = np.repeat(["a", "b"], 200), rng.normal(size=400)
    Y = truth + rng.normal(size=400)
    good = pd.DataFrame({"a": truth, "b": truth})
    assert outcome_fit_table(good, Y, T)["r2"].between(0.3, 0.7).all()
    with pytest.warns(UserWarning, match=r"for b it is off by -2.94 \(standard error 0\.07"):
        outcome_fit_table(good.assign(b=truth + 3.0), Y, T)
    with pytest.warns(UserWarning, match=r"for a it predicts worse than the mean \(R2 -[12]\.\d\d\)"):
        outcome_fit_table(good.assign(a=-truth), Y, T)
    means = pd.DataFrame({k: np.full(400, Y[k == T].mean()) for k in "ab"})
    np.testing.assert_allclose(outcome_fit_table(means, Y, T)["r2"], 0.0, atol=1e-12)  # which is no failure


def test_outcome_calibration_by_hand():
    regression = pd.DataFrame({"a": [1.0, 1.0, 3.0, 9.0], "b": [0.0, 0.0, 0.0, 5.0]})
    table = outcome_calibration_table(regression, [0.0, 2.0, 4.0, 6.0], ["a", "a", "a", "b"], n_bins=2)
    assert table.index.tolist() == [("a", 0), ("a", 1), ("b", 0)]
    assert table["rows"].tolist() == [2, 1, 1]
    assert table["predicted"].tolist() == [1.0, 3.0, 5.0]
    assert table["observed"].tolist() == [1.0, 4.0, 6.0]
    assert table["standard_error"].iloc[0] == pytest.approx(1.0)


def test_polars_tables_give_the_same_diagnostics(rng):
    X, T, p = observational(rng, 300)
    T = np.where(T == "drug", 1, 0)  # polars only knows the text of the labels
    p = p.set_axis([1, 0], axis=1)
    theirs = pl.DataFrame({"1": p[1].to_numpy(), "0": p[0].to_numpy()})
    Y, as_series = rng.normal(size=300), pl.Series("arm", T)
    regression = pd.DataFrame(np.zeros((300, 2)), columns=[1, 0])
    pd.testing.assert_frame_equal(overlap_table(theirs, as_series), overlap_table(p, T), check_index_type=False)
    pd.testing.assert_frame_equal(calibration_table(theirs, as_series), calibration_table(p, T), check_index_type=False)
    ours = balance_table(T, X=X)
    pd.testing.assert_frame_equal(balance_table(as_series, X=pl.from_pandas(X)), ours)
    pd.testing.assert_frame_equal(
        outcome_fit_table(pl.DataFrame({"1": np.zeros(300), "0": np.zeros(300)}), pl.Series(Y), as_series),
        outcome_fit_table(regression, Y, T),
        check_index_type=False,
    )


def test_displays_show_the_tables(rng, tmp_path):
    X, T, _ = observational(rng, 600)
    fitted = RewardEstimator(LinearRegression(), LogisticRegression(), random_state=0)
    Y = X["age"] + rng.normal(size=600)
    fitted.fit(Y, T, X=X)
    fit = fitted.plot_outcome_fit(Y, T, n_bins=4)
    for ax, label in zip(fit.axes_, ["drug", "none"], strict=True):
        assert ax.get_title(loc="left").startswith(f"{label}: {(label == T).sum()} rows, R² 0.")
        drawn = ax.lines[0].get_xydata()
        np.testing.assert_allclose(drawn, fit.bins.loc[label, ["predicted", "observed"]].to_numpy())
    overlap = fitted.plot_overlap(T)
    assert len(overlap.axes_) == 2
    assert overlap.axes_[0].get_title(loc="left").startswith("drug: ")
    love = fitted.plot_balance(T, X)
    assert [t.get_text() for t in love.ax_.get_yticklabels()][-1] == "age"
    drawn = np.asarray(love.ax_.collections[0].get_offsets())[:, 0]
    shown = love.table["difference_before"].abs().groupby(level="covariate").max()
    np.testing.assert_allclose(np.sort(drawn), np.sort(shown))
    ax = plt.subplots()[1]
    calibration = fitted.plot_calibration(T, n_bins=5, ax=ax)
    assert calibration.ax_ is ax
    for name, display in {"overlap": overlap, "love": love, "calibration": calibration, "fit": fit}.items():
        display.figure_.savefig(tmp_path / f"{name}.png")


def test_what_cannot_be_shown_is_said(rng):
    X, T, p = observational(rng, 60)
    direct = RewardEstimator(LinearRegression(), method="regression", random_state=0).fit(rng.normal(size=60), T, X=X)
    for plot in (direct.plot_overlap, direct.plot_calibration):
        with pytest.raises(InputError, match="method='regression' uses no propensity"):
            plot(T)
    ipw = RewardEstimator(method="ipw", random_state=0).fit(rng.normal(size=60), T, X=X)
    with pytest.raises(InputError, match="method='ipw' uses no regression"):
        ipw.plot_outcome_fit(rng.normal(size=60), T)
    with pytest.raises(InputError, match="must be a frame"):
        overlap_table(p.to_numpy(), T)
    with pytest.raises(InputError, match="not seen at fit"):
        overlap_table(p, np.where(T == "drug", "other", T))
