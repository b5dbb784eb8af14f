"""Short cuts of quick fits change nothing: each beside the long way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import OptimalTreeClassifier
from policytree.common.validation import sorted_labels
from policytree.data import feature_encoder
from policytree.data.feature_encoder import FeatureEncoder
from policytree.estimators.classifier import label_codes, label_column
from policytree.exceptions import InputError
from policytree.solvers.core import binning, merge
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.merge import groups_of_equal_rows, merge_equal_rows


def tables(rng, n, p):
    """Two-valued, constant, whole, real, tiny, huge and missing numbers side by side."""
    kinds = [
        rng.integers(0, 2, n).astype(float),
        np.full(n, rng.choice([0.0, -3.5, 1e308])),
        rng.choice([-1e308, 1e308], n),
        rng.choice([1e-310, 2e-310], n),
        rng.choice([0.1, np.nextafter(0.1, 1)], n),
        np.where(np.arange(n) < 64, 0.0, rng.integers(0, 3, n)),  # two-valued in the first rows only
        rng.integers(-3, 40, n).astype(float),
        rng.integers(0, 5, n) + 0.5,
        rng.normal(size=n),
        np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 2, n)),
        np.full(n, np.nan),
        rng.choice([-0.0, 0.0, 1.0], n),
    ]
    return np.column_stack([kinds[k] for k in rng.integers(0, len(kinds), p)])


@pytest.mark.parametrize("block", [1, 500, 2**19])
def test_columns_that_are_coded_together_are_coded_as_alone(rng, monkeypatch, block):
    monkeypatch.setattr(binning, "BLOCK", block)
    for _ in range(60):
        X = tables(rng, int(rng.integers(1, 200)), int(rng.integers(1, 9)))
        options = {} if rng.random() < 0.6 else {"max_bins": int(rng.integers(2, 12))}
        if rng.random() < 0.3:
            options["split_on"] = set(rng.integers(0, X.shape[1], 2).tolist())
        together = bin_matrix(X, **options)
        with monkeypatch.context() as m:
            m.setattr(binning, "two_valued_columns", lambda *_: {})
            alone = bin_matrix(X, **options)
        assert together.codes.dtype == alone.codes.dtype
        assert (together.codes == alone.codes).all()
        assert (together.n_bins == alone.n_bins).all()
        assert together.exact == alone.exact
        for one, other in zip(together.columns, alone.columns, strict=True):
            assert (one.feature, one.missing_left) == (other.feature, other.missing_left)
            assert (one.thresholds == other.thresholds).all()
            assert (X[:, one.feature] <= one.thresholds[0]).any() or one.missing_left


def test_infinite_numbers_are_refused_and_large_ones_are_not(rng):
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    for bad in ([np.inf], [-np.inf], [np.inf, -np.inf], [np.inf, np.nan]):
        broken = X.copy()
        broken[: len(bad), 1] = bad
        with pytest.raises(InputError, match=r"infin"):
            FeatureEncoder.fit_encode(broken)
    assert (FeatureEncoder.fit_encode(np.sign(X) * 1e308)[1] == np.sign(X) * 1e308).all()  # sums are no numbers
    large = np.where(X > 0, 1e308, 1e307)
    assert OptimalTreeClassifier(max_depth=1).fit(large, y).status_.proved
    X[3, 1] = np.nan
    tree = OptimalTreeClassifier(max_depth=1).fit(X, y)
    assert [f.has_missing for f in tree.encoder_.features] == [False, True, False]


def columns_of_all_types() -> dict:
    """Numbers, texts, categories and gaps, as pandas' types hold them."""
    texts = ["b", "a", None, "b", "c"]
    return {
        "float": np.array([1.5, np.nan, 0.0, -2.0, 1.5]),
        "float32": np.array([1.5, 2.5, 0.0, -2.0, 1.5], np.float32),
        "int": np.array([3, 2**53, 0, 3, -1]),
        "uint8": np.array([3, 255, 0, 3, 1], np.uint8),
        "bool": np.array([True, False, True, True, False]),
        "gaps": pd.array([1, None, 3, 3, 2**53], dtype="Int64"),
        "boolean": pd.array([True, None, False, True, True], dtype="boolean"),
        "text": pd.array(texts, dtype="string"),
        "objects": pd.Series(texts, dtype=object),
        "numbers": pd.Series([1, None, 2.5, True, 3], dtype=object),
        "categories": pd.Categorical(texts, categories=["c", "b", "a", "unused"]),
        "ordered": pd.Categorical(["b", "a", "c", "b", "c"], categories=["c", "b", "a"], ordered=True),
        "codes": pd.Categorical([10, 2, None, 10, 3]),
    }


def wrap_all(monkeypatch) -> None:
    """From here on, columns of pandas are read as those of other libraries are."""
    monkeypatch.setattr(feature_encoder.nw.dependencies, "get_pandas", lambda: None)


