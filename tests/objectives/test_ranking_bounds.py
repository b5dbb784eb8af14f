"""Why areas and restricted F-scores are proved: the costs of leaves by a reference, and the bounds of sets of rows."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from policytree.objectives import OmegaFScore, PartialAUC
from policytree.objectives.auc import AUC
from policytree.objectives.references import Area, LabelledByOmega, by_slope
from policytree.problem.types import SizeGates
from policytree.solvers.core.compilation import RANKING, load_kernels
from policytree.solvers.core.limits import Clock
from policytree.solvers.kernels.subsets.ranking_costs import costs_of_rows
from policytree.solvers.nonadditive.ranking_bounds import coarse_boxes, fill
from policytree.solvers.nonadditive.ranking_search import costs_by
from tests.support import ranking_oracles


@pytest.fixture(autouse=True)
def kernels():
    load_kernels([(RANKING, "")])


def shares_of(leaf_stats, N, P):
    """Shares of positives and negatives of every leaf, (leaves, 2)."""
    return np.array([[float(p) / P, float(n) / N] for n, p in leaf_stats])


def curves(rng, all_stats, N, P):
    """Curves of single trees, and mixtures of two."""
    listed = sorted(all_stats)
    for _ in range(6):
        one, two = (shares_of(listed[int(rng.integers(len(listed)))], N, P) for _ in "ab")
        yield by_slope(np.vstack([0.5 * one, 0.5 * two]), int(rng.integers(2, 9)))


def readable_cost(reference, leaves):
    """Return the joint cost of leaves with these shares: pieces on which nothing changes, from the definitions."""
    pairs = reference.pairs[reference.pairs[:, 1] > 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(leaves[:, 1] > 0, leaves[:, 0] / leaves[:, 1], 0.0)
    places = np.unique(np.concatenate([[0.0], own, pairs[:, 0] / pairs[:, 1]]))
    total, limit = 0.0, reference.limit
    for a, b in pairwise(places):
        middle = (a + b) / 2
        S = pairs[pairs[:, 0] / pairs[:, 1] > middle, 1].sum()
        x = leaves[own > middle, 1].sum()
        height = S * x
        if reference.curved and x > S:
            height = (x**2 / 2 if x <= limit else limit * x - limit**2 / 2) + S**2 / 2
        total += (b - a) * height
    return total


def kernel_costs(reference, leaves):
    """Return the kernel's cost of each leaf."""
    out = np.empty(len(leaves))
    costs_of_rows(costs_by(reference), np.ascontiguousarray(leaves), out)
    return out


def tiny(rng):
    """Rows, their bags of every tree of depth 3, and the totals."""
    n = int(rng.integers(5, 9))
    X, y = rng.integers(0, 3, size=(n, 2)).astype(float), rng.integers(0, 2, n)
    y[:2] = 0, 1
    weight = rng.integers(1, 4, n)
    all_stats = ranking_oracles.all_leaf_stats(X, y == 1, [Fraction(int(w)) for w in weight], 3)
    N, P = (float(sum(leaf[k] for leaf in next(iter(all_stats)))) for k in (0, 1))
    return X, y, weight, all_stats, N, P


def test_references_bound_every_tree(rng):
    for _ in range(12):
        *_, all_stats, N, P = tiny(rng)
        price = float(rng.choice([0.0, 0.01, 0.1]))
        for curve in curves(rng, all_stats, N, P):
            for limit in (1.0, 0.4):
                lost = {
                    leaf_stats: float(1 - ranking_oracles.area(leaf_stats, Fraction(limit))) + price * len(leaf_stats)
                    for leaf_stats in all_stats
                }
                best = float(rng.choice(sorted(lost.values())))
                check_reference(Area(curve, price, limit), lost, best, N, P)
        omega = OmegaFScore(omega=float(rng.uniform(0.5, 3)))
        lost = {
            leaf_stats: float(1 - ranking_oracles.omega_f_score(leaf_stats, 1, omega.omega)) + price * len(leaf_stats)
            for leaf_stats in all_stats
        }
        best = float(rng.choice(sorted(lost.values())))
        check_reference(LabelledByOmega(omega.squared, price, best, 2, P / N), lost, best, N, P)


def check_reference(reference, lost, best, N, P):
    """Costs are what they are defined as, and within the budget of every better tree; the bound holds for these."""
    for leaf_stats in lost:
        leaves = shares_of(leaf_stats, N, P)
        each, together = kernel_costs(reference, leaves), readable_cost(reference, leaves)
        np.testing.assert_allclose(each, [readable_cost(reference, leaf[None]) for leaf in leaves], atol=1e-12)
        assert each.sum() <= together + 1e-12
        h = np.array([len(leaf_stats)])
        if lost[leaf_stats] < best:
            assert together <= reference.cutoff(best, h)[0] + 1e-9
            assert reference.loss_at(np.array([together]), h)[0] <= lost[leaf_stats] + 1e-9


