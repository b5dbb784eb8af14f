"""Files, datasets and partitions that differ in their types: read as one, or refused in a sentence."""

from __future__ import annotations

import os
from contextlib import nullcontext
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import OptimalTreeClassifier, RewardEstimator, Study
from policytree.data import sources
from policytree.encoded import encode, reward_job, stream_rewards
from policytree.encoded.reading import positions
from policytree.exceptions import InputError
from tests.support.streamed import to_learn

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N = 40


@pytest.fixture
def files(tmp_path):
    def write(**columns):
        """One file for each value of the columns, which are lists of equal length."""
        paths = []
        for k, values in enumerate(zip(*columns.values(), strict=True)):
            paths.append(tmp_path / f"part-{k}.parquet")
            parquet.write_table(pa.table(dict(zip(columns, values, strict=True))), paths[-1])
        return paths

    return write


def cuts_of(paths, folder, **more):
    """Thresholds and labels of rows as they are encoded."""
    data = encode(to_learn(paths, ["x"], y="y"), directory=folder, **more)
    return [column.thresholds.tolist() for column in data.columns], data.labels.tolist()


y = pa.array(np.arange(N) % 2)
MIXED = {
    "yes or no, whole": (pa.array(np.arange(N) < 9), pa.array(np.arange(N)), N - 1),
    "yes or no, fractions": (pa.array(np.arange(N) < 9), pa.array(np.arange(N) / 2), N - 1),
    "decimals, whole": (pa.array([Decimal("1.5")] * N), pa.array(np.arange(N)), N),
    "decimals of two scales": (pa.array([Decimal("1.5")] * N), pa.array([Decimal("2.125")] * N), 1),
    "without sign, with sign": (pa.array(np.arange(N).astype("u8")), pa.array(np.arange(N) - 5), N + 4),
    "text, categories": (pa.array(["a", "b"] * (N // 2)), pa.array(["b", "c"] * (N // 2)).dictionary_encode(), 3),
    "nothing, text": (pa.nulls(N), pa.array(["b", "c"] * (N // 2)), 3),
}


def said_of_booleans(column, first, second):
    """The warning that comes where some files hold true and false in a column, and others numbers."""
    if not pa.types.is_boolean(first.type):
        return nullcontext()
    return pytest.warns(UserWarning, match=f"Column '{column}' holds true and false in 'part-.* and numbers in 'part-")


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("file_rows", [7, N, 1000])
def test_parts_of_several_types_are_one_column(files, tmp_path, monkeypatch, name, file_rows):
    monkeypatch.setattr("policytree.encoded.encoding.FILE_ROWS", file_rows)
    first, second, cuts = MIXED[name]
    with said_of_booleans("x", first, second):
        found = [
            cuts_of(files(x=each, y=[y, y]), tmp_path / f"{k}")
            for k, each in enumerate([(first, second), (second, first)])
        ]
    assert found[0] == found[1]
    assert sum(map(len, found[0][0])) == cuts


def test_whole_numbers_that_a_float_cannot_hold_are_refused_beside_floats(files, tmp_path):
    paths = files(x=[pa.array(np.arange(N) + 2**53), pa.array(np.arange(N) / 2)], y=[y, y])
    with pytest.raises(InputError, match=r"'part-0.parquet' cannot be read: Integer value .* not in range"):
        encode(to_learn(paths, ["x"], y="y"), directory=tmp_path / "codes")


LABELS = [
    (pa.array(np.arange(N) % 2 == 1), pa.array(np.arange(N) % 3), [0, 1, 2]),
    (pa.array(np.arange(N) % 2, pa.int8()), pa.array(np.arange(N) % 2 * 300), [0, 1, 300]),
    (pa.array(np.arange(N) % 2), pa.array(np.arange(N) % 2 * 2.0), [0.0, 1.0, 2.0]),
]


@pytest.mark.parametrize(("first", "second", "labels"), LABELS)
@pytest.mark.parametrize("file_rows", [N, 1000])
def test_labels_of_several_types_are_the_same_labels(files, tmp_path, monkeypatch, first, second, labels, file_rows):
    monkeypatch.setattr("policytree.encoded.encoding.FILE_ROWS", file_rows)
    monkeypatch.setattr(reward_job, "FILE_ROWS", file_rows)
    x = pa.array(np.arange(N) % 7 * 1.0)
    paths = files(x=[x, x], y=[first, second], gain=[x, x])
    with said_of_booleans("y", first, second):
        assert cuts_of(paths, tmp_path / "codes")[1] == labels
    learner = RewardEstimator(model_regression=LinearRegression(), cv=2, random_state=0)
    known = dict.fromkeys(labels, 1 / 3)
    with said_of_booleans("y", first, second):
        scores = stream_rewards(
            learner,
            Study(paths, covariates=["x"], outcome="gain", treatment="y", propensity=known),
            directory=tmp_path / "scores",
        )
    assert scores.treatments == labels


@pytest.mark.parametrize("type_", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_places_are_of_equal_numbers_only(type_):
    column = pa.chunked_array([pa.array([0, 1, 2, None]).cast(type_)])
    np.testing.assert_array_equal(positions(column, [-0.5, 0.0, 0.5, 1.0]), [1, 3, np.nan, np.nan])
    np.testing.assert_array_equal(positions(column, [0, 2, 300]), [0, np.nan, 1, np.nan])


def test_copied_columns_may_be_of_any_type(files, tmp_path):
    x = pa.array(np.arange(N) * 1.0)
    when = pa.array(np.arange(N) * 1000, pa.timestamp("ms"))
    paths = files(x=[x, x], y=[y, y], when=[when, when.cast(pa.timestamp("us"))], many=[pa.array([[1]] * N)] * 2)
    tree = OptimalTreeClassifier(max_depth=1).fit(pd.DataFrame({"x": x.to_numpy()}), y.to_numpy())
    out = tree.predict_to_file(paths, tmp_path / "out.parquet", keep=["when", "many"])
    assert parquet.read_table(out).column("when").to_pylist() == when.to_pylist() * 2
    with pytest.raises(InputError, match="several types cannot be read"):
        tree.predict_to_file(files(x=[x, x], when=[when, pa.array([[1]] * N)]), tmp_path / "out.csv", keep=["when"])


def test_a_filter_of_a_dataset_holds(files, tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    paths = files(x=[pa.array(np.arange(N) * 1.0)], y=[y])
    rows = dataset.dataset(paths[0]).filter(dataset.field("x") >= 30)
    data = encode(to_learn(rows, ["x"], y="y"), directory=tmp_path / "codes")
    assert data.n_rows == N - 30
    assert min(data.columns[0].thresholds) > 30


@pytest.mark.parametrize("form", ["table", "frame"])
def test_two_columns_of_one_name_are_one_sentence(tmp_path, form):
    source = pa.table([y, y, y], names=["x", "x", "y"])
    if form == "frame":
        source = pd.DataFrame([[1, 2, 3]], columns=["x", "x", "y"])
    with pytest.raises(InputError, match="x"):
        encode(to_learn(source, ["x"], y="y"), directory=tmp_path / "codes")


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_is_written_anew_meanwhile_is_no_result(files, tmp_path, monkeypatch, gone):
    """As many rows as before: only the file's time tells."""
    paths = files(x=[pa.array(np.arange(N) * 1.0)] * 2, y=[y, y])
    tables = sources.Source.tables

    def changing(source, *arguments):
        yield from tables(source, *arguments)
        if gone:
            paths[1].unlink(missing_ok=True)
        else:
            os.utime(paths[1], ns=(1, 1))

    monkeypatch.setattr(sources.Source, "tables", changing)
    with pytest.raises(InputError, match=r"changed while it was read|cannot be read"):
        encode(to_learn(paths, ["x"], y="y"), directory=tmp_path / "codes")
    assert not (tmp_path / "codes" / "manifest.json").exists()


def test_a_cluster_that_is_no_number_is_refused(tmp_path):
    rows = pa.table(
        {"x": np.arange(N) * 1.0, "gain": np.arange(N), "t": y, "g": np.where(np.arange(N) == 3, np.nan, 1.0)}
    )
    learner = RewardEstimator(model_regression=LinearRegression(), cv=2, random_state=0)
    with pytest.raises(InputError, match="group"):
        stream_rewards(
            learner, Study(rows, covariates=["x"], outcome="gain", treatment="t", cluster="g"), directory=tmp_path / "s"
        )


def test_partitions_whose_labels_have_several_types(files):
    pytest.importorskip("dask.dataframe")
    from policytree.on_dask.estimators import DaskOptimalTreeClassifier

    x = pa.array(np.arange(N) % 3 * 1.0)
    labels = [pa.array(np.arange(N) % 3, pa.int8()), pa.array(np.arange(N) % 3 * 300)]
    paths = files(x=[x, x], y=labels)
    tree = DaskOptimalTreeClassifier(max_depth=2).fit(to_learn([str(p) for p in paths], ["x"], y="y"))
    rows = pd.concat([pd.read_parquet(p) for p in paths])
    local = OptimalTreeClassifier(max_depth=2).fit(rows[["x"]], rows.y)
    assert tree.classes_.tolist() == local.classes_.tolist()
    assert tree.objective_value_ == pytest.approx(local.objective_value_)


def test_files_without_row_groups_have_no_rows(tmp_path):
    pytest.importorskip("dask.dataframe")
    from policytree.on_dask.estimators import DaskOptimalTreeClassifier

    path = tmp_path / "none.parquet"
    with parquet.ParquetWriter(path, pa.schema([("x", pa.float64()), ("y", pa.int64())])):
        pass
    with pytest.raises(InputError, match="no rows"):
        DaskOptimalTreeClassifier().fit(to_learn(str(path), ["x"], y="y"))


def test_parts_whose_kinds_differ_are_named():
    """Parts without any value agree with all others."""
    parts = [(f"partition {k}", {"x": type_}) for k, type_ in enumerate((pa.null(), pa.int64(), pa.string()))]
    assert sources.common_kinds(parts[:1], ["x"], "", "convert it") == {"x": sources.UNKNOWN}
    assert sources.common_kinds(parts[:2], ["x"], "", "convert it") == {"x": sources.NUMBER}
    with pytest.raises(
        InputError, match=r"^Column 'x' holds numbers in partition 1 and text in partition 2; convert it"
    ):
        sources.common_kinds(parts, ["x"], "", "convert it")
    with pytest.raises(InputError, match=r"^Column 'x' of X has type list.*; turn it into numbers or text"):
        sources.common_kinds([("a file", {"x": pa.list_(pa.int64())})], ["x"], " of X", "convert it")
