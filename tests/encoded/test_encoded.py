"""Encoded rows: the same trees as in memory, whatever the batches; and what goes wrong says so and can be mended."""

from __future__ import annotations

import errno
import io
import json
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.constraints import Budget
from policytree.data import sources
from policytree.encoded import encode, encoding, open_encoded, solve, tally
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Status
from policytree.serialization import files
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.out_of_core import table_search
from tests.support.encoded_problems import assert_identical, assert_same, outcome, random_case, write_parts
from tests.support.streamed import to_learn

pa = pytest.importorskip("pyarrow")
pa_dataset = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")


# --- the same as in memory ---


@pytest.mark.parametrize("part", range(4))
def test_fits_are_those_in_memory(small, tmp_path, part):
    """All constraints at once, rows shuffled, batches and files of any size, threads, tables of triples in parts."""
    for seed in range(50 * part, 50 * part + 50):
        case, rng = random_case(seed), np.random.default_rng(seed)
        if case.frame[case.X].isna().all(axis=None):
            continue  # a study without a covariate is refused
        small.setattr(encoding, "FILE_ROWS", int(rng.choice([1, 7, 50, 1000])))
        small.setattr(sources, "BATCH_ROWS", int(rng.choice([1, 7, 1000])))
        small.setattr(table_search, "SLICE_BYTES", int(rng.choice([1, 500, 2**26])))
        shuffled = case.frame.sample(frac=1, random_state=seed)
        data = encode(to_learn(shuffled, case.X, **case.roles), max_bins=case.max_bins, directory=tmp_path / str(seed))
        memory = outcome(case.in_memory)
        assert_same(case, memory, outcome(lambda: case.estimator(n_jobs=1 + seed % 2).fit(data)))  # noqa: B023
        if seed % 4 == 0 and memory[0] is not None:
            small.setattr(solve, "FEW_ROWS", 1000)
            tree = case.estimator().fit(open_encoded(tmp_path / str(seed)))
            shuffled = replace(case, frame=shuffled).in_memory()
            assert_identical(tree, shuffled)  # the same search in memory: ties as well
            small.setattr(solve, "FEW_ROWS", 0)


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("depth", [1, 3])
def test_leaves_that_no_split_can_make_are_said(small, tmp_path, few, depth):
    """In the words of fits in memory, at the line that calls fit; not where a single leaf is best anyway."""
    small.setattr(solve, "FEW_ROWS", few)
    frame = pd.DataFrame({"age": np.arange(30.0), "a": 0.0, "b": np.where(np.arange(30) < 10, 1.0, -1.0)})
    data = encode(to_learn(frame, ["age"], rewards=["a", "b"]), directory=tmp_path)
    with pytest.warns(SearchWarning) as heard:
        assert PolicyTree(max_depth=depth, min_samples_leaf=16).fit(data).get_n_leaves() == 1
    with pytest.warns(SearchWarning) as in_memory:
        PolicyTree(max_depth=depth, min_samples_leaf=16).fit(frame[["age"]], frame[["a", "b"]])
    assert [str(w.message) for w in heard] == [str(w.message) for w in in_memory]
    assert heard[0].filename == __file__
    PolicyTree(max_depth=depth, min_samples_leaf=15, regularization=9.0).fit(data)
    PolicyTree(max_depth=0, min_samples_leaf=16).fit(data)


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("target", ["two arms", "three arms, less is better", "labels"])
def test_fits_to_continuous_numbers_are_those_in_memory_to_the_last_bit(small, tmp_path, rng, few, weights, target):
    """Gaps, text, rewards and weights that no power of two makes whole; any batches, files and order of rows."""
    n, X = 200, ["age", "score", "town"]
    frame = pd.DataFrame({"age": rng.integers(20, 60, n), "score": rng.normal(size=n).round(1)})
    frame["score"] = frame.score.where(rng.random(n) > 0.2)
    frame["town"] = rng.choice(np.array(["Bonn", "Oslo", "Rom", None], dtype=object), n)
    for k, name in enumerate(["none", "drug", "talk"]):
        frame[name] = rng.normal(size=n) * 10.0 ** rng.integers(-4, 3, n) + (k == 1) * (frame.age > 40)
    frame["y"] = np.where(frame.drug + frame.none > 0.5, "well", np.where(frame.talk > 0, "ill", "none"))
    frame["w"] = rng.lognormal(size=n) * 10.0 ** rng.integers(-3, 3, n)
    small.setattr(solve, "FEW_ROWS", few)
    arms = ["none", "drug"] if target == "two arms" else ["none", "drug", "talk"]
    roles = {"y": "y"} if target == "labels" else {"rewards": arms}
    for k, (batch, file) in enumerate([(7, 400), (33, 20), (400, 64)]):
        small.setattr(sources, "BATCH_ROWS", batch)
        small.setattr(encoding, "FILE_ROWS", file)
        rows = frame.sample(frac=1, random_state=k)
        data = encode(to_learn(rows, X, **roles, weights=weights), max_bins=12, directory=tmp_path / str(k))
        other = frame.sample(frac=1, random_state=10 + k)  # the order of rows does not matter in memory either
        y = other.y if target == "labels" else other[arms]
        for depth, price in ((1, 0.0), (2, 0.003), (3, 0.003)):
            if target == "labels":
                estimator = OptimalTreeClassifier(max_depth=depth, regularization=price)
            else:
                direction = "maximize" if target == "two arms" else "minimize"
                estimator = PolicyTree(max_depth=depth, regularization=price, direction=direction)
            memory = clone(estimator).set_params(max_bins=12)
            memory.fit(other[X], y, sample_weight=None if weights is None else other.w)
            assert_identical(estimator.fit(data), memory)
            assert memory.get_depth() > 0