def test_parts_cost_no_more_than_their_leaf(rng):
    """Bounds of sets of rows, and those that neighbouring cuts hand on to each other, rest on this."""
    for _ in range(300):
        curve = by_slope(rng.dirichlet(np.full(5, 0.4), 2).T, 9)
        for reference in (Area(curve, 0.01, 1.0), Area(curve, 0.01, float(rng.uniform(0.05, 0.9)))):
            one, two = rng.dirichlet(np.full(3, 0.5), 2).T[:2]
            whole, first, second = kernel_costs(reference, np.array([one + two, one, two]))
            assert whole >= first + second - 1e-12


def least_costs(reference, X, positive, weight, depth):
    """The least cost of a tree, by brute force, of the rows of every box of codes."""
    N, P = (float(weight[positive == k].sum()) for k in (0, 1))
    found = {}
    values = [np.unique(x) for x in X.T]
    ranges = [[(a, b) for a in range(len(v)) for b in range(a + 1, len(v) + 1)] for v in values]
    for one in ranges[0]:
        for two in ranges[1]:
            inside = np.ones(len(X), dtype=bool)
            for x, v, (a, b) in zip(X.T, values, (one, two), strict=True):
                inside &= (x >= v[a]) & (x <= v[b - 1])
            if inside.any():
                rows = [Fraction(int(w)) for w in weight[inside]]
                all_stats = ranking_oracles.all_leaf_stats(X[inside], positive[inside] == 1, rows, depth)
                found[one, two] = min(
                    kernel_costs(reference, shares_of(leaf_stats, N, P)).sum() + reference.price * len(leaf_stats)
                    for leaf_stats in all_stats
                )
    return found


@pytest.mark.parametrize("most", [1 << 20, 12])
def test_boxes_bound_what_is_in_them(rng, most):
    """Of single codes they are exact; of strips of several codes they are bounds."""
    put_together = False
    for _ in range(6):
        X, y, weight, all_stats, N, P = tiny(rng)
        X = np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T])
        X[:, 0] = rng.permutation(len(X)) // 2
        bins = X.max(axis=0) + 1
        reference = Area(next(curves(rng, all_stats, N, P)), 0.02, float(rng.choice([0.4, 1.0])))
        least = least_costs(reference, X.astype(float), y, weight, 6)
        clock = Clock(None, np.zeros(1, np.int64), None)
        boxes = coarse_boxes(X.T.astype(np.uint16), bins.astype(np.int64), clock, most, SizeGates(least_strips=2))
        shares = np.column_stack([weight * (y == 1) / P, weight * (y == 0) / N])
        boxes = fill(boxes, costs_by(reference), reference.price, X.T.astype(np.uint16), shares, clock.flag)
        put_together |= bool((boxes.strips < bins).any())
        for (one, two), cost in least.items():
            ends = [(boxes.up[j, a], boxes.down[j, b]) for j, (a, b) in enumerate((one, two))]
            if all(a < b for a, b in ends):
                place = sum(
                    boxes.stride[j] * ((b - a - 1) * boxes.strips[j] - (b - a - 1) * (b - a - 2) // 2 + a)
                    for j, (a, b) in enumerate(ends)
                )
                assert boxes.least[place] <= cost + 1e-12
                if most > 12:
                    assert boxes.least[place] == pytest.approx(cost, abs=1e-12)
    assert put_together == (most == 12)


@pytest.mark.parametrize("objective", [AUC(), PartialAUC(0.3)])
def test_the_objective_gives_its_own_reference(objective):
    curve = np.array([[0.7, 0.2], [0.3, 0.8]])
    reference = objective.reference(curve, 0.01, 0.3, 3, 0.5)
    assert reference.limit == getattr(objective, "max_fpr", None) or reference.limit == 1.0
    assert reference.curved


@pytest.mark.parametrize("beta", [1.0, 0.01, 30.0])
@pytest.mark.parametrize("limit", [1.0, 0.2, 1e-4])
def test_moved_weights_move_losses_no_further(rng, beta, limit):
    """Leaves with labels that stay, weights that move by any share of their class: losses are exact fractions."""
    omega, area = OmegaFScore(beta, 1.5), PartialAUC(limit)
    for _ in range(200):
        leaves = int(rng.integers(1, 5))
        before = rng.integers(0, [10, 1000, 10**6][rng.integers(3)], (leaves, 2)) + (np.arange(leaves) == 0)[:, None]
        after = np.maximum(before + rng.integers(-9, 10, (leaves, 2)) * rng.integers(0, 2, 2), 0)
        if not after.sum(axis=0).all():
            continue
        one, two = ([(int(n), int(p)) for n, p in leaf_stats] for leaf_stats in (before, after))
        N, P = (int(total) for total in before.sum(axis=0))
        negatives, positives = (
            Fraction(int(d), t) for d, t in zip(np.abs(after - before).sum(axis=0), (N, P), strict=True)
        )
        labels = rng.integers(0, 2, leaves).tolist()
        pairs = [
            (omega, omega.loss_of(two, labels) - omega.loss_of(one, labels)),
            (area, area.loss(two) - area.loss(one)),
        ]
        for objective, change in [*pairs, (AUC(), AUC().loss(two) - AUC().loss(one))]:
            assert abs(change) <= objective.moved(float(positives), float(negatives), P / N) * (1 + 1e-9)
