"""Raw scores of boosted trees: those of LightGBM, to the last bit, or none."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import lightgbm
import numpy as np
import pytest

from policytree.weighting import tree_scores
from policytree.weighting.boosting import SETTINGS, boost
from policytree.weighting.tree_scores import FEWEST_ROWS, FEWEST_ROWS_OF_ROUNDS, RawScores


def table(rng, n=FEWEST_ROWS) -> np.ndarray:
    """Numbers, ties, zeros and two-valued columns; the last column has no zero."""
    Z = rng.normal(size=(n, 5))
    Z[:, 1] = Z[:, 1].round(1)
    Z[:, 2] = rng.integers(2, size=n)
    Z[:, 3] *= rng.integers(2, size=n)
    Z[:, 4] = rng.choice([-1.0, 1.0], size=n) * (1 + rng.exponential(size=n))
    return Z


def expected(booster, Z, rounds) -> np.ndarray:
    parts = [
        booster.predict(Z, raw_score=True, start_iteration=first, num_iteration=last - first)
        for first, last in pairwise(rounds)
    ]
    return np.stack(parts)


def sums(booster, Z, rounds) -> np.ndarray:
    scores = RawScores.of(booster, Z, rounds)
    assert scores is not None
    return scores.sums(rounds)


@pytest.mark.parametrize("objective", ["regression", "binary", "poisson"])
@pytest.mark.parametrize("missing", ["never", "in both", "only later", "only before"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_scores_are_lightgbms_to_the_last_bit(rng, monkeypatch, objective, missing, order):
    monkeypatch.setattr(tree_scores, "BLOCK", 1_000)  # so that the last block is shorter
    train, Z = table(rng), table(rng, FEWEST_ROWS + 77)
    y = train[:, 0] * train[:, 2] + train[:, 4] + rng.normal(size=len(train))
    if missing in ("in both", "only before"):
        train[rng.random(train.shape) < 0.2] = np.nan
    if missing in ("in both", "only later"):
        Z[rng.random(Z.shape) < 0.2] = np.nan
    Z = np.asarray(Z, order=order)
    y = {"regression": y, "binary": (y > 0).astype(float), "poisson": np.exp(y / 4)}[objective]
    booster = boost(train, y, None, objective, 40).booster
    for rounds in ((0, 40), (0, 1), (0, 7, 19), (0, 5, 35)):
        assert sums(booster, Z, rounds).tobytes() == expected(booster, Z, rounds).tobytes()


def test_trees_of_fewer_leaves(rng):
    """Twenty rows a leaf: of ninety rows trees have four leaves at most; of thirty there is none but the root."""
    Z = table(rng)
    for n in (30, 90, 150):
        booster = boost(Z[:n], Z[:n, 0] + rng.normal(size=n), None, "regression", 10).booster
        assert sums(booster, Z, (0, 10)).tobytes() == expected(booster, Z, (0, 10)).tobytes()


def test_scores_of_several_classes(rng):
    Z = table(rng)
    y = np.digitize(Z[:, 0] * Z[:, 2] + Z[:, 4], [-0.5, 1.5])
    booster = boost(Z, y.astype(float), None, "multiclass", 12).booster
    for rounds in ((0, 12), (0, 1, 5)):
        assert sums(booster, Z, rounds).tobytes() == expected(booster, Z, rounds).tobytes()


@pytest.mark.parametrize(
    ("more", "categories"), [({"num_leaves": 9}, "auto"), ({"zero_as_missing": True}, "auto"), ({}, [2])]
)
def test_other_trees_are_left_to_lightgbm(rng, more, categories):
    Z = table(rng)
    y = Z[:, 0] * Z[:, 2] + Z[:, 3]
    settings = {**SETTINGS, "objective": "regression", "min_data_in_leaf": 5, **more}
    booster = lightgbm.Booster(settings, lightgbm.Dataset(Z, y, params=settings, categorical_feature=categories))
    for _ in range(3):
        booster.update()
    assert RawScores.of(booster, Z, (0, 3)) is None


def test_few_rows_are_left_to_lightgbm(rng):
    """Fewer are too few where every round is asked for: then LightGBM would be called for each."""
    Z = table(rng)
    booster = boost(Z, Z[:, 0], None, "regression", 20).booster
    each = range(21)
    assert RawScores.of(booster, Z[:-1], (0, 20)) is None
    assert RawScores.of(booster, Z[: FEWEST_ROWS_OF_ROUNDS - 1], each) is None
    Z = Z[:FEWEST_ROWS_OF_ROUNDS]
    assert sums(booster, Z, each).tobytes() == expected(booster, Z, each).tobytes()


def test_stages_of_many_rows_are_those_of_few(rng):
    """Rows that LightGBM scores and rows that it does not have the same predictions, for every objective."""
    Z = table(rng)
    y = Z[:, 0] + Z[:, 2]
    for objective, outcome in (("regression", y), ("binary", y > 0), ("multiclass", np.digitize(y, [-0.5, 0.5]))):
        fitted = boost(Z, outcome.astype(float), None, objective, 12)
        whole = fitted.stages(Z, (1, 5, 12))
        np.testing.assert_array_equal(whole[:, :500], fitted.stages(Z[:500], (1, 5, 12)))


@pytest.mark.parametrize("objective", ["regression", "binary"])
@pytest.mark.parametrize("n", [FEWEST_ROWS + 77, 300])
def test_columns_of_one_value_are_columns(rng, monkeypatch, objective, n):
    """In many rows and in few, for several values at once, each after rounds of its own; the first column has gaps."""
    monkeypatch.setattr(tree_scores, "BLOCK", 1_000)
    Z, further = table(rng), rng.integers(3, size=(FEWEST_ROWS, 2)).astype(float)
    Z[::7, 0] = np.nan
    y = np.nan_to_num(Z[:, 0]) * further[:, 0] + Z[:, 4] * (further[:, 1] == 1.0) + rng.normal(size=len(Z))
    fitted = boost(np.hstack([Z, further]), y if objective == "regression" else y > 0, None, objective, 30)
    new, values, rounds = table(rng, n), np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), (7, 30, 1, 99)
    new[::5, 0] = np.nan
    found = fitted.with_columns(new, values, rounds)
    for own, columns, r in zip(found, values, rounds, strict=True):
        expected = fitted.stages(np.hstack([new, np.tile(columns, (n, 1))]), (r,))[0]
        assert own.tobytes() == expected.tobytes()
    assert len(np.unique(found.sum(axis=1))) == 4


def test_more_rounds_are_read_when_they_are_asked_for(rng):
    Z = table(rng)
    booster = boost(Z, Z[:, 0] + rng.normal(size=len(Z)), None, "regression", 20).booster
    for last in (2, 20, 5):
        assert sums(booster, Z, (0, last)).tobytes() == expected(booster, Z, (0, last)).tobytes()


def test_stages_take_little_more_memory_than_they_fill(rng):
    """Staged predictions of a fold are the largest arrays of a fit with many classes: one of them, and no copies."""
    Z = table(rng)
    fitted = boost(Z, np.digitize(Z[:, 0], [-1.0, -0.5, 0.0, 0.5, 1.0]).astype(float), None, "multiclass", 40)
    for rows in (Z, Z[: FEWEST_ROWS_OF_ROUNDS - 1]):  # LightGBM scores the latter
        fitted.stages(rows, (1, 40))  # trees are read once
        tracemalloc.start()
        stages = fitted.stages(rows, tuple(range(1, 41)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert stages.shape == (40, len(rows), 6)
        assert peak < 1.5 * stages.nbytes
