"""Where errors of rounded rows cancel, fewer trees are evaluated exactly: the bound of what is left over holds."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.problem.types import Problem, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.kernels.base.layout import Rounded, Rows, Rules
from policytree.solvers.kernels.depth_two import rounding_errors
from policytree.solvers.kernels.depth_two.pair_tables import table_pays
from tests.support import oracles

#: Kernels that only kernels call, as Python.
CALLED = {name: getattr(rounding_errors, name).py_func for name in ("divide_codes", "largest_at_lines")}

#: Whole losses of action 1, 2, ... relative to action 0, of which rounding drops the last ``shift`` bits.
LOSSES = {
    "any": lambda rng, shape, shift: rng.integers(-(10**6), 10**6, shape),
    "none above zero": lambda rng, shape, shift: rng.integers(-(10**6), 1, shape),
    "all rounded down": lambda rng, shape, shift: rng.integers(-50, 50, shape) * 2**shift + 2 ** (shift - 1) - 1,
    "all rounded up": lambda rng, shape, shift: rng.integers(-50, 50, shape) * 2**shift + 2 ** (shift - 1),
    "ties once rounded": lambda rng, shape, shift: rng.integers(-1, 2, shape) * 2**shift + rng.integers(0, 2, shape),
    "huge and small": lambda rng, shape, shift: rng.integers(-9, 10, shape) * 2 ** rng.integers(0, 40, shape),
}


def quarters_of(codes, f, g):
    """For every cut of f, each of its sides as the pairs of leaves that a cut of g makes of it."""
    for t in range(codes[f].max() + 1):
        for side in (codes[f] <= t, codes[f] > t):
            yield [(side & (codes[g] <= u), side & (codes[g] > u)) for u in range(codes[g].max() + 1)]


def cost(losses, rows) -> int:
    return min(0, *losses[rows].sum(axis=0).tolist())


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    values=st.integers(2, 25),
    K=st.integers(2, 4),
    shift=st.integers(1, 8),
    kind=st.sampled_from(sorted(LOSSES)),
)
@settings(max_examples=30, deadline=None)
def test_no_side_is_further_from_its_rounded_value(seed, n, values, K, shift, kind):
    """The theorem and its corollary, for every cut of f and of every second feature, in whole numbers."""
    rng = np.random.default_rng(seed)
    codes = np.stack([np.unique(rng.integers(0, values, n), return_inverse=True)[1] for _ in range(3)])
    codes[1] = codes[1] * 2 + 1  # codes without rows, as columns in parts have
    bins = codes.max(axis=1) + 1
    offset = np.concatenate([[0], np.cumsum(bins)])
    planes = LOSSES[kind](rng, (K - 1, n), shift)
    kept = ((planes + (1 << shift >> 1)) >> shift).astype(np.int64)
    # As if all errors together said nothing: kernels take the smaller of both bounds.
    rounded = Rounded(kept, np.zeros(n, np.int64), shift, 1)
    rows = Rows(codes.astype(np.uint32), planes, bins, offset, np.zeros(3, np.int64), np.full(3, -1), n)
    rules = Rules(K - 1, np.empty(0, np.int64), 0, 0, -1, 0, 0)
    with mock.patch.multiple(rounding_errors, **CALLED, LINES=8):
        of_rows = rounding_errors.make_row_errors.py_func(rows, rules, rounded, True)
        of_sides = [rounding_errors.side_error.py_func(of_rows, f, rules) for f in range(3)]
    errors = (planes - (kept << shift)).T
    for f, most in enumerate(of_sides):
        quarter, apart = 0, 0
        for g in range(3):
            for side in quarters_of(codes, f, g):
                quarter = max(quarter, *(np.abs(errors[leaf].sum(axis=0)).max() for pair in side for leaf in pair))
                exact, found = (
                    min(sum(cost(losses.T, leaf) for leaf in pair) for pair in side)
                    for losses in (planes, kept << shift)
                )
                apart = max(apart, abs(exact - found))
        assert apart <= 2 * quarter <= most <= 2 * quarter + of_rows.within[f] + of_rows.within.max()
        assert of_rows.within[f] <= np.bincount(of_rows.blocks[f], weights=of_rows.largest).max()
        assert of_rows.within[f] == 0 or len(np.unique(codes[f])) > 1


@pytest.mark.parametrize(("n_actions", "even", "sign"), [(2, None, 1), (2, 0, -1), (3, None, -1), (3, 0, 1), (3, 1, 1)])
def test_trees_that_rounding_cannot_tell_apart_are_told_apart(rng, n_actions, even, sign):
    """Whole losses whose last ten bits rounding hides, and many trees that tie in the others: brute force agrees.

    Where one action's losses are ``even``, all rows are rounded one way: ``Rounded.error`` is 1 if that is down.
    """
    n = rounding_errors.LEAST_ROWS + 104
    values = 280 if n_actions == 2 else 170
    X = rng.integers(0, values, (n, 2)).astype(float)
    assert not table_pays.py_func(values, values, n, n_actions == 2)
    losses = rng.integers(0, 2, (n, n_actions)) * 2**30 + rng.integers(0, 2**10, (n, n_actions))
    if even is not None:
        losses[:, even] &= -(2**10)
    losses = sign * losses
    losses[:, 1] += np.where(X[:, 0] > 60, 2**29, -(2**29)) * np.where(X[:, 1] > 99, 1, -1)
    found = solve_direct(Problem(bin_matrix(X), losses.astype(float), 0.0, 2))
    assert found.status is Status.OPTIMAL
    assert found.objective == found.lower_bound == oracles.best_objective_fast(oracles.code_columns(X), losses)


def one_feature_without_errors() -> tuple[np.ndarray, np.ndarray]:
    """Columns and whole losses in which four rows' errors cancel in every quarter of column b, but not of column a.

    The best tree begins with a, and its rounded value is a unit above that of the best tree that begins with b: so a
    tree of which rounding hides nothing meets one of which it hides something.
    """
    rng, B, n, shift = np.random.default_rng(0), 300, 17_000, 20
    every = rng.permutation(2 * B * B)
    X = np.stack([every // (2 * B), every // 2 % B, every % 2])
    alone = (X[1] == 0) | (X[0] <= 1)  # these rows stand in blocks of one code
    a, b, h = X = X[:, np.concatenate([np.flatnonzero(alone), np.flatnonzero(~alone)[: n - alone.sum()]])]
    low_b, low_a = (a > 151) & (b == 151), (b > 151) & (a == 151)  # what a cut of either feature at 151 leaves over
    unit = rng.integers(150_000, 230_000, n)
    unit[low_b | low_a] //= 10
    unit[np.flatnonzero(low_b)[0]] += unit[low_a].sum() + 1 - unit[low_b].sum()
    losses = np.where((a <= 150) ^ (b <= 150) ^ low_b ^ low_a, -1, 1) * unit * 2**shift
    for A, H in np.ndindex(2, 2):
        (i,) = np.flatnonzero((b == 0) & (a == A) & (h == H))
        losses[i] += (2 ** (shift - 1) - 1) * (1 - 2 * (A ^ H))
    return X.T.astype(float), np.column_stack([np.zeros(n, np.int64), losses])


def test_rounding_may_hide_nothing_of_one_feature_and_something_of_another():
    """The tree that begins with column b was taken for the best one, and proved: a reader of the change found it."""
    X, losses = one_feature_without_errors()
    found = solve_direct(Problem(bin_matrix(X), losses.astype(float), 0.0, 2))
    assert found.status is Status.OPTIMAL
    assert found.objective == found.lower_bound == oracles.best_objective_fast(oracles.code_columns(X), losses)
