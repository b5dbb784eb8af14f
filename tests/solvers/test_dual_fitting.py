"""Numbers fitted to boxes: the nearest ones to what known boxes allow, and from a coarse table to a finer one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from policytree.solvers.core.compilation import ROW_DUALS, load_kernels
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import new_control
from policytree.solvers.exact.bounds.dual_fitting import DualFitting, merge_codes
from policytree.solvers.kernels.pricing.dual_projection import KnownBoxes, find_runs, project
from tests.solvers.test_row_duals import noise_problem, started


def known_boxes(sets, bound, scale) -> KnownBoxes:
    """Sets of rows, with what the sum of the numbers of each may be."""
    start = np.concatenate([[0], np.cumsum([len(rows) for rows in sets])]).astype(np.int64)
    norm = np.array([scale[rows].sum() for rows in sets])
    index, first = np.concatenate(sets).astype(np.int32), np.zeros(len(sets) + 1, np.int64)
    runs, names = np.zeros((len(index), 2), np.int32), np.zeros((2, len(sets)), np.int64)
    known = KnownBoxes(index, start, runs, first, bound.copy(), norm, np.zeros(len(sets)), names)
    for k in range(len(sets)):
        find_runs(known, k)
    return known


@pytest.mark.parametrize("sweeps, climbs", [(30, 200), (200, 0)], ids=["climbs", "sweeps alone"])
@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_the_nearest_that_boxes_allow(seed, sweeps, climbs):
    """Optimality conditions, which only the nearest numbers fulfil: they are enough, as the problem is convex."""
    load_kernels([(ROW_DUALS, "")])
    rng = np.random.default_rng([seed, 301])
    for _ in range(20):
        n, K = int(rng.integers(3, 40)), int(rng.integers(1, 30))
        sets = [np.flatnonzero(rng.random(n) < rng.uniform(0.1, 0.6)) for _ in range(K)]
        sets = [rows if len(rows) else np.arange(2) for rows in sets]
        scale, inside = rng.uniform(0.2, 2.0, n), rng.normal(size=n)
        slack = rng.uniform(0, 0.5, K) * (rng.random(K) < 0.7)
        bound = np.array([inside[rows].sum() for rows in sets]) + slack  # so that some numbers keep all bounds
        known, u = known_boxes(sets, bound, scale), rng.normal(size=n) * 3
        first, target = u.copy(), inside.sum()
        for _ in range(400):
            project(u, scale, known, K, target, 1e-10, sweeps, climbs, np.zeros(8, np.int64))
        violation = np.array([u[rows].sum() for rows in sets]) - bound
        assert violation.max() < 1e-6 and abs(u.sum() - target) < 1e-6
        assert known.multiplier.min() >= 0 and np.abs(known.multiplier * violation).max() < 1e-5
        pushed = np.zeros(n)
        for rows, multiplier in zip(sets, known.multiplier, strict=True):
            pushed[rows] += multiplier
        assert np.ptp((u - first) / scale + pushed) < 1e-6  # the same for every row: what the target moves them by


def test_a_stopped_fit_ends(rng):
    load_kernels([(ROW_DUALS, "")])
    control = np.ones(8, np.int64)
    known = known_boxes([np.arange(3), np.arange(1, 5)], np.array([-1.0, -1.0]), np.ones(5))
    assert project(np.zeros(5), np.ones(5), known, 2, 5.0, 1e-12, 30, 200, control) == 7  # one sweep


def test_codes_are_merged_to_parts_of_equal_mass():
    codes = np.array([[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 1, 1, 1, 1]], np.uint16)
    merged, cell = merge_codes(codes, np.array([4.0, 1, 1, 1, 1, 1, 1, 2]), 2)
    assert merged.shape == (2, 3) and merged.dtype == np.uint16
    assert merged[:, cell].tolist() == [[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1]]  # 6 of 12


@pytest.mark.parametrize("seed", range(3))
def test_cells_of_fewer_codes_consist_of_cells_of_more(seed):
    rng = np.random.default_rng([seed, 302])
    for _ in range(30):
        n = int(rng.integers(2, 300))
        codes = np.stack([rng.integers(0, k, n) for k in rng.integers(1, 90, 3)]).astype(np.uint16)
        mass, cells = rng.uniform(0.1, 5.0, n), np.arange(n)
        for most in (32, 16, 8, 4):
            merged, cell = merge_codes(codes, mass, most)
            assert merged.max() < most
            for f, of_rows in enumerate(merged[:, cell]):  # neighbours are merged, so that boxes stay boxes
                order = np.argsort(codes[f], kind="stable")
                assert (np.diff(of_rows[order].astype(int)) >= 0).all()
            assert len(np.unique(merged, axis=1).T) == merged.shape[1] == cell.max() + 1
            assert all(len(np.unique(cell[cells == c])) == 1 for c in range(cells.max() + 1))
            cells = cell


def test_what_was_fitted_to_a_coarse_table_holds_for_the_whole_one():
    prices, _ = started(noise_problem(303))
    (whole, place), coarse, of_rows = prices.tables[-1], prices.boxes, prices.cell
    cell = np.empty_like(of_rows)
    cell[place] = of_rows
    assert coarse.n_rows < whole.n_rows and coarse.losses.sum() == whole.losses.sum()
    coarse.move(int(0.9 * whole.penalty), 20.0)
    for _ in range(6):
        assert coarse.price(10.0)
        coarse.add_found()
        coarse.fit()
    whole.take_over(coarse, cell)
    assert whole.n_known == (coarse.known.multiplier[: coarse.n_known] > 0).sum() > 5
    assert (whole.allowance, whole.target) == (coarse.allowance, coarse.target)
    assert np.isclose(whole.u.sum(), coarse.u.sum())
    of_cells = np.bincount(cell, whole.u)
    assert np.allclose(of_cells, coarse.u)
    for k in range(whole.n_known):  # every box is what learning it from the whole table makes of it
        rows = whole.known.index[whole.known.start[k] : whole.known.start[k + 1]]
        assert whole.known.names[:, k].tolist() == whole.keys[:, rows].sum(axis=1).tolist()
        assert np.isclose(whole.known.norm[k], whole.scale[rows].sum())
        loss = whole.losses[:, rows].sum(axis=1).min()
        assert np.isclose(whole.known.bound[k], (loss + whole.allowance) / whole.penalty)
        inside = whole.codes[:, rows]
        box = np.stack([inside.min(axis=1), inside.max(axis=1)], axis=1)
        assert ((whole.codes >= box[:, :1]) & (whole.codes <= box[:, 1:])).all(axis=0).sum() == len(rows)
        runs = whole.known.runs[whole.known.first[k] : whole.known.first[k + 1]].tolist()
        assert [i for first, end in runs for i in range(first, end)] == rows.tolist()
        assert all(end < first for (_, end), (first, _) in pairwise(runs))


def test_a_coarse_table_out_of_time_leaves_a_certificate_of_the_whole_one():
    prices, _ = started(noise_problem(304, rate=0.002))
    best = prices.node.leaf()[0] + prices.node.penalty
    prices.work(best, [(-1, 0)], 3, 0.01)
    assert len(prices.tables) > 0
    numbers, p = prices.certificates[-1]
    assert numbers.sum() > p > 0 and len(numbers) == prices.node.n_rows


def test_a_target_out_of_reach_is_left():
    """A tree that cannot be so good: coarse tables give up, and the whole one proves what it can."""
    prices, _ = started(noise_problem(305))
    prices.work(prices.node.leaf()[0] * 2, [(-1, 0)] * 4, 3, 5.0)
    assert not prices.tables and len(prices.certificates) > 1


def test_memory_that_is_short_is_said():
    clock = Clock(None, new_control())
    clock.fits_memory = lambda more: False
    codes = np.zeros((2, 5), np.uint16)
    assert DualFitting(codes, np.zeros((2, 5), np.int64), np.zeros((2, 5), np.int64), np.ones(5), 10, clock).too_large
