"""The light pipeline of `benchmarks/power.py` says what the library says, in a fraction of the time."""

import numpy as np
import pytest

from policytree import PolicyTree, cross_val_policy_value
from policytree.evaluation.estimates import mean_estimate, repeated_estimate, value_factor
from tests.simulations import benchmark_script


@pytest.mark.parametrize("name", ["no effect, 4 arms, n=300", "no effect, 60 clusters of 25", "gain .24, n=300"])
def test_held_out_scores_are_those_of_the_library(name):
    with benchmark_script("power") as script, benchmark_script("held_out_coverage") as by_library:
        cell, seed = script.CELLS[name], 3
        run = script.one_run(cell, seed)
        study = cell.draw(np.random.default_rng([seed, sum(map(ord, name))]))
        learner = by_library.LinearLearner(2)
        table = cross_val_policy_value(learner, study.pop("Y"), study.pop("T"), **study, random_state=seed)
        means, weight = cell.truth()
        target = by_library.targets(table, means, weight, table.repetitions) - weight @ means[:, 0]
    arms = [f"always {k}" for k in range(cell.n_arms)]
    each = np.array([[r.scores[arm].mean() for arm in arms] for r in table.repetitions])
    np.testing.assert_allclose(run["theta"][:, 1:], each, atol=1e-12)
    between = table.difference(arms[1], arms[0])  # of fixed rules
    found = script.difference(run, 2, 1, "N")
    assert (found.value, found.standard_error) == pytest.approx((between.value, between.standard_error))
    assert found.degrees_of_freedom == between.degrees_of_freedom
    # trees of the same value on their rows may cut elsewhere between two values
    np.testing.assert_allclose(
        run["theta"][:, 0], [r.scores["policy tree"].mean() for r in table.repetitions], atol=0.1
    )
    assert run["target"] == pytest.approx(target, abs=0.02)


def test_its_trees_are_optimal(rng):
    with benchmark_script("light_pipeline") as script:
        for K in (2, 3):
            X, rewards = rng.normal(size=(80, 3)).round(1), rng.normal(size=(80, K))
            own = script.predict(script.depth_two(X, rewards), X)
            best = PolicyTree(max_depth=2).fit(X, rewards)
            assert rewards[np.arange(80), own].sum() == pytest.approx(rewards[np.arange(80), best.predict(X)].sum())


def test_the_variances_are_those_that_are_named(rng):
    """The library's is N + b (.3 + 1/R)."""
    scores = rng.normal(size=(5, 3, 200))
    with benchmark_script("power") as script:
        folds = scores.reshape(5, 3, 5, 40).mean(axis=3).transpose(0, 2, 1)
        run = {
            "theta": scores.mean(axis=2), "within": np.array([script.covariance(s, None) for s in scores]),
            "averaged": script.covariance(scores.mean(axis=0), None), "folds": folds, "degrees": 199,
        }  # fmt: skip
        found = script.parts(run, 0, 1)
    library = [mean_estimate(s[0] - s[1]) for s in scores]
    whole = repeated_estimate(library, 5, value_factor(5, 5))
    assert found["N + b (.3 + 1/R)"] == pytest.approx(whole.standard_error**2)
    assert found["N"] == pytest.approx(np.mean([e.standard_error**2 for e in library]))
    assert found["folds"] == pytest.approx(0.29 * (folds[..., 0] - folds[..., 1]).var(ddof=1))
