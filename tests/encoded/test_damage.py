"""Encoding that is stopped goes on; damaged and odd data are named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree
from policytree.encoded import encode, encoding, open_encoded, store
from policytree.exceptions import InputError
from tests.support.encoded_problems import damage_row_group, write_parts
from tests.support.streamed import to_learn

pa = pytest.importorskip("pyarrow")
pa_dataset = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")


# --- what is stopped goes on; what is damaged is refused ---


def test_a_killed_job_goes_on_where_it_was(tmp_path, rng):
    """A process of its own is killed while it writes; the next call keeps the files that were written."""
    frame = pd.DataFrame({f"x{j}": rng.normal(size=500) for j in range(2)} | {"a": rng.normal(size=500), "b": 0.0})
    folder = tmp_path / "p"
    folder.mkdir()
    for k in range(5):
        pq.write_table(pa.Table.from_pandas(frame[100 * k : 100 * k + 100]), folder / f"{k}.parquet")
    code = textwrap.dedent(f"""
        import os, signal
        from policytree import Study
        from policytree.encoded import encoding
        from policytree.study import Rewards
        encoding.FILE_ROWS = 64
        write = encoding._Job._write_file
        def killed(self, plan, table, first_row):
            if first_row >= 256:
                os.kill(os.getpid(), signal.SIGKILL)
            return write(self, plan, table, first_row)
        encoding._Job._write_file = killed
        study = Study({str(folder)!r}, outcome=Rewards(["a", "b"]), covariates=["x0", "x1"])
        encoding.encode(study, directory={str(tmp_path / "e")!r})
    """)
    root = Path(encoding.__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(root)}, check=False)
    assert run.returncode == -signal.SIGKILL
    with pytest.raises(InputError, match="did not end"):
        open_encoded(tmp_path / "e")
    written = {f: f.stat().st_mtime_ns for f in (tmp_path / "e").glob("rows-*.bin")}
    assert len(written) == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "FILE_ROWS", 64)
        patch.setattr(encoding._Job, "_plan", lambda self: pytest.fail("values were read again"))
        data = encode(to_learn(folder, ["x0", "x1"], rewards=["a", "b"]), directory=tmp_path / "e")
        assert {f: f.stat().st_mtime_ns for f in written} == written
        assert (
            encode(to_learn(folder, ["x0", "x1"], rewards=["a", "b"]), directory=tmp_path / "e").stored == data.stored
        )  # done
    whole = encode(to_learn(folder, ["x0", "x1"], rewards=["a", "b"]), directory=tmp_path / "whole")
    trees = [PolicyTree(max_depth=2).fit(each) for each in (data, whole)]
    assert trees[0].to_dict() == trees[1].to_dict()


def test_a_full_disk_leaves_nothing_half_written(small, tmp_path, rows):
    def full(*_):
        raise OSError(28, "No space left on device")

    def study():
        return to_learn(tmp_path / "rows.parquet", ["x", "town"], rewards=["a", "b"])

    small.setattr(encoding, "FILE_ROWS", 20)
    rows.to_parquet(tmp_path / "rows.parquet")
    with small.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left on device"):
            encode(study(), directory=tmp_path / "e")
    assert [f.name for f in (tmp_path / "e").iterdir()] == []
    assert len(encode(study(), directory=tmp_path / "e")) == 60


@pytest.mark.parametrize("harm", ["byte", "length", "gone", "manifest"])
def test_damaged_files_are_refused(small, tmp_path, rows, harm):
    encode(to_learn(rows, ["x"], rewards=["a", "b"]), directory=tmp_path / "e")
    file = tmp_path / "e" / store.rows_file(0)
    content = bytearray(file.read_bytes())
    if harm == "byte":
        content[30] ^= 1
        file.write_bytes(content)
    elif harm == "length":
        file.write_bytes(content[:-8])
    elif harm == "gone":
        file.unlink()
    else:
        (tmp_path / "e" / store.MANIFEST).write_text("{")
    with pytest.raises(InputError, match="encode the source again"):
        PolicyTree().fit(open_encoded(tmp_path / "e"))


def test_folders_are_not_mixed_up(tmp_path, rows):
    encode(to_learn(rows, ["x"], rewards=["a", "b"]), directory=tmp_path / "e")
    with pytest.raises(InputError, match="another encoding"):
        encode(to_learn(rows, ["town"], rewards=["a", "b"]), directory=tmp_path / "e")
    data = encode(to_learn(rows, ["town"], rewards=["a", "b"]), directory=tmp_path / "e", overwrite=True)
    assert [f.name for f in data.features] == ["town"]
    (tmp_path / "e" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        encode(to_learn(rows, ["x"], rewards=["a", "b"]), directory=tmp_path / "e", overwrite=True)


# --- odd data ---


def refused(match: str, frame: pd.DataFrame, folder: Path, **ask):
    """Where a study of these rows is made, or encoded, in memory and from a file."""
    asked = {"X": ["x"], "rewards": ["a", "b"]} | ask
    settings = {name: asked.pop(name) for name in ("max_bins",) if name in asked}
    frame.to_parquet(folder / "rows.parquet")
    for k, rows in enumerate((frame, folder / "rows.parquet")):
        with pytest.raises(InputError, match=match):
            encode(to_learn(rows, **asked), directory=folder / str(k), **settings)


def test_what_cannot_be_encoded_is_named(tmp_path, rows):
    refused("no rows", rows.iloc[:0], tmp_path)
    refused("There is no column 'z'", rows, tmp_path, X=["x", "z"])
    refused(
        "'a' of rewards contains NaN or infinity, first in row 7",
        rows.assign(a=rows.a.where(rows.index != 7)),
        tmp_path,
    )
    refused("Covariate 'x' holds infinite", rows.assign(x=np.inf), tmp_path)
    refused("integers beyond", rows.assign(x=2**60 + np.arange(60)), tmp_path)
    refused("'w' of weights has a negative value in row 0", rows.assign(w=-1.0), tmp_path, weights="w")
    refused("'w' of weights has a missing", rows.assign(w=np.nan), tmp_path, weights="w")
    refused("weights are zero in all rows", rows.assign(w=0.0), tmp_path, weights="w")
    refused("largest value", rows.assign(w=1e-300), tmp_path, weights="w")
    refused("type (timestamp|datetime)", rows.assign(x=pd.Timestamp("2020-01-01")), tmp_path)
    refused("fractions", rows.assign(y=0.5), tmp_path, rewards=None, y="y")
    refused("labels 'y' contain NaN", rows.assign(y=np.where(rows.x > 0, "a", None)), tmp_path, rewards=None, y="y")
    refused("Rewards names a column twice", rows, tmp_path, rewards=["a", "a"])
    refused("Rewards takes a list of columns", rows, tmp_path, rewards="a")
    refused("'a', which is the reward a", rows, tmp_path, X=["x", "a"])
    refused("max_bins must", rows, tmp_path, max_bins=1)
    refused("max_bins must lie", rows, tmp_path, max_bins=70_000)
    refused("too large to be added up", rows.assign(a=1.7e308, b=-1.7e308), tmp_path)
    with pytest.raises(InputError, match="no file"):
        encode(to_learn(tmp_path / "none.parquet", ["x"], rewards=["a"]), directory=tmp_path / "e")
    with pytest.raises(InputError, match="takes a table with named columns"):
        encode(to_learn(3, ["x"], rewards=["a"]), directory=tmp_path / "e")


def test_types_that_change_between_files_are_named(tmp_path, rows):
    folder = write_parts(rows, tmp_path / "p", "parquet")
    rows.assign(x="high").to_parquet(folder / "part-9.parquet")
    with pytest.raises(InputError, match=r"'x' holds numbers in 'part-0.parquet' and text in 'part-9.parquet'"):
        encode(to_learn(folder, ["x"], rewards=["a", "b"]), directory=tmp_path / "e")


def test_numbers_of_several_widths_and_empty_files_are_one_column(small, tmp_path, rows):
    folder = write_parts(rows.assign(x=(rows.x * 10).round()), tmp_path / "p", "parquet")
    rows.assign(x=(rows.x * 10).round().astype(np.int32)).to_parquet(folder / "part-8.parquet")
    rows.iloc[:0].to_parquet(folder / "part-9.parquet")
    rows.assign(x=None, town=None).iloc[:3].to_parquet(folder / "part-90.parquet")
    data = encode(to_learn(folder, ["x", "town"], rewards=["a", "b"]), directory=tmp_path / "e")
    assert len(data) == 123 and [f.has_missing for f in data.features] == [True, True]


def test_a_damaged_source_is_named(tmp_path, rows):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InputError, match=r"bad.parquet' cannot be read"):
        encode(to_learn(tmp_path / "bad.parquet", ["x"], rewards=["a"]), directory=tmp_path / "e")


def test_a_damaged_row_group_is_named(tmp_path, rows):
    path = tmp_path / "bad.parquet"
    rows[["x", "a", "b"]].to_parquet(path, row_group_size=20)
    damage_row_group(path, 1)
    with pytest.raises(InputError, match=r"^Row group 1 of 'bad.parquet' cannot be read"):
        encode(to_learn(path, ["x"], rewards=["a", "b"]), directory=tmp_path / "e")
    assert not list((tmp_path / "e").glob("rows-*"))


def test_columns_without_a_cut(small, tmp_path, rows):
    frame = rows.assign(none=np.nan, one=3.0, gap=np.where(rows.x > 0, 1.0, np.nan))
    data = encode(to_learn(frame, ["none", "one", "gap"], rewards=["a", "b"]), directory=tmp_path / "e")
    assert [c.feature for c in data.coded] == [2]
    tree = PolicyTree(max_depth=3).fit(data)
    memory = PolicyTree(max_depth=3).fit(frame[["none", "one", "gap"]], frame[["a", "b"]])
    assert tree.objective_value_ == pytest.approx(memory.objective_value_)
    nothing = encode(to_learn(frame, ["none", "one"], rewards=["a", "b"]), directory=tmp_path / "f")
    assert PolicyTree(max_depth=3).fit(nothing).get_n_leaves() == 1
