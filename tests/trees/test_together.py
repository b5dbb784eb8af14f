"""Files of one run appear together or not at all, whatever fails: every operation on the disk fails in turn."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from policytree.exceptions import InputError
from policytree.serialization import locks, settle, together, write_together
from tests.cli.running import ROOT

NAMES = ("report.html", "tree.json", "leaves.csv", "values.csv")
EARLIER = {"report.html": b"earlier report", "tree.json": b"earlier tree", "values.csv": b"earlier values"}
LATER = {"report.html": b"later report" * 9, "tree.json": b"later tree", "leaves.csv": b"later leaves"}
OTHERS = {"mine.txt": b"mine", "tree.json.bak": b"mine too", "notes/today.txt": b"deep"}
MAKING = ("mkdir", "fsync", "chmod", "write")  # what needs space on the disk, or waits for it
MOVING = ("rename", "replace", "unlink", "rmdir", "open")


class Killed(BaseException):
    """The process ends: neither this operation nor any later one takes place."""


class Disk:
    """Operations on the disk, of which some go wrong.

    Parameters
    ----------
    at : int
        The number of the first operation that does.
    wrong : callable
        What happens in its place.
    later : collection of str, default ()
        The kinds of later operations to which the same happens.
    watch : callable, optional
        Called before every operation.
    """

    def __init__(self, at, wrong, later=(), watch=None):
        self.at, self.wrong, self.later, self.watch = at, wrong, later, watch
        self.done = 0

    def before(self, kind):
        """One more operation."""
        if self.watch is not None:
            self.watch()
        self.done += 1
        if self.done == self.at or (self.done > self.at and kind in self.later):
            self.wrong()

    def open(self, path, mode):
        """As Python's own; half of what is written arrives where writing fails."""
        self.before("open")
        return HalfWritten(Path(path).open(mode, buffering=0), self)

    @contextmanager
    def used(self):
        """While this disk is the one there is."""
        with pytest.MonkeyPatch.context() as patch:
            for name in (*MAKING, *MOVING):
                if hasattr(os, name):
                    real = getattr(os, name) if name != "fsync" else os.fstat  # waiting for the disk takes long
                    patch.setattr(os, name, partial(self._call, name, real))
            patch.setattr(together, "open", self.open, raising=False)
            yield self

    def _call(self, name, real, *arguments, **more):
        self.before(name)
        return real(*arguments, **more)