@pytest.mark.parametrize("name", columns_of_all_types())
def test_columns_of_pandas_are_read_as_wrapped_ones(name, monkeypatch):
    table = pd.DataFrame({name: columns_of_all_types()[name], "x": range(5)})
    encoder, numbers = FeatureEncoder.fit_encode(table)
    np.testing.assert_array_equal(numbers, encoder.encode(table))
    values = [encoder.values(table, j) for j in range(2)]
    wrap_all(monkeypatch)
    wrapped, others = FeatureEncoder.fit_encode(table)
    assert encoder == wrapped
    np.testing.assert_array_equal(numbers, others)
    np.testing.assert_array_equal(numbers, encoder.encode(table))
    assert str(values) == str([wrapped.values(table, j) for j in range(2)])


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", [np.int64, np.uint64, "Int64"])
def test_integers_beyond_floats_are_refused_of_every_kind(kind, wrapped, monkeypatch):
    if wrapped:
        wrap_all(monkeypatch)
    assert FeatureEncoder.fit_encode(pd.DataFrame({"a": pd.array([1, 2**53], dtype=kind)}))[1].max() == 2.0**53
    with pytest.raises(InputError, match=r"'a'.*beyond 2\*\*53"):
        FeatureEncoder.fit(pd.DataFrame({"a": pd.array([1, 2**53 + 1], dtype=kind)}))


@pytest.mark.parametrize("kind", ["str", "string", object])
def test_labels_of_texts_are_read_as_lists_are(rng, kind):
    texts = rng.choice(["", "a", "longer", "z"], 50).tolist()
    X = np.zeros((50, 1))
    expected = label_column(texts, X)
    found = label_column(pd.Series(texts, dtype=kind), X)
    assert (found == expected).all()
    assert kind is object or found.dtype == expected.dtype
    with pytest.raises(InputError, match="NaN"):
        label_column(pd.Series([*texts[:-1], None], dtype=kind), X)
    with pytest.raises(ValueError, match="inconsistent"):
        label_column(pd.Series(texts[:-1], dtype=kind), X)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_equal_rows_are_grouped_by_first_occurrence(data):
    n, p, most = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4)), data.draw(st.integers(0, 2))
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, most)] * p), min_size=n, max_size=n))
    codes = np.ascontiguousarray(np.array(rows, dtype=np.uint16).T)
    keep, group = groups_of_equal_rows(codes)
    first: dict = {}
    assert [first.setdefault(row, len(first)) for row in rows] == group.tolist()
    assert [rows[i] for i in keep] == list(first)
    values = np.array([data.draw(st.lists(st.integers(-(2**40), 2**40), min_size=n, max_size=n))])
    merged, sums = merge_equal_rows(codes, values)
    for k, row in enumerate(first):
        assert tuple(merged[:, k]) == row
        assert sums[0, k] == sum(int(v) for v, other in zip(values[0], rows, strict=True) if other == row)


def test_rows_that_share_a_hash_stay_apart(rng, monkeypatch):
    codes = rng.integers(0, 3, (3, 50)).astype(np.uint16)
    distinct = len(np.unique(codes.T, axis=0))
    for bits in (0, 1, 3):  # hashes that tell next to nothing
        with monkeypatch.context() as m:
            m.setattr(merge, "hash_rows", lambda codes, bits=bits: codes[0].astype(np.uint64) % np.uint64(2**bits))
            keep, group = groups_of_equal_rows(codes)
        assert len(keep) == distinct
        assert (codes[:, keep[group]] == codes).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_labels_are_sorted_as_numpy_does(dtype):
    info = np.iinfo(dtype)
    for values in ([3, 1, 1, 2], [info.min, info.max, 0], [info.max, info.max - 1], [5], [0, 999], [0, 1_000]):
        if max(values) <= info.max:
            labels = np.array(values, dtype=dtype)
            found = sorted_labels(labels)
            assert found.dtype == dtype
            assert found.tolist() == np.unique(labels).tolist()


@pytest.mark.parametrize("labels", [[0, 1], [-5, 7], ["a", "b"], [0.5, 1.5], [0, 1, 2]])
def test_codes_of_labels_and_of_others(labels):
    classes = np.array(labels)
    y = np.concatenate([classes, classes[::-1], [classes[0]]])
    other = np.array(["c"]) if classes.dtype.kind == "U" else np.array([99], dtype=classes.dtype)
    expected = [*range(len(classes)), *reversed(range(len(classes))), 0, -1]
    found = label_codes(np.concatenate([y, other]), classes)
    assert found.tolist() == expected
    assert found.dtype == np.int64


def test_sums_of_nodes_are_those_of_their_rows(rng):
    X = rng.integers(0, 4, (200, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y, weight = rng.integers(0, 3, 200), rng.lognormal(size=200)
    for depth in (0, 1, 3):
        tree = OptimalTreeClassifier(depth, 0.0).fit(X, y, weight)
        for node, rows in enumerate(tree.tree_.rows_of_nodes(X)):
            shares = np.array([weight[rows][y[rows] == k].sum() for k in range(3)])
            assert tree.node_values_[node] == pytest.approx(shares / weight[rows].sum(), abs=1e-12)
            assert tree.tree_.value[node] == pytest.approx(weight[rows].sum() - shares, abs=1e-9)
            assert tree.tree_.n_node_samples[node] == len(rows)
            is_leaf = tree.tree_.is_leaf[node]
            assert is_leaf or len(rows) == sum(
                len(tree.tree_.rows_of_nodes(X)[child])
                for child in (tree.tree_.children_left[node], tree.tree_.children_right[node])
            )
