"""Column elimination: the library's boosting beside scikit-learn's, refits beside fresh fits, the published rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier

from policytree.exceptions import InputError
from policytree.guesses import ReferenceGuesses
from policytree.guesses.additive import cuts_at_jumps, jumps
from policytree.guesses.boosted_trees import BoostedTrees
from policytree.guesses.elimination import (
    OwnRefit,
    ScikitRefit,
    eliminate_in_batches,
    eliminate_one_by_one,
    quantile_cuts,
)
from policytree.solvers.core.binning import bin_matrix


def table(rng, n=300, p=4, values=7, classes=2):
    """Codes, labels that depend on two of the columns, and weights."""
    codes = rng.integers(0, values, (p, n))
    score = (codes[0] > 2) * 1.0 + (codes[1] > 4) * (codes[0] < 5) + rng.normal(0, 0.6, n)
    label = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    return codes, label, rng.lognormal(0, 0.7, n)


def scikit(n_estimators, max_depth):
    return GradientBoostingClassifier(n_estimators=n_estimators, max_depth=max_depth, random_state=0)


@pytest.mark.parametrize("size", [(1, 1), (8, 1), (6, 2), (3, 3)], ids=str)
@pytest.mark.parametrize(("seed", "classes"), [(0, 2), (1, 2), (2, 3), (3, 4)])
def test_trees_are_those_of_scikit_learn(seed, classes, size):
    """Real weights leave no ties between splits, while nodes are not small."""
    codes, label, weight = table(np.random.default_rng(seed), n=1000, classes=classes)
    ours = BoostedTrees(codes, label, weight, *size, 0.1)
    accuracy = ours.fit()
    theirs = scikit(*size).fit(codes.T, label, sample_weight=weight)
    assert accuracy == pytest.approx(theirs.score(codes.T, label, sample_weight=weight), abs=1e-9)
    np.testing.assert_array_equal(ours.predict(codes), theirs.predict(codes.T))
    importance = np.maximum(ours.gains(), 0).sum(axis=1)
    np.testing.assert_allclose(importance / importance.sum(), theirs.feature_importances_, atol=1e-9)


def test_labels_of_any_numbers_and_new_rows(rng):
    codes, label, weight = table(rng, classes=3)
    names = np.array([2, 7, 11])[label]
    new = rng.integers(0, 7, (4, 50))
    ours = BoostedTrees(codes, names, weight, 5, 2, 0.3)
    ours.fit()
    theirs = GradientBoostingClassifier(n_estimators=5, max_depth=2, learning_rate=0.3)
    np.testing.assert_array_equal(ours.predict(new), theirs.fit(codes.T, names, sample_weight=weight).predict(new.T))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([(10, 1), (8, 2), (5, 3)]))
def test_refits_without_cuts_are_fresh_fits(seed, size):
    """Also where a cut comes back that was left out before."""
    rng = np.random.default_rng(seed)
    codes, label, weight = table(rng, n=120)
    cuts = quantile_cuts(codes, 6)
    refit = OwnRefit(cuts, codes, label, weight, (*size, 0.1))
    kept = np.ones(len(refit.pairs), dtype=bool)
    refit.fit(kept)
    for _ in range(6):
        kept = kept & (rng.random(len(kept)) < 0.8) if kept.sum() > 4 else rng.random(len(kept)) < 0.7
        if not kept.any():
            continue
        accuracy = refit.fit(kept)
        fresh = OwnRefit(cuts, codes, label, weight, (*size, 0.1))
        assert fresh.fit(kept) == accuracy
        np.testing.assert_array_equal(fresh.gains(), refit.gains())
        assert (refit.gains()[~kept] == -1).all()


@pytest.mark.parametrize("eliminate", [eliminate_one_by_one, eliminate_in_batches])
@pytest.mark.parametrize("seed", range(4))
def test_elimination_keeps_the_same_cuts_with_scikit_learns_model(eliminate, seed):
    codes, label, weight = table(np.random.default_rng([seed, 5]), n=400)
    cuts = quantile_cuts(codes, 6)
    own = OwnRefit(cuts, codes, label, weight, (8, 2, 0.1))
    other = ScikitRefit(cuts, codes, label, weight, scikit(8, 2))
    np.testing.assert_array_equal(eliminate(own, 0.0), eliminate(other, 0.0))


def published_rule(codes, label, weight, size):
    """Column elimination as the paper words it, on one 0/1 column per threshold, with a full refit each."""
    pairs = [(j, b) for j, column in enumerate(codes) for b in range(column.max())]
    columns = {pair: (codes[pair[0]] <= pair[1]).astype(float) for pair in pairs}

    def fit(pairs):
        X = np.column_stack([columns[pair] for pair in pairs])
        model = scikit(*size).fit(X, label, sample_weight=weight)
        return model.score(X, label, sample_weight=weight), model.feature_importances_

    least, importance = fit(pairs)
    while len(pairs) > 1:
        fewer = [pair for k, pair in enumerate(pairs) if k != np.argmin(importance)]
        score, weights = fit(fewer)
        if score < least - 1e-12:
            break
        pairs, importance = fewer, weights
    return set(pairs)


@pytest.mark.parametrize("seed", range(4))
def test_one_by_one_is_the_published_rule(seed):
    codes, label, weight = table(np.random.default_rng([seed, 6]), n=150, p=3)
    refit = OwnRefit(quantile_cuts(codes, 6), codes, label, weight, (6, 2, 0.1))
    kept = eliminate_one_by_one(refit, 0.0)
    assert {tuple(pair) for pair in refit.pairs[kept].tolist()} == published_rule(codes, label, weight, (6, 2))


def test_batches_keep_fewer_cuts_at_no_loss_of_the_models_accuracy(rng):
    X = rng.integers(0, 30, (700, 6)).astype(float)
    y = ((X[:, 0] > 14) & (X[:, 1] > 9)) ^ (rng.random(700) < 0.2)
    data, losses = bin_matrix(X), np.stack([y, ~y], axis=1).astype(float)
    reports = [
        ReferenceGuesses(n_estimators=30, max_depth=2, elimination=rule).make(data, losses)[1]
        for rule in ("one_by_one", "batches")
    ]
    assert reports[1]["kept_thresholds"] <= reports[0]["kept_thresholds"]
    full = ReferenceGuesses(n_estimators=30, max_depth=2, thresholds=False, lower_bounds=True).make(data, losses)[1]
    assert max(report["reference_loss"] for report in reports) <= full["reference_loss"] + 1e-12


def test_unknown_elimination_is_refused():
    for bad in ("all", 3, None):
        with pytest.raises(InputError, match="elimination must be one of 'one_by_one', 'batches'"):
            ReferenceGuesses(elimination=bad)
    with pytest.raises(InputError, match="jump_tolerance must be"):
        ReferenceGuesses(jump_tolerance=-1)


def test_jumps_of_an_additive_model():
    """Codes below 2, from 2 to 4, from 5 on; scores for missing, three bins, unknown."""
    cut, size = jumps(np.array([1.5, 4.2]), np.array([0.0, -1.0, -0.5, 2.0, 0.0]))
    assert cut.tolist() == [1, 4] and size.tolist() == [0.5, 2.5]
    _, size = jumps(np.array([1.5]), np.array([[0.0, 0.0], [1.0, 0.0], [1.5, 3.0], [0.0, 0.0]]))
    assert size.tolist() == [3.0]  # the largest change over the classes


def test_cuts_at_jumps_are_those_of_appendix_e():
    found = [
        (np.array([0, 3]), np.array([0.3, 0.05])),
        (np.array([1]), np.array([0.3])),
        (np.empty(0, int), np.empty(0)),
    ]
    kept = cuts_at_jumps(found, np.array([1.0, 0.2, 0.0]), 0.1)  # limits .1, .5 and infinity
    assert [cut.tolist() for cut in kept] == [[0], [], []]
    assert [len(cut) for cut in cuts_at_jumps(found, np.array([1.0, 0.2, 0.0]), 0.01)] == [2, 1, 0]
