"""Data on which greedy choices fail, with optima known without any search."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.solvers import SOLVERS
from tests.contract.solving import prove
from tests.support.strategies import Case

pytestmark = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


def _all_bit_rows(n_bits, copies=1):
    bits = (np.arange(2**n_bits)[:, None] >> np.arange(n_bits)) & 1
    return np.tile(bits, (copies, 1)).astype(float)


@pytest.mark.parametrize("parity_bits", [2, 3, 4])
def test_parity(solver, parity_bits):
    """On all rows of bits, no tree shallower than the parity is better than a coin; at its depth a tree is perfect."""
    X = _all_bit_rows(6, copies=2)
    odd = X[:, :parity_bits].sum(axis=1) % 2 == 1
    losses = np.column_stack([odd, ~odd]).astype(float)
    shuffled = np.roll(X, 2, axis=1)
    too_shallow = prove(solver, Case(shuffled, losses, 0.0, parity_bits - 1))
    assert too_shallow.objective == len(X) / 2
    perfect = prove(solver, Case(shuffled, losses, 0.0, parity_bits))
    assert perfect.objective == 0
    assert perfect.tree.n_leaves == 2**parity_bits
    # Just below and above the price at which the perfect tree pays.
    price = len(X) / 2 / (2**parity_bits - 1)
    assert prove(solver, Case(shuffled, losses, price - 0.125, parity_bits)).tree.n_leaves == 2**parity_bits
    assert prove(solver, Case(shuffled, losses, price + 0.125, parity_bits)).tree.n_leaves == 1


def test_parity_without_depth_limit(solver):
    X = _all_bit_rows(4, copies=2)
    odd = X[:, :3].sum(axis=1) % 2 == 1
    losses = np.column_stack([odd, ~odd]).astype(float)
    assert prove(solver, Case(X, losses, 1.0, None)).objective == 8
    assert prove(solver, Case(X, losses, 4.0, None)).objective == 20


def test_continuous_checkerboard(solver, rng):
    """XOR of two continuous features beside a feature that is alone the best single split."""
    x = rng.permutation(np.linspace(-1, 1, 120))
    y = rng.permutation(np.linspace(-1, 1, 120))
    odd = (x > 0) != (y > 0)
    decoy = np.where(odd, 1.0, -1.0) * (rng.random(120) < 0.6) + rng.normal(size=120) * 0.01
    losses = np.column_stack([odd, ~odd]).astype(float)
    assert prove(solver, Case(np.column_stack([decoy, x, y]), losses, 0.0, 2)).objective == 0


@pytest.mark.parametrize("max_depth", [3, 4])
def test_perfectly_separable(solver, max_depth, rng):
    """Labels made by a tree of depth three: no loss is left, whatever else could be split on."""
    X = rng.normal(size=(400, 6))
    leaf = np.where(
        X[:, 0] > 0.3,
        np.where(X[:, 1] > 0, 2 + (X[:, 4] > 0.5), 4),
        np.where(X[:, 2] > -0.2, 1, 0 + 5 * (X[:, 3] > 0)),
    )
    losses = (leaf[:, None] % 3 != np.arange(3)).astype(float)
    solution = prove(solver, Case(X, losses, 0.0, max_depth))
    assert solution.objective == 0
    assert solution.tree.n_leaves <= 2**max_depth
