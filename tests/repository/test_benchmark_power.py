"""The light pipeline of `benchmarks/power.py` says what the library says, in a fraction of the time."""

import numpy as np
import pytest

from policytree import PolicyTree, cross_val_policy_value
from policytree.evaluation.estimates import mean_estimate, repeated_estimate, value_factor
from tests.support.simulations import benchmark_script


@pytest.mark.parametrize("name", ["no effect, 4 arms, n=300", "no effect, 60 clusters of 25", "gain .24, n=300"])
def test_held_out_scores_are_those_of_the_library(name, rng):
    with benchmark_script("power") as script, benchmark_script("held_out_coverage") as by_library:
        cell = script.CELLS[name]
        study, (means, weight) = cell.draw(rng), cell.truth()
        held, learner = script.held_out_scores(study, rng), by_library.LinearLearner(2)
        Y, T = study.pop("Y"), study.pop("T")
        table = cross_val_policy_value(learner, Y, T, **study, cv=held.folds[0], random_state=0)
        target = by_library.targets(table, means, weight, table.repetitions)
        chosen = held.chosen(by_library.POPULATION)[0]
    (once,) = table.repetitions
    rules = ["policy tree", *(f"always {k}" for k in range(cell.n_arms))]
    expected = np.array([once.scores[rule] for rule in rules])
    np.testing.assert_allclose(held.scores[0][1:], expected[1:], atol=1e-12)
    # trees of the same value on their rows may cut elsewhere between two values
    assert np.isclose(held.scores[0][0], expected[0]).mean() > 0.95
    of_folds = [weight @ means[np.arange(len(means)), arms] for arms in chosen]
    assert np.bincount(held.folds[0]) @ of_folds / cell.n == pytest.approx(target, abs=0.01)
    for arm in range(cell.n_arms):  # folds are balanced
        assert np.ptp(np.bincount(held.folds[0][arm == T])) <= cell.cluster_size


@pytest.mark.parametrize("name", ["no effect, 4 arms, n=300", "no effect, 60 clusters of 25"])
def test_scores_of_later_blocks_are_those_of_the_library(name, rng):
    with benchmark_script("sequential") as script, benchmark_script("held_out_coverage") as by_library:
        study = script.power.CELLS[name].draw(rng)
        Y, T = study["Y"], study["T"]
        blocks = script.balanced(T, study.get("groups", np.arange(len(Y))), rng, script.BLOCKS)
        later = script.sequential_scores(study, blocks)
        rest = {key: study[key] for key in study if key not in "YT"}
        table = cross_val_policy_value(
            by_library.LinearLearner(2), Y, T, **rest, validation="sequential", cv=blocks, random_state=0
        )
    (once,) = table.repetitions
    order, rules = np.argsort(later.rows), ["policy tree", *(f"always {k}" for k in range(len(later.scores) - 1))]
    assert later.rows[order].tolist() == table.judged.tolist()
    expected = np.array([once.scores[rule] for rule in rules])
    np.testing.assert_allclose(later.scores[1:, order], expected[1:], atol=1e-12)
    assert np.isclose(later.scores[0, order], expected[0]).mean() > 0.95  # trees of one value may cut elsewhere
    judged = study.get("groups", np.arange(len(Y)))[later.rows]
    gain = script.blocked_estimate(later.scores[0] - later.scores[1], later.block, groups=judged)
    assert gain.standard_error == pytest.approx(table.differences["always 0"].standard_error, rel=0.05)


def test_its_trees_are_optimal(rng):
    """On the rows that learn, which are two thirds."""
    with benchmark_script("light_pipeline") as script:
        for K in (2, 3):
            X, rewards, half = rng.normal(size=(90, 3)).round(1), rng.normal(size=(90, K)), np.arange(90) % 3 - 1
            codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
            tree = script.depth_two(codes, codes.argsort(axis=0), rewards, half, 90)
            learn = half >= 0
            best = PolicyTree(max_depth=2).fit(X[learn], rewards[learn]).predict(X[learn])
            own = script.predicted(tree, codes)[learn]
            every = np.arange(learn.sum())
            assert rewards[learn][every, own].sum() == pytest.approx(rewards[learn][every, best].sum())


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
    assert found[script.LIBRARY] == pytest.approx(whole.standard_error**2)
    assert found["N"] == pytest.approx(np.mean([e.standard_error**2 for e in library]))
    assert found["folds"] == pytest.approx(0.29 * (folds[..., 0] - folds[..., 1]).var(ddof=1))
