"""Folders that jobs read back: any change is refused or harmless, and nothing in them can run code."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from policytree import PolicyTree, RewardEstimator, Study
from policytree.data.sources import open_source
from policytree.encoded import encode, encoding, open_encoded, reward_job, store, stream_rewards
from policytree.exceptions import InputError
from policytree.serialization.checksums import has_checksum, text_with_checksum
from tests.support.streamed import stop_after, to_learn

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def source(tmp_path, rng, monkeypatch):
    """A Parquet file of 40 rows, which jobs write as three files."""
    monkeypatch.setattr(encoding, "FILE_ROWS", 16)
    monkeypatch.setattr(reward_job, "FILE_ROWS", 16)
    frame = pd.DataFrame({"x": rng.integers(0, 3, 40), "arm": np.where(rng.random(40) < 0.5, "a", "b")})
    frame.assign(y=frame.x + 0.5, good=rng.normal(size=40), bad=0.0).to_parquet(tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def encoded(source, folder, **more):
    return encode(to_learn(source, ["x"], rewards=["good", "bad"]), directory=folder, **more)


def scored(source, folder, **more):
    learner = RewardEstimator(model_regression=LinearRegression(), cv=2, random_state=0)
    study = Study(source, treatment="arm", outcome="y", covariates=["x"], propensity=0.5)
    return stream_rewards(learner, study, held_out=0.3, directory=folder, **more)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# --- JSON ---

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text().filter(lambda key: key != "checksum"), VALUES, max_size=4))
def test_what_was_written_is_read(data):
    found = json.loads(text_with_checksum(data))
    assert has_checksum(found)
    found.pop("checksum")
    assert found == data and not has_checksum(found)


@pytest.mark.parametrize("bad", ["[1]", "3", "null", '{"checksum": NaN}', '{"a": Infinity}', '{"checksum": {}}', "{}"])
def test_what_was_not_written_has_no_checksum(bad):
    assert not has_checksum(json.loads(bad))


@pytest.mark.parametrize("make", [encoded, scored])
@pytest.mark.parametrize("name", ["manifest.json", "state.json", "note"])
def test_any_byte_that_changes_is_refused_or_harmless(source, tmp_path, make, name, monkeypatch):
    folder = tmp_path / "out"
    if name == "manifest.json":
        make(source, folder)
    else:
        stop_after(2, lambda: make(source, folder), monkeypatch)
    path = folder / name if name != "note" else sorted(folder.glob("*-000000.json"))[0]
    content, expected = path.read_bytes(), store.read_json(path, "again")
    refused = changes = 0
    for at in range(len(content)):
        # At every place another digit or letter, and one of the bytes that change what JSON or its text is, in turn.
        for byte in {content[at] ^ 1, (content[at] ^ 128, *b'0 "}')[at % 5]} - {content[at]}:
            path.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
            changes += 1
            try:
                assert store.read_json(path, "do it again") == expected
            except InputError as error:
                assert str(error) == f"'{path}' is damaged: it is not what was written; do it again."
                refused += 1
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="is damaged"):
            store.read_json(path, "again")
    path.write_bytes(content)
    assert store.read_json(path, "again") == expected
    assert refused > 0.9 * changes > 1.5 * len(content)


def changed(path: Path, how: str) -> None:
    """Do harm to a JSON file."""
    content = path.read_bytes()
    data = json.loads(content)
    if how == "digit":
        at = next(k for k in range(len(content) - 1, 0, -1) if content[k : k + 1].isdigit())
        path.write_bytes(content[:at] + (b"1" if content[at] != ord("1") else b"2") + content[at + 1 :])
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "key":
        data.pop("asked")
        path.write_text(json.dumps(data))
    elif how == "old":
        path.write_text(json.dumps({k: v for k, v in data.items() if k not in ("checksum", "version")}))
    else:  # another version, whole
        path.write_text(text_with_checksum({k: v for k, v in data.items() if k != "checksum"} | {"version": 99}))


@pytest.mark.parametrize("make", [encoded, scored])
@pytest.mark.parametrize("name", ["manifest.json", "state.json"])
@pytest.mark.parametrize("how", ["digit", "cut", "key", "old", "version"])
def test_a_damaged_job_is_one_sentence_and_begins_anew_if_asked_to(source, tmp_path, make, name, how, monkeypatch):
    folder = tmp_path / "out"
    make(source, folder)
    expected = contents(folder)
    if name == "state.json":
        folder = tmp_path / "other"
        stop_after(2, lambda: make(source, folder), monkeypatch)
    changed(folder / name, how)
    said = "was written by another version of policytree; .*" if how in ("old", "version") else "is damaged: .*"
    before = contents(folder)
    with pytest.raises(InputError, match=f"{name}. {said} again, with overwrite=True.$"):
        make(source, folder)
    if make is encoded and name == "manifest.json":
        with pytest.raises(InputError, match="encode the source again, with overwrite=True"):
            open_encoded(folder)
    assert contents(folder) == before
    make(source, folder, overwrite=True)
    assert contents(folder).keys() == expected.keys()


@pytest.mark.parametrize("make", [encoded, scored])
def test_a_damaged_note_and_its_file_are_written_again(source, tmp_path, make, monkeypatch):
    make(source, tmp_path / "whole")
    stop_after(2, lambda: make(source, tmp_path / "out"), monkeypatch)
    changed(sorted((tmp_path / "out").glob("*-000001.json"))[0], "digit")
    make(source, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


# --- files of rows ---


def harm(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if how == "byte":
        path.write_bytes(content)
    elif how == "length":
        path.write_bytes(content[:-8])
    else:
        path.unlink()


@pytest.mark.parametrize("make", [encoded, scored])
@pytest.mark.parametrize("how", ["byte", "length", "gone"])
@pytest.mark.parametrize("ended", [True, False])
def test_damaged_files_are_mended_by_the_same_call(source, tmp_path, make, how, ended, monkeypatch):
    make(source, tmp_path / "whole")
    folder, expected = tmp_path / "out", contents(tmp_path / "whole")
    if ended:
        make(source, folder)
    else:
        stop_after(2, lambda: make(source, folder), monkeypatch)
    names = sorted(name for name in contents(folder) if not name.endswith(".json"))
    harm(folder / names[0], how)
    harm(folder / names[-1], how)
    whole = [name for name in names if "-000001." in name] if ended else []
    kept = [(folder / name).stat().st_mtime_ns for name in whole]
    found = make(source, folder)
    assert contents(folder) == expected
    assert [(folder / name).stat().st_mtime_ns for name in whole] == kept  # what is whole stays as it is
    if make is encoded:
        PolicyTree(max_depth=1).fit(found)
        PolicyTree(max_depth=1).fit(open_encoded(folder))


def test_every_byte_of_a_file_of_rows_counts(source, tmp_path):
    folder = tmp_path / "out"
    encoded(source, folder)
    path = folder / store.rows_file(1)
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        assert not open_encoded(folder).is_intact(1)
        with pytest.raises(
            InputError, match=r"is damaged: .* encode the source again into this folder, which mends it"
        ):
            open_encoded(folder).rows(1)
    path.write_bytes(content)
    assert open_encoded(folder).is_intact(1)


def test_damaged_pages_of_rewards_are_found_when_they_are_read(source, tmp_path):
    scores = scored(source, tmp_path / "scores")
    path = scores.learning_files[0]
    content = path.read_bytes()
    group = pyarrow.parquet.read_metadata(path).row_group(0)
    column = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "a")
    at = (
        column.data_page_offset - 1
    )  # the last byte of the values, which are a dictionary; page headers have no checksum
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(InputError, match="cannot be read"):
        encode(scores.learning, directory=tmp_path / "codes")
    again = scored(source, tmp_path / "scores")
    encode(again.learning, directory=tmp_path / "codes")


def test_a_source_of_other_rows_mends_nothing(source, tmp_path, monkeypatch):
    """Its files look as they did: same names, sizes and times."""
    encoded(source, tmp_path / "out")
    harm(tmp_path / "out" / store.rows_file(0), "byte")
    other = pd.read_parquet(source).assign(good=1.0)
    opened = replace(open_source(source), parts=open_source(other).parts)
    with pytest.raises(InputError, match=r"holds other rows than were written to .* with overwrite=True"):
        encoded(opened, tmp_path / "out")


# --- what can run code ---


class Planted:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "code ran")


@pytest.mark.parametrize("dump", [pickle.dump, joblib.dump])
@pytest.mark.parametrize("when", ["before", "stopped", "ended"])
@pytest.mark.parametrize("make", [encoded, scored])
def test_nothing_in_a_folder_runs_code(source, tmp_path, make, when, dump, monkeypatch):
    folder, proof = tmp_path / "out", tmp_path / "proof"
    names = ["models.joblib", "state.json", "manifest.json", "rows-000000.bin", "notes-000000.json", "rows-000000.json"]
    if when == "stopped":
        stop_after(2, lambda: make(source, folder), monkeypatch)
    elif when == "ended":
        make(source, folder)
    else:
        folder.mkdir()
    for name in names:
        kept = contents(folder)
        with open(folder / name, "wb") as file:
            dump(Planted(proof), file)
        for overwrite in (False, True):
            try:
                make(source, folder, overwrite=overwrite)
            except InputError:
                continue
        assert not proof.exists()
        for file in folder.iterdir():
            file.unlink()
        for other, content in kept.items():
            (folder / other).write_bytes(content)
    with open(tmp_path / "control", "wb") as file:
        dump(Planted(proof), file)
    with open(tmp_path / "control", "rb") as file:
        (joblib.load if dump is joblib.dump else pickle.load)(file)
    assert proof.exists()  # what was planted would have run