def test_bit_identical_for_every_batch_size_and_order(small, tmp_path, rng):
    n = 400
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(3)} | {"a": rng.normal(size=n), "b": 0.1})
    frame["w"] = rng.lognormal(size=n)
    found = set()
    for k, (batch, file, order) in enumerate([(1, 7, 0), (7, 400, 0), (400, 1, 0), (33, 64, 1), (400, 400, 2)]):
        small.setattr(sources, "BATCH_ROWS", batch)
        small.setattr(encoding, "FILE_ROWS", file)
        shuffled = frame.sample(frac=1, random_state=order) if order else frame
        data = encode(
            to_learn(shuffled, ["x0", "x1", "x2"], rewards=["a", "b"], weights="w"),
            max_bins=8,
            directory=tmp_path / str(k),
        )
        tree = PolicyTree(max_depth=3).fit(data)
        found.add(json.dumps([tree.to_dict(), tree.objective_value_, tree.node_values_.tolist()]))
    assert len(found) == 1


def test_triples_in_parts_and_in_one_reading_are_the_same(small, tmp_path, rng):
    frame = pd.DataFrame({f"x{j}": rng.integers(0, 5, 200) for j in range(8)} | {"a": rng.normal(size=200), "b": 0.0})
    data = encode(to_learn(frame, [f"x{j}" for j in range(8)], rewards=["a", "b"]), directory=tmp_path / "e")
    trees = [PolicyTree(max_depth=3, memory_limit=limit).fit(data) for limit in (None, 9e4)]
    assert trees[0].to_dict() == trees[1].to_dict()
    assert trees[1].solution_.counters["read_rows"] > trees[0].solution_.counters["read_rows"]


def test_depth_four_and_no_limit_are_searched_in_memory(tmp_path, rows):
    data = encode(to_learn(rows, ["x", "town"], rewards=["a", "b"]), directory=tmp_path / "e")
    for depth, price in ((4, 0.0), (None, 0.3)):
        memory = PolicyTree(max_depth=depth, regularization=price).fit(rows[["x", "town"]], rows[["a", "b"]])
        tree = PolicyTree(max_depth=depth, regularization=price).fit(data)
        assert_identical(tree, memory)


