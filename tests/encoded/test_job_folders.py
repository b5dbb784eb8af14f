"""Folders that jobs write to: nobody else's files are deleted, and no two processes write at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import types

import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import RewardEstimator, Study
from policytree.encoded import encode, jobs, stream_rewards
from policytree.exceptions import InputError
from policytree.serialization import locks
from tests.support.streamed import to_learn

pytest.importorskip("pyarrow")


@pytest.fixture
def rows(rng):
    frame = pd.DataFrame({"x": rng.normal(size=60), "arm": rng.choice(["a", "b"], 60)})
    return frame.assign(y=frame.x, good=(frame.x > 0) * 1.0, bad=0.0)


def encoded(rows, folder, **more):
    return encode(to_learn(rows, ["x"], rewards=["good", "bad"]), directory=folder, **more)


def scored(rows, folder, **more):
    learner = RewardEstimator(model_regression=LinearRegression(), cv=2, random_state=0)
    return stream_rewards(
        learner, Study(rows, covariates=["x"], outcome="y", treatment="arm", propensity=0.5), directory=folder, **more
    )


@pytest.mark.parametrize("make", [encoded, scored])
@pytest.mark.parametrize(
    "name", ["rows-of-mine.csv", "notes-of-tuesday.json", "learning-curve.parquet", "models.joblib.old", "state.json"]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_others_stay(rows, tmp_path, make, name, overwrite):
    (tmp_path / name).write_text(json.dumps({"precious": 1}))
    with pytest.raises(InputError, match="holds other files"):
        make(rows, tmp_path, overwrite=overwrite)
    assert json.loads((tmp_path / name).read_text()) == {"precious": 1}


@pytest.mark.parametrize("name", ["manifest.json", "state.json"])
def test_files_of_our_names_may_hold_anything(rows, tmp_path, name):
    (tmp_path / name).write_text("[1, 2]")
    with pytest.raises(InputError, match=r"holds other files|of another encoding"):
        encoded(rows, tmp_path)
    assert (tmp_path / name).read_text() == "[1, 2]"


@pytest.mark.parametrize("make", [encoded, scored])
def test_what_a_killed_writer_left_goes(rows, tmp_path, make):
    left = tmp_path / ".state.json.0123456789abcdef.tmp"
    left.write_text("half")
    make(rows, tmp_path)
    assert not left.exists()


@pytest.mark.parametrize("make", [encoded, scored])
@pytest.mark.parametrize("deleted", [0, 1, 2, 3])
def test_a_job_that_is_killed_while_it_clears_its_folder_is_done_anew(rows, tmp_path, make, deleted, monkeypatch):
    source = tmp_path / "rows.parquet"
    rows.to_parquet(source)
    make(source, tmp_path / "out")
    before = {f.name: f.read_bytes() for f in (tmp_path / "out").iterdir()}
    unlink, count = type(tmp_path).unlink, iter(range(100))

    def stop(path, **more):
        if next(count) >= deleted:
            raise KeyboardInterrupt
        unlink(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "unlink", stop)
        with pytest.raises(KeyboardInterrupt):
            make(source, tmp_path / "out", overwrite=True)
    make(source, tmp_path / "out")
    assert before == {name: (tmp_path / "out" / name).read_bytes() for name in before}


@pytest.mark.parametrize("make", [encoded, scored])
def test_a_folder_that_another_job_writes_to_is_refused_and_left_alone(rows, tmp_path, make, monkeypatch):
    held, go_on = threading.Event(), threading.Event()
    tables = jobs.FolderJob.tables
    failures = []

    def slow(job, *arguments, **more):
        held.set()
        assert go_on.wait(30)
        yield from tables(job, *arguments, **more)

    def work():
        try:
            make(rows, tmp_path / "out")
        except Exception as error:
            failures.append(error)

    monkeypatch.setattr(jobs.FolderJob, "tables", slow)
    first = threading.Thread(target=work)
    first.start()
    try:
        assert held.wait(30)
        before = sorted(os.listdir(tmp_path / "out"))
        with pytest.raises(InputError, match="Another process writes to the folder"):
            make(rows.head(50), tmp_path / "out", overwrite=True)
        assert sorted(os.listdir(tmp_path / "out")) == before
    finally:
        go_on.set()
        first.join()
    assert not failures
    make(rows, tmp_path / "out", overwrite=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_lock_ends_with_the_process_that_took_it_though_its_children_live_on(tmp_path):
    code = (
        "import os, sys, time; from pathlib import Path; from policytree.serialization import locks\n"
        "locks.lock_folder(Path(sys.argv[1]))\n"
        "child = os.fork()\n"
        "if child == 0: os.close(1); os.close(2); time.sleep(60); os._exit(0)\n"
        "print(child, flush=True); os._exit(0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    child = int(ran.stdout)
    try:
        folder = locks.lock_folder(tmp_path)
        assert folder is not None
        locks.unlock_folder(tmp_path, folder)
    finally:
        os.kill(child, 9)


def test_a_folder_that_cannot_be_read_is_one_sentence(rows, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)
    with pytest.raises(InputError, match="Cannot read the folder"):
        encoded(rows, tmp_path)


def test_where_folders_cannot_be_locked_a_file_is(rows, tmp_path, monkeypatch):
    """As on Windows, whose module for locks has the same behaviour here: one holder, freed when its file is closed."""
    fcntl = pytest.importorskip("fcntl")

    windows = types.ModuleType("msvcrt")
    windows.LK_NBLCK = 2
    windows.locking = lambda file, mode, n: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    (tmp_path / ".lock").touch()  # a process was killed
    lock = locks.lock_folder(tmp_path)
    with pytest.raises(InputError, match="Another process writes to the folder"):
        encoded(rows, tmp_path)
    locks.unlock_folder(tmp_path, lock)
    encoded(rows, tmp_path)
    assert (tmp_path / "manifest.json").exists() and not (tmp_path / ".lock").exists()
