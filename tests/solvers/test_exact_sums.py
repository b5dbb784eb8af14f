"""Sums without rounding: those of fractions, the same in any order, for any numbers; and the leaves that rows reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policytree.exceptions import InputError
from policytree.solvers.core.compilation import load_kernels, streamed_kernels
from policytree.solvers.core.exact_sums import ExactSum, ExactSums, exact_sum, exact_sums, rounded_sum
from policytree.solvers.core.scoring import right_children
from policytree.solvers.kernels.out_of_core.code_tables import find_leaves
from tests.support.kernel_oracles import exact_sum_of, leaf_of

FINITE = st.floats(allow_nan=False, allow_infinity=False)  # subnormal numbers and -0.0 among them


@st.composite
def grouped_numbers(draw):
    """Numbers (P, n), a group for each of n, and how many groups there are."""
    P, n, groups = draw(st.integers(1, 3)), draw(st.integers(0, 12)), draw(st.integers(1, 4))
    values = draw(arrays.arrays(np.float64, (P, n), elements=FINITE))
    return values, draw(arrays.arrays(np.int64, n, elements=st.integers(0, groups - 1))), groups


@given(grouped_numbers())
def test_sums_of_groups_are_those_of_fractions(case):
    values, group, groups = case
    found = exact_sums(values, group, groups)
    for g in range(groups):
        for p in range(len(values)):
            assert found[g, p].total() == exact_sum_of(values[p, group == g].tolist())
    assert found.total() == exact_sum_of(values.ravel().tolist())


@given(grouped_numbers())
def test_floats_are_fractions_rounded_once_and_beyond_their_range_refused(case):
    values, group, groups = case
    exact = [[exact_sum_of(row[group == g].tolist()) for row in values] for g in range(groups)]
    found = exact_sums(values, group, groups)
    try:
        expected = [[float(number) for number in row] for row in exact]
    except OverflowError:
        with pytest.raises(InputError, match="too large to be added up"):
            found.to_float()
    else:
        assert found.to_float().tolist() == expected


@given(grouped_numbers(), st.randoms(use_true_random=False), st.integers(0, 12))
def test_no_order_and_no_division_into_parts_changes_a_sum(case, random, cut):
    values, group, groups = case
    whole = exact_sums(values, group, groups)
    order = list(range(len(group)))
    random.shuffle(order)
    parts = [exact_sums(values[:, rows], group[rows], groups) for rows in (order[:cut], order[cut:])]
    together = parts[0] + parts[1]
    assert (together + ExactSums(-whole.whole, whole.exponent)).whole.ravel().tolist() == [0] * whole.whole.size
    one, other = ExactSum(), ExactSum()
    for total, rows in ((one, order[:cut]), (other, order[cut:])):
        total.add(values[0, rows])
    one.merge(other)
    assert one.value == exact_sum(values[0])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_none_are_refused(bad):
    with pytest.raises(InputError, match="too large to be added up"):
        rounded_sum(np.array([1.0, bad]))


def test_many_numbers_fill_no_chunk(rng):
    """A million of the largest numbers below 2, whose bits are all ones: chunks come closest to overflowing."""
    x = np.full(10**6, np.nextafter(2.0, 0.0))
    assert exact_sum(x) == 10**6 * exact_sum(x[:1])
    assert rounded_sum(np.concatenate([x, -x, [1e-300]])) == 1e-300
    y = rng.normal(size=10**5)
    assert rounded_sum(y) == rounded_sum(rng.permutation(y)) == float(exact_sum_of(y.tolist()))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_leaves_of_rows(rng, kind):
    load_kernels(streamed_kernels(np.dtype(kind).name))
    feature = np.array([0, 1, -1, -1, 2, -1, 0, -1, -1])
    right = right_children(feature.tolist())
    goes_left = rng.integers(0, 2, (9, 5)).astype(np.uint8)
    codes = rng.integers(0, 5, (3, 200)).astype(kind)
    leaves = np.empty(200, np.int64)
    find_leaves(codes, feature, goes_left, np.vstack([np.arange(1, 10), right]), leaves)
    assert leaves.tolist() == [leaf_of(row, feature, goes_left, right) for row in codes.T.tolist()]
    assert len({*leaves.tolist()}) > 2