# --- quantiles and sums ---


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 20), st.integers(1, 7))
def test_quantiles_are_exact_however_rows_are_divided(seed, max_bins, parts):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 900))
    kinds = [
        rng.normal(size=n) * 10.0 ** rng.integers(-200, 200, n),
        np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
        1e6 + rng.random(n) * 1e-6,
        np.sort(rng.normal(size=n)),
        rng.integers(-500, 500, n) / 7.0,
    ]
    x = kinds[seed % len(kinds)]
    saved = tally.MOST_VALUES, tally.EDGES, tally.SAMPLE, tally.MOST_COLLECTED
    tally.MOST_VALUES, tally.EDGES, tally.SAMPLE, tally.MOST_COLLECTED = 30, 16, 8, 40
    try:
        pieces = np.array_split(x, parts)
        total = tally.NumberTally()
        for piece in pieces:
            one = tally.NumberTally()
            one.add(piece, None)
            total.merge(one)
        if total.distinct is not None:
            cuts = tally.cut_values(total.distinct, total.present, max_bins)[0]
        else:
            search = tally.QuantileSearch(total, max_bins)
            while search.result is None:
                if search.collecting:
                    counts = tally.Counts()
                    for piece in pieces:
                        more = search.collect(piece)
                        counts.add(more.values, more.counts)
                    search.take_collected(counts)
                else:
                    search.take_counts(sum(search.count(piece) for piece in pieces))
            cuts = search.result
    finally:
        tally.MOST_VALUES, tally.EDGES, tally.SAMPLE, tally.MOST_COLLECTED = saved
    binned = bin_matrix(x[:, None], max_bins=max_bins)
    expected = binned.codes[0] if len(binned.codes) else np.zeros(n)
    assert (np.searchsorted(cuts, x, side="left") == expected).all()


# --- sources ---


def test_all_sources_give_the_same_tree(small, tmp_path, rows):
    duckdb = pytest.importorskip("duckdb")
    rows.loc[3, "town"] = None
    rows.loc[5, "x"] = np.nan
    parquet, text = write_parts(rows, tmp_path / "p", "parquet"), write_parts(rows, tmp_path / "c", "csv")
    given_sources = {
        "folder": parquet,
        "files": sorted(parquet.iterdir()),
        "pattern": str(parquet / "*.parquet"),
        "csv": text,
        "dataset": pa_dataset.dataset(parquet),
        "table": pa.Table.from_pandas(rows),
        "frame": rows,
        "categories": rows.astype({"town": "category"}),
        "duckdb": duckdb.sql(f"SELECT * FROM '{parquet}/*.parquet'"),
    }
    found = {}
    for name, source in given_sources.items():
        data = encode(
            to_learn(source, ["x", "town"], rewards=["a", "b"]), directory=tmp_path / f"e-{name}", max_bins=16
        )
        found[name] = json.dumps(PolicyTree(max_depth=3).fit(data).to_dict())
    assert len(set(found.values())) == 1


def test_labels_of_any_type(small, tmp_path, rows):
    for k, y in enumerate((rows.b > 0, (rows.b > 0).astype(int), np.where(rows.b > 0, "yes", "no"))):
        frame = rows.assign(y=y)
        data = encode(to_learn(frame, ["x", "town"], y="y"), directory=tmp_path / str(k))
        X, tree = ["x", "town"], OptimalTreeClassifier(max_depth=2).fit(data)
        memory = OptimalTreeClassifier(max_depth=2).fit(frame[["x", "town"]], frame.y)
        assert (tree.predict(frame[X]) == memory.predict(frame[X])).all()
        assert tree.classes_.tolist() == memory.classes_.tolist() and tree.classes_.dtype == memory.classes_.dtype
        np.testing.assert_allclose(tree.predict_proba(frame[X]), memory.predict_proba(frame[X]))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_predictions_go_to_a_file_in_batches(tmp_path, rows, ending):
    data = encode(to_learn(rows, ["x", "town"], rewards=["a", "b"]), directory=tmp_path / "e")
    tree = PolicyTree(max_depth=2).fit(data)
    path = tree.predict_to_file(rows, tmp_path / f"out.{ending}", keep=["x"], column="arm", batch_rows=7)
    out = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
    assert out.arm.tolist() == tree.predict(rows[["x", "town"]]).tolist() and np.allclose(out.x, rows.x)
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(".")] == []
    with pytest.raises(InputError, match="lacks the column"):
        tree.predict_to_file(rows[["x"]], tmp_path / "other.csv")
    with pytest.raises(InputError, match=r"lacks the column\(s\) 'id' of keep"):
        tree.predict_to_file(rows, tmp_path / "other.csv", keep=["id"])
    with pytest.raises(InputError, match=r"folder .* does not exist"):
        tree.predict_to_file(rows, tmp_path / "none" / "out.csv")
    with pytest.raises(InputError, match="must end in"):
        tree.predict_to_file(rows, tmp_path / "out.json")
    with pytest.raises(InputError, match="no rows"):
        tree.predict_to_file(rows.iloc[:0], tmp_path / "none.csv")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("refused", ["write", "fsync"])