class HalfWritten:
    """A file in two writes."""

    def __init__(self, file, disk):
        self.file, self.disk = file, disk
        self.fileno, self.flush = file.fileno, file.flush

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.disk.before("write")
        self.file.write(data[len(data) // 2 :])


def no_space():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def kill():
    raise Killed


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def heeding_ctrl_c():
    """Also where a shell started the tests so that they ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def snapshot(folder: Path) -> dict[str, bytes] | None:
    """All files below a folder, hidden ones too; None where there is no folder."""
    if not folder.exists():
        return None
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def seen(folder: Path) -> dict[str, bytes] | None:
    """Return the files of a folder that a user sees."""
    found = snapshot(folder)
    return None if found is None else {name: content for name, content in found.items() if not name.startswith(".")}


def of_one_run(folder: Path) -> None:
    """No file of the later run stands beside one of the earlier, at no moment."""
    runs = {(folder / name).read_bytes()[:5] for name in NAMES if (folder / name).exists()}
    assert len(runs) <= 1, runs


@pytest.fixture(params=["existing", "existing through a link", "new", "new below new ones"])
def place(request, tmp_path):
    """The folder to write to, made anew by every call, and what it holds before."""
    numbers = itertools.count()

    def make():
        base = tmp_path / f"{next(numbers)}"
        base.mkdir()
        folder = base / "out"
        if request.param.startswith("existing"):
            (folder / "notes").mkdir(parents=True)
            for name, content in (EARLIER | OTHERS).items():
                (folder / name).write_bytes(content)
            if "link" in request.param:
                (base / "link").symlink_to(folder, target_is_directory=True)
                return base, base / "link"
            return base, folder
        return base, base / "a" / "b" / "out" if "below" in request.param else folder

    return make


def outcomes(folder: Path) -> tuple[dict | None, dict]:
    """Return the permitted contents of a folder: all as before, or all of the later run."""
    before = snapshot(folder)
    kept = {} if before is None else OTHERS
    return before, LATER | kept


def test_what_is_written(place):
    base, folder = place()
    _, after = outcomes(folder)
    assert write_together(folder, LATER, NAMES) == [folder / name for name in LATER]
    assert snapshot(folder) == after
    linked = folder.is_symlink()
    assert {path.name for path in base.iterdir()} == (
        {"out", "link"} if linked else {folder.relative_to(base).parts[0]}
    )
    write_together(folder, EARLIER, NAMES)
    assert snapshot(folder) == {name: after[name] for name in after if name not in LATER} | EARLIER


def left_over(base: Path) -> list[Path]:
    """Folders of an exchange that should be gone."""
    return [path for path in base.rglob("*") if path.name.endswith((".tmp", ".out", ".in"))]


@pytest.mark.parametrize("wrong", ["full once", "full from then on", "Ctrl-C"])
def test_an_error_at_any_operation_leaves_what_was_there(place, wrong, heeding_ctrl_c):
    for at in itertools.count(1):
        base, folder = place()
        before, after = outcomes(folder)
        disk = Disk(
            at, press_ctrl_c if wrong == "Ctrl-C" else no_space, MAKING if wrong == "full from then on" else (),
            watch=partial(of_one_run, folder),
        )  # fmt: skip
        failed = None
        with disk.used():
            try:
                write_together(folder, LATER, NAMES)
            except (InputError, KeyboardInterrupt) as error:
                failed = error
        found, left = seen(folder), left_over(base)
        if failed is None:
            assert found == after
        elif wrong == "Ctrl-C":
            assert isinstance(failed, KeyboardInterrupt) and found in (before, after)
        else:
            assert "No space left on device; no file was changed" in str(failed)
            assert found == before
        if disk.done < at:
            assert at > 15 and not left
            return
        if left:  # deleting failed, all else being done: what is left goes with the next run
            assert found == after if failed is None else wrong == "Ctrl-C"
            write_together(folder, EARLIER, NAMES)
            assert not left_over(base)


@pytest.mark.parametrize("wrong", ["killed", "no operation succeeds any more"])
def test_a_kill_at_any_operation_leaves_files_of_one_run_that_the_next_command_completes(place, wrong):
    def dies(at, what):
        """Whether the process, or the disk, dies in the midst of something; locks end with a process."""
        disk = Disk(at, kill if wrong == "killed" else no_space, (*MAKING, *MOVING))
        try:
            with disk.used():
                what()
        except (Killed, InputError) as error:
            if isinstance(error, InputError):
                assert "No space left" in str(error)
            for lock in list(locks._locked):
                locks.unlock_folder(folder, lock)
        of_one_run(folder)
        return disk.done >= at

    for at in itertools.count(1):
        folder = place()[1]
        before, after = outcomes(folder)
        if not dies(at, lambda folder=folder: write_together(folder, LATER, NAMES)):
            return
        if not folder.exists():
            assert before is None
            continue
        for second in itertools.count(1):
            if not dies(second, lambda folder=folder: settle(folder, NAMES)):
                break
        assert seen(folder) in (before, after), at
        write_together(folder, EARLIER, NAMES)
        assert snapshot(folder) == EARLIER | (OTHERS if before is not None else {})


def test_a_folder_that_a_killed_process_did_not_rename_goes_after_an_hour(tmp_path):
    young, old = (tmp_path / f".out.{digit * 16}.tmp" for digit in "ab")
    for path in (young, old):
        path.mkdir()
        (path / "tree.json").write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    write_together(tmp_path / "out", LATER, NAMES)
    assert young.exists() and not old.exists()


def test_a_disk_that_is_full_in_earnest(tmp_path):
    """The system itself refuses to let files grow."""
    resource = pytest.importorskip("resource")
    for name, content in EARLIER.items():
        (tmp_path / name).write_bytes(content)
    code = (
        "import resource, sys; from policytree.serialization import write_together\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "files = {'tree.json': b'new', 'report.html': b'x' * 5000}\n"
        "try: write_together(sys.argv[1], files, ['tree.json', 'report.html', 'values.csv'])\n"
        "except ValueError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    assert "File too large; no file was changed" in ran.stdout, resource
    assert snapshot(tmp_path) == EARLIER


@pytest.mark.parametrize("what", ["a folder", "a link", "no ordinary file"])
def test_names_that_are_no_files_are_refused(tmp_path, what):
    path = tmp_path / "tree.json"
    (tmp_path / "values.csv").write_bytes(b"earlier")
    if what == "a folder":
        path.mkdir()
    elif what == "a link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        os.mkfifo(path)
    with pytest.raises(InputError, match=f"tree.json': it is {what}"):
        write_together(tmp_path, LATER, NAMES)
    assert sorted(os.listdir(tmp_path)) == ["tree.json", "values.csv"]


def test_rights_of_earlier_files_stay(tmp_path):
    (tmp_path / "tree.json").write_bytes(b"earlier")
    (tmp_path / "tree.json").chmod(0o640)
    write_together(tmp_path, LATER, NAMES)
    assert stat.S_IMODE((tmp_path / "tree.json").stat().st_mode) == 0o640


def test_who_writes_at_the_same_time_waits(tmp_path, monkeypatch):
    lock = locks.lock_folder(tmp_path)
    threading.Timer(0.2, locks.unlock_folder, (tmp_path, lock)).start()
    write_together(tmp_path, LATER, NAMES)
    assert snapshot(tmp_path) == LATER
    monkeypatch.setattr(together, "PATIENCE", 0.1)
    lock = locks.lock_folder(tmp_path)
    try:
        with pytest.raises(InputError, match="Another process writes to the folder"):
            write_together(tmp_path, EARLIER, NAMES)
    finally:
        locks.unlock_folder(tmp_path, lock)
    assert snapshot(tmp_path) == LATER


def test_a_folder_that_appears_meanwhile_keeps_what_it_holds(tmp_path):
    def appear():
        if not (tmp_path / "out").exists() and len(os.listdir(tmp_path)) == 1:
            (tmp_path / "out" / "notes").mkdir(parents=True)
            (tmp_path / "out" / "mine.txt").write_bytes(b"mine")

    with Disk(0, None).used() as disk:
        rename = os.rename

        def late(source, target):
            appear()
            rename(source, target)

        os.rename = late
        write_together(tmp_path / "out", LATER, NAMES)
    assert disk.done and snapshot(tmp_path / "out") == LATER | {"mine.txt": b"mine"}
    assert os.listdir(tmp_path) == ["out"]
