"""Thinned thresholds: what they are, and that many of them cost no more than few."""

import time

import numpy as np
import pytest

from policytree.binning import bin_matrix


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
