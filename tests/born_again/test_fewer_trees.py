"""Fewer trees, the same function: held to brute force over all whole weights and all cells."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from policytree import BornAgainTree
from policytree.born_again import TreeEnsemble, fewer_trees, prune_ensemble
from policytree.exceptions import InputError
from policytree.problem.types import Status

MOST = 3  # weights that brute force tries


def small_forest(seed: int, trees: int = 5) -> RandomForestClassifier:
    """Noisy rows with few values, a rare class, and a column of two values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 4, 160), rng.integers(0, 3, 160), rng.integers(0, 2, 160)]).astype(float)
    y = np.where(rng.random(160) < 0.3, rng.integers(0, 2, 160), (X[:, 0] > 1).astype(int))
    y[rng.choice(160, 6, replace=False)] = 2
    return RandomForestClassifier(trees, max_depth=2, max_features=1, random_state=seed).fit(X, y)


def all_points(forest: RandomForestClassifier) -> np.ndarray:
    """A point in every cell of the thresholds, read from scikit-learn's own trees."""
    sides = []
    for j in range(forest.n_features_in_):
        cuts = np.unique(np.concatenate([t.tree_.threshold[t.tree_.feature == j] for t in forest.estimators_]))
        sides.append([*(cuts - 1e-6), (cuts[-1] if len(cuts) else 0.0) + 1.0])
    return np.array(list(product(*sides)))


def votes_of(forest: RandomForestClassifier, X: np.ndarray) -> np.ndarray:
    """Class that every tree votes for, (points, trees)."""
    return np.stack([tree.predict(X).astype(int) for tree in forest.estimators_], axis=1)


def decided(votes: np.ndarray, weights) -> np.ndarray:
    """The class with most weight, the first of several."""
    return np.argmax([(votes == k) @ np.asarray(weights) for k in range(3)], axis=0)


def fewest(votes: np.ndarray) -> int:
    """The fewest trees over all whole weights up to MOST that decide as one vote each."""
    votes, T = np.unique(votes, axis=0), votes.shape[1]
    plain = decided(votes, np.ones(T))
    return min(
        np.count_nonzero(w) for w in product(range(MOST + 1), repeat=T) if any(w) and (decided(votes, w) == plain).all()
    )


@pytest.mark.parametrize("method", ["every cell", "integer programs"])
@pytest.mark.parametrize("seed", range(6))
def test_no_weights_of_fewer_trees_decide_alike(seed, method, monkeypatch):
    if method == "integer programs":
        monkeypatch.setattr(fewer_trees, "MOST_CELLS", 0)
        monkeypatch.setattr(fewer_trees, "DRAWN", 1)  # so that integer programs find nearly all points
    forest = small_forest(seed)
    votes = votes_of(forest, all_points(forest))
    pruned = prune_ensemble(forest, largest_weight=MOST)
    assert pruned.method == method and pruned.status is Status.OPTIMAL
    assert pruned.trees == pruned.trees_bound == np.count_nonzero(pruned.weights) == fewest(votes)
    assert pruned.weights.max() <= MOST
    assert np.array_equal(decided(votes, pruned.weights), decided(votes, np.ones(5)))
    assert np.array_equal(pruned.ensemble.predict_codes(all_points(forest)), decided(votes, np.ones(5)))


def test_brute_force_has_something_to_tell_apart():
    votes = [votes_of(forest, all_points(forest)) for forest in map(small_forest, range(6))]
    assert {1, 3} <= {fewest(each) for each in votes}


def test_copies_of_a_tree_are_one_tree_and_its_born_again_tree_is_the_same():
    forest = small_forest(3, trees=1)
    forest.estimators_ *= 4
    pruned = prune_ensemble(forest)
    assert pruned.trees == 1 and pruned.status is Status.OPTIMAL
    forest = small_forest(1, trees=9)
    pruned = prune_ensemble(forest)
    whole = BornAgainTree(forest, "leaves", voting="hard").fit()
    part = BornAgainTree(pruned.ensemble, "leaves").fit()
    assert part.check_faithfulness().faithful
    assert part.get_n_leaves() == whole.get_n_leaves()
    assert np.array_equal(part.predict(all_points(forest)), whole.predict(all_points(forest)))


def test_ties_go_to_the_first_class_before_and_after():
    def stump(low: int, high: int) -> dict:
        return {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1],
                "class": [0, low, high]}  # fmt: skip

    first, second = stump(0, 1), stump(1, 1)
    tied = TreeEnsemble.from_arrays([first, second], n_features=1)  # 0 and 1 on the left: 0 wins
    assert prune_ensemble(tied).weights.tolist() == [1, 0]
    upside_down = TreeEnsemble.from_arrays([stump(1, 0), stump(0, 0)], n_features=1)  # a tie, and 0 everywhere
    assert prune_ensemble(upside_down).weights.tolist() == [0, 1]


def test_without_time_all_trees_stay():
    pruned = prune_ensemble(small_forest(0), time_limit=1e-9)
    assert pruned.status is Status.TIME_LIMIT and pruned.weights.tolist() == [1] * 5
    assert "at least 1 are needed" in str(pruned)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"largest_weight": 0}, "largest_weight"),
        ({"time_limit": -1.0}, "time_limit must be a number of seconds above 0"),
        ({"time_limit": "soon"}, "time_limit must be a number of seconds above 0"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(InputError, match=message):
        prune_ensemble(small_forest(0), **arguments)


def test_trees_that_do_not_vote_are_refused():
    boosted = GradientBoostingClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="needs trees that vote"):
        prune_ensemble(boosted)
