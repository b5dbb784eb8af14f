"""Born-again trees: the exact search against brute force, and against published forests."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.born_again import regions
from policytree.born_again.bounds import bounds_of_parts
from policytree.born_again.faithful import check_faithfulness
from policytree.born_again.grid import essence, make_grid
from policytree.born_again.heuristic import grow
from policytree.born_again.readers import read_ensemble
from policytree.born_again.search import GridSearch
from policytree.born_again.solve import solve_born_again
from policytree.born_again.trees import make_tree
from policytree.exceptions import InputError
from policytree.problem.types import SearchLimits, Status
from policytree.solvers.core.limits import Clock, stopped_by
from tests.support.born_again_oracles import SmallestTrees, read

FORESTS = json.loads((Path(__file__).parent / "born_again_forests.json").read_text(encoding="utf-8"))
OBJECTIVES = ("depth", "leaves", "depth_then_leaves")


@pytest.fixture(params=["as it is", "small core", "no ranges"])
def layout(request, monkeypatch):
    """Other partings of the features must lead to the same trees."""
    if request.param != "as it is":
        monkeypatch.setattr(regions, "CORE", ((np.inf, 3),))
    if request.param == "no ranges":
        monkeypatch.setattr(regions, "ROWS", 1)
    return request.param


def random_classes(rng, shape, K) -> np.ndarray:
    """Classes with some structure: a few boxes laid over each other, then some cells of chance."""
    out = np.zeros(shape, dtype=np.uint8)
    for _ in range(rng.integers(1, 6)):
        corners = [np.sort(rng.integers(0, n, 2)) for n in shape]
        out[tuple(slice(a, b + 1) for a, b in corners)] = rng.integers(0, K)
    noise = rng.random(shape) < rng.choice([0.0, 0.1, 0.5])
    return np.where(noise, rng.integers(0, K, shape), out).astype(np.uint8)


def check_against_brute_force(classes: np.ndarray) -> None:
    small = essence(classes)
    if not small.features:
        assert (classes == classes.flat[0]).all()
        return
    expected = SmallestTrees(small.classes).values()
    assert expected["leaves"][1] == SmallestTrees(classes).leaves(tuple((0, n - 1) for n in classes.shape))
    for objective, (depth, leaves) in expected.items():
        found = GridSearch(small.classes, objective, Clock(None)).run()
        given_classes, its_depth, its_leaves = read(found.nodes, small.classes.shape)
        assert (given_classes == small.classes).all()
        assert depth is None or its_depth == depth == found.depth_bound
        assert leaves is None or its_leaves == leaves
        assert found.depth_bound <= its_depth and found.leaves_bound <= its_leaves


def test_least_depth_least_leaves_and_both_agree_with_brute_force(layout):
    @settings(max_examples=25, deadline=None)
    @given(
        seed=st.integers(0, 2**32 - 1), shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), K=st.integers(2, 4)
    )
    def run(seed, shape, K):
        check_against_brute_force(random_classes(np.random.default_rng(seed), shape, K))

    run()


def test_features_with_many_cuts_fill_several_words(monkeypatch):
    monkeypatch.setattr(regions, "CORE", ((np.inf, 3),))
    rng = np.random.default_rng(0)
    classes = np.repeat(rng.integers(0, 3, 12), 7).astype(np.uint8)  # one feature, many dead cuts
    check_against_brute_force(np.ascontiguousarray(np.stack([classes, np.roll(classes, 5)], axis=1)))
    alternating = np.tile([0, 1], 40).astype(np.uint8)[:, None]
    found = GridSearch(np.ascontiguousarray(alternating.ravel()), "leaves", Clock(None)).run()
    assert read(found.nodes, (80,))[2] == 80  # 79 cuts, all of which matter
    assert GridSearch(np.ascontiguousarray(alternating.ravel()), "depth", Clock(None)).run().depth_bound == 7


@pytest.mark.parametrize("forest", FORESTS, ids=lambda f: f"{f['dataset']}-{f['fold']}-{len(f['trees'])}")
def test_published_forests_have_the_published_sizes(forest):
    ensemble = read_ensemble({"trees": forest["trees"], "n_features": forest["n_features"]})
    for objective, (depth, leaves) in forest["sizes"].items():
        found = solve_born_again(ensemble, objective)
        assert found.status is Status.OPTIMAL
        assert depth is None or found.depth == depth == found.depth_bound
        assert leaves is None or found.leaves == leaves == found.leaves_bound
        assert check_faithfulness(found.tree, ensemble).faithful


def some_forest(n_trees: int = 4):
    forest = max(FORESTS, key=lambda f: len(f["trees"]))
    return read_ensemble({"trees": forest["trees"][:n_trees], "n_features": forest["n_features"]})


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_greedy_trees_are_faithful_and_their_bounds_hold(objective, monkeypatch):
    ensemble = some_forest()
    best = solve_born_again(ensemble, objective)
    for table, boxes, exact in ((1 << 18, 3e6, False), (1 << 18, 500, True), (16, 500, True), (16, 50, False)):
        monkeypatch.setattr("policytree.born_again.heuristic.TABLE", table)
        monkeypatch.setattr("policytree.born_again.heuristic.EXACT", boxes)
        grown = grow(make_grid(ensemble), objective, Clock(None), exact=exact)
        tree = make_tree(np.array(grown.nodes), ensemble)
        assert check_faithfulness(tree, ensemble).faithful
        assert grown.depth_bound <= best.depth and grown.leaves_bound <= best.leaves
        assert tree.max_depth >= best.depth or objective == "leaves"
        assert tree.n_leaves >= best.leaves or objective != "leaves"


def test_limits_leave_a_faithful_tree_and_a_bound():
    ensemble = some_forest(7)
    best = solve_born_again(ensemble, "leaves")
    event = threading.Event()
    event.set()
    with stopped_by(event):
        interrupted = solve_born_again(ensemble, "leaves")
    by_memory = solve_born_again(ensemble, "leaves", SearchLimits(memory_limit=1.0))
    assert by_memory.status is Status.MEMORY_LIMIT
    assert interrupted.status in (Status.INTERRUPTED, Status.OPTIMAL)  # it may be done before anybody looks
    for found in (interrupted, by_memory):
        assert found.leaves_bound <= best.leaves <= found.leaves
        assert check_faithfulness(found.tree, ensemble).faithful


def test_a_stopped_search_bounds_by_what_it_has_solved():
    classes = random_classes(np.random.default_rng(3), (4, 4, 4, 4), 3)
    clock = Clock(None)
    search = GridSearch(essence(classes).classes, "leaves", clock)
    clock.stop(Status.INTERRUPTED)
    found = search.run()
    assert found.nodes is None and found.leaves_bound == sum(n - 1 for n in search.classes.shape) + 1


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_parts_of_a_grid_bound_the_whole(objective):
    ensemble = some_forest(7)
    best, grid = solve_born_again(ensemble, objective), make_grid(ensemble)
    for classes in (None, essence(grid.classes(grid.whole())).classes):
        depth, leaves = bounds_of_parts(grid, classes, objective, 60.0, None)  # the last part is the whole
        assert objective == "leaves" or depth == best.depth
        assert objective == "depth" or leaves <= best.leaves
        assert objective != "leaves" or leaves == best.leaves


def test_bounds_of_small_parts_agree_with_brute_force(monkeypatch):
    monkeypatch.setattr("policytree.born_again.bounds.SIZES", (5, 30, 100))
    rng, close = np.random.default_rng(0), 0
    for _ in range(20):
        classes = essence(random_classes(rng, rng.integers(2, 5, size=3), 3)).classes
        if classes.ndim:
            expected = SmallestTrees(classes).values()
            depth, leaves = bounds_of_parts(None, classes, "depth_then_leaves", 60.0, None)
            assert depth <= expected["depth"][0] and leaves <= expected["leaves"][1]
            close += leaves > sum(n - 1 for n in classes.shape) + 1  # better than by the number of cuts
    assert close > 3


def test_no_tree_in_twice_the_time_is_an_error():
    with pytest.raises(InputError, match="raise time_limit"):
        grow(make_grid(some_forest(7)), "leaves", Clock(None), limit=0.0)


def test_progress_is_reported():
    seen = []
    found = solve_born_again(some_forest(7), "leaves", SearchLimits(progress=seen.append))
    assert seen[-1].share_closed == 1.0 and seen[-1].lower_bound <= found.leaves
    grown = []
    search = GridSearch(np.eye(3, dtype=np.uint8), "depth", Clock(None), most_boxes=1)
    assert search.run().nodes is None  # too many boxes
    grow(make_grid(some_forest()), "leaves", Clock(None), report=lambda share, tree: grown.append(share))
    assert grown[-1] == 1.0


def test_unknown_objective_is_refused():
    with pytest.raises(InputError, match="objective must be 'depth', 'leaves' or"):
        solve_born_again(some_forest(), "size")