def test_predictions_that_a_full_disk_refuses_leave_what_was_there(rng, tmp_path, ending, refused, monkeypatch):
    rows = pd.DataFrame({"x": rng.normal(size=400)})
    tree = PolicyTree(max_depth=1).fit(rows, pd.DataFrame({"no": 0.0, "yes": rows["x"]}))
    target, link = tmp_path / f"out.{ending}", tmp_path / f"link.{ending}"
    target.write_bytes(b"earlier")
    link.symlink_to(target)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Full(io.FileIO):
        write = full

    with monkeypatch.context() as patched:
        if refused == "write":
            patched.setattr(files, "open", Full, raising=False)
        else:
            patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"Cannot write '.*link\..*': No space left on device"):
            tree.predict_to_file(rows, link, batch_rows=100)
    assert target.read_bytes() == b"earlier"
    tree.predict_to_file(rows, link, batch_rows=100)
    assert link.is_symlink() and target.read_bytes() != b"earlier"
    assert {path.name for path in tmp_path.iterdir()} == {target.name, link.name}


# --- what cannot be asked of encoded rows ---


def test_refusals_say_what_to_do(small, tmp_path, rows):
    data = encode(to_learn(rows, ["x", "town"], rewards=["a", "b"]), directory=tmp_path / "e")
    for arguments, match in [
        ({"max_bins": 4}, "set max_bins of encode"),
        ({"feature_costs": {"x": 1.0}}, "feature_costs is not available"),
        ({"guesses": "all"}, "guesses is not available"),
        ({"solver": "duplication"}, "leave it at 'direct'"),
        ({"constraints": [Budget(3.0)]}, "subtract costs"),
        ({"min_samples_per_treatment": 2}, "use min_samples_leaf"),
        ({"max_depth": 4, "memory_limit": 10.0}, "needs all 60 encoded rows in memory"),
        ({"max_depth": 2, "memory_limit": 10.0}, "smaller max_bins"),
        ({"min_samples_leaf": 100}, "more rows than there are"),
        ({"split_features": ["z"]}, "names the column 'z'"),
    ]:
        with pytest.raises(InputError, match=match):
            PolicyTree(**arguments).fit(data)
    with pytest.raises(InputError, match="take no T at fit"):
        PolicyTree().fit(data, T=rows.town)
    with pytest.raises(InputError, match="encoded with rewards, for PolicyTree"):
        OptimalTreeClassifier(max_depth=2).fit(data)
    with pytest.raises(InputError, match="nothing else"):
        PolicyTree().fit(data).predict(data)


def test_a_time_limit_keeps_the_best_tree_so_far(small, tmp_path, rows):
    data = encode(to_learn(rows, ["x", "town"], rewards=["a", "b"]), directory=tmp_path / "e")
    with pytest.warns(SearchWarning, match="time limit"):
        tree = PolicyTree(max_depth=3, time_limit=0.0).fit(data)
    best = PolicyTree(max_depth=3).fit(data)
    assert tree.status_ is Status.TIME_LIMIT
    assert tree.objective_value_ <= best.objective_value_ <= tree.objective_bound_ + 1e-12
