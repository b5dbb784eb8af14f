"""Boosted trees in all bins of time at once are the trees of LightGBM."""

import numpy as np
import pytest

from policytree.weighting.boosting import boost
from policytree.weighting.time_to_event.tree_tables import TreeTables


@pytest.mark.parametrize("gaps", [False, True])
def test_tables_of_trees_are_the_trees(rng, gaps):
    n, J, rounds = 600, 7, (1, 5, 20)
    Z = np.column_stack([rng.normal(size=(n, 3)), rng.integers(3, size=(n, 2)).astype(float)])
    bins = rng.integers(J, size=n)
    rate = np.exp(0.5 * Z[:, 0] + 0.4 * (Z[:, 3] > 0) * bins)
    if gaps:
        Z[rng.random(Z.shape) < 0.2] = np.nan
    fitted = boost(np.column_stack([Z, bins]), rng.poisson(rate).astype(float), np.ones(n), "poisson", 20)
    new = rng.normal(size=(80, 5))
    new[rng.random(new.shape) < 0.3] = np.nan
    every = np.column_stack([np.repeat(new, J, axis=0), np.tile(np.arange(float(J)), len(new))])
    expected = fitted.stages(every, rounds).reshape(3, 80, J)
    found = fitted.scale * np.exp(TreeTables.of(fitted.booster, J).stages(new, rounds))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
