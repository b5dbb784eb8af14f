"""Thinned thresholds: what they are, and that many of them cost no more than few."""

import time

import numpy as np
import pytest

from policytree.solvers.core import binning
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.kernels.base.binning import code_steps


@pytest.mark.parametrize("max_bins", [2, 3, 7, 50])
@pytest.mark.parametrize("kind", ["distinct", "tied"])
def test_thinned_thresholds_follow_quantiles(rng, max_bins, kind):
    x = rng.normal(size=503) if kind == "distinct" else rng.poisson(30, size=503) ** 2.0
    thresholds = bin_matrix(x[:, None], max_bins=max_bins).columns[0].thresholds
    assert 1 <= len(thresholds) < max_bins
    assert (np.diff(thresholds) > 0).all()
    wanted = np.arange(1, max_bins) / max_bins
    quantiles = np.quantile(x, wanted, method="inverted_cdf")
    for value in quantiles[quantiles < x.max()]:  # the threshold right above every quantile's value is kept
        assert ((thresholds > value) & (thresholds <= x[x > value].min())).any()


def test_thinned_sides_hold_equal_shares(rng):
    codes = bin_matrix(rng.normal(size=(10_000, 1)), max_bins=10).codes[0]
    assert np.bincount(codes).tolist() == [1_000] * 10


def test_many_thresholds_take_no_longer_than_few(rng):
    x = rng.normal(size=(150_000, 1))

    def seconds(max_bins):
        start = time.process_time()
        bin_matrix(x, max_bins=max_bins)
        return time.process_time() - start

    few = min(seconds(256) for _ in range(3))
    many = min(seconds(65_536) for _ in range(3))
    assert many < 10 * few  # asking numpy for that many quantiles took 100 times as long


COLUMNS = {
    "steps": lambda rng, n: rng.integers(-20, 30, n).astype(float),
    "steps from a fraction": lambda rng, n: 0.1 + rng.integers(0, 9, n),
    "nearly steps": lambda rng, n: rng.integers(0, 9, n) + rng.choice([0.0, 1e-15, 1e-9], n),
    "large steps": lambda rng, n: 2.0**52 + rng.integers(0, 3 * n, n),
    "rounded steps": lambda rng, n: 2.0**55 + rng.integers(0, n, n),
    "far apart": lambda rng, n: rng.choice([-1e300, 1e300, 0.0, 1.0], n),
    "too far": lambda rng, n: rng.integers(0, 4 * n + 2, n) * 1.0,
    "fractions": lambda rng, n: rng.normal(size=n).round(2),
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0, 1.0, 2.0], n),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_codes_are_places_among_the_distinct_values(rng, kind, missing, monkeypatch):
    for n in (1, 2, 3, 40, 700):
        x = COLUMNS[kind](rng, n)
        x[rng.random(n) < missing] = np.nan
        present = x[~np.isnan(x)]
        values, places = np.unique(present, return_inverse=True)
        data = bin_matrix(x[:, None])
        if len(values) > 1:
            assert data.n_bins[-1] == len(values)
            np.testing.assert_array_equal(data.codes[-1][~np.isnan(x)], places)
            low, high = values[:-1], values[1:]
            thresholds = data.columns[-1].thresholds
            assert ((low <= thresholds) & (thresholds < high)).all()
        with monkeypatch.context() as patch:
            patch.setattr(binning, "MOST_STEPS", -1)
            sorted_ = bin_matrix(x[:, None])
        np.testing.assert_array_equal(data.codes, sorted_.codes)
        for one, other in zip(data.columns, sorted_.columns, strict=True):
            np.testing.assert_array_equal(one.thresholds, other.thresholds)


def test_steps_are_counted_as_they_are_written():
    x = np.array([5.0, 2.0, 9.0, 2.0, 5.0])
    places, codes = np.empty(8, np.int32), np.empty(5, np.int32)
    assert code_steps.py_func(x, 2.0, places, codes) == 3
    assert codes.tolist() == [1, 0, 2, 0, 1] and places.tolist() == [0, -1, -1, 1, -1, -1, -1, 2]
    assert code_steps.py_func(x + np.array([0, 0, 0.5, 0, 0]), 2.0, places, codes) == -1


def test_arrays_of_any_layout(rng):
    X = rng.integers(0, 9, (50, 3)).astype(float)
    expected = bin_matrix(X).codes
    locked = np.asfortranarray(X)
    locked.flags.writeable = False
    shifted = np.frombuffer(b"x" + np.asfortranarray(X).T.tobytes(), np.float64, offset=1).reshape(3, 50).T
    for other in (locked, shifted, X[::-1][::-1], np.ascontiguousarray(X), X.astype(">f8")):
        np.testing.assert_array_equal(bin_matrix(other).codes, expected)
