"""The classes of a grid's cells are those that the ensemble predicts, ties by rounding included."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from policytree.born_again import TreeEnsemble
from policytree.born_again.grid import essence, make_grid
from policytree.born_again.readers import read_ensemble
from policytree.born_again.solve import solve_born_again
from tests.support.born_again_oracles import cells_of

MODELS = {
    "votes of two words": (DecisionTreeClassifier(max_leaf_nodes=150, random_state=0), "soft"),
    "shares": (RandomForestClassifier(3, max_leaf_nodes=9, random_state=0), "soft"),
    "votes": (RandomForestClassifier(4, max_leaf_nodes=9, random_state=0), "hard"),
    "even votes": (ExtraTreesClassifier(4, max_leaf_nodes=6, random_state=0), "hard"),
    "boosting": (GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), "soft"),
    "histograms": (HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=5, min_samples_leaf=5), "soft"),
}


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_every_cell_has_the_predicted_class(name, K):
    X, y = make_classification(300, 4, n_informative=3, n_redundant=0, n_classes=K, flip_y=0.4, random_state=0)
    model, voting = MODELS[name]
    ensemble = read_ensemble(model.fit(np.round(X, 1), y), voting)
    grid = make_grid(ensemble)
    rng = np.random.default_rng(0)
    for _ in range(3):  # the whole, and parts of it
        part = [np.sort(rng.permutation(n)[: max(1, min(n, 12))]) for n in grid.shape]
        ends = [np.append(each, np.inf)[cells] for each, cells in zip(grid.thresholds, part, strict=True)]
        points = np.stack([each.ravel() for each in np.meshgrid(*ends, indexing="ij")], axis=1)
        classes = grid.classes(part)
        assert np.array_equal(classes.ravel(), ensemble.predict_codes(points))
        small = essence(classes)
        kept = [small.cuts[small.features.index(j)] if j in small.features else [] for j in range(4)]
        again = classes[np.ix_(*[[*cuts, n - 1] for cuts, n in zip(kept, classes.shape, strict=True)])]
        assert np.array_equal(small.classes, again.reshape(small.classes.shape))


def test_sums_that_differ_by_rounding_are_made_in_the_ensembles_order():
    shares = [(0.1, 0.6), (0.2, 0.0), (0.3, 0.0)]
    assert (0.1 + 0.2) + 0.3 > 0.6 == (0.3 + 0.2) + 0.1
    seen = set()
    for order in permutations(shares):
        trees = [
            {"feature": [j, -1, -1], "threshold": [0.5, None, None], "left": [1, -1, -1], "right": [2, -1, -1],
             "value": [[0, 0], share[::-1], share]}
            for j, share in enumerate(order)
        ]  # fmt: skip
        ensemble = TreeEnsemble.from_arrays(trees, n_features=3)
        grid = make_grid(ensemble)
        classes = grid.classes(grid.whole()).ravel()
        assert np.array_equal(classes, ensemble.predict_codes(cells_of(ensemble.thresholds())))
        seen.add(classes.tobytes())
    assert len(seen) > 1


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_ties_of_votes_and_of_small_shares(seed):
    rng = np.random.default_rng(seed)
    K, T, p = int(rng.integers(2, 5)), int(rng.integers(1, 7)), int(rng.integers(1, 4))
    leaves = rng.choice([0.0, 1 / 3, 0.1, 0.2, 0.5, 1.0], size=(T, 3, K)) + rng.choice([0.0, 1e15])
    trees = [
        {"feature": [rng.integers(0, p), -1, rng.integers(0, p), -1, -1],
         "threshold": [rng.integers(0, 3), None, rng.integers(0, 3), None, None],
         "left": [1, -1, 3, -1, -1], "right": [2, -1, 4, -1, -1], "value": leaves[t][[0, 0, 0, 1, 2]]}
        for t in range(T)
    ]  # fmt: skip
    ensemble = TreeEnsemble.from_arrays(trees, n_features=p)
    grid = make_grid(ensemble)
    expected = ensemble.predict_codes(cells_of(ensemble.thresholds()))
    assert np.array_equal(grid.classes(grid.whole()).ravel(), expected)


def test_one_class_is_one_leaf_whatever_the_scores():
    tree = {"feature": [0, -1, -1], "threshold": [0.5, None, None], "left": [1, -1, -1], "right": [2, -1, -1]}
    for value in ([[0], [-1], [2]], [[0], [3e90], [-0.1]]):
        found = solve_born_again(TreeEnsemble.from_arrays([{**tree, "value": value}], n_features=1), "leaves")
        assert found.leaves == 1 and found.tree.action.tolist() == [0]
