"""Files of one run that appear together, or not at all: a report never stands beside the tree of another run.

A folder that does not exist is written under another name beside it and renamed. In a folder that exists (which may
hold other files, be a link or a mount point, and have a parent that cannot be written to) the new files are first
written into a *stage*, a hidden folder in it whose ending says how far the exchange is:

    .policytree-<16 hex digits>.tmp    new files are being written into new/; the earlier files stand untouched
    .policytree-<16 hex digits>.out    the new files are complete; the earlier ones are being moved into old/
    .policytree-<16 hex digits>.in     no earlier file is left; the new ones are being moved to their places

Every step is one atomic rename, and the earlier files leave before the first new one comes: at every moment the files
in their places are of one run. An error or an interrupt undoes the steps. The steps of a process that was killed are
completed (.in) or undone (.out, .tmp) by whoever writes to the folder next, or misses a file in it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from policytree.exceptions import InputError
from policytree.serialization.locks import lock_folder, unlock_folder

STAGE = re.compile(r"\.policytree-[0-9a-f]{16}\.(tmp|out|in)")
NEW, OLD = "new", "old"
PATIENCE = 10.0  # seconds to wait for another process that exchanges files in the folder, which takes less than one
ABANDONED = 3600.0  # seconds after which a folder that was to be renamed is one that a killed process left
NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.EBADF)


def write_together(folder: str | os.PathLike, files: Mapping[str, bytes], names: Collection[str]) -> list[Path]:
    """Write files into a folder, made if it is not there, so that all of them appear or none does.

    Parameters
    ----------
    folder : path
    files : mapping of str to bytes
        Contents by name.
    names : collection of str
        Names of all files that such a run may write. An earlier run's file that is not among ``files`` is deleted;
        files of other names are left alone.

    Returns
    -------
    list of pathlib.Path
        The files written, in the order of ``files``.

    Raises
    ------
    InputError
        If the files cannot be written; those that were there before are there still.
    """
    refuse_other_kinds(folder, names)
    try:
        target = Path(os.path.realpath(folder))  # through links: a link should keep pointing at what it points to
        if target.is_dir() or not _appear(target, files):
            with _alone(target):
                _settle(target, names)
                _exchange(target, files, names)
    except OSError as error:
        raise InputError(
            f"Cannot write to '{folder}': {error.strerror or error}; no file was changed; choose another folder."
        ) from error
    return [Path(folder) / name for name in files]


def refuse_other_kinds(folder: str | os.PathLike, names: Collection[str]) -> None:
    """Refuse names that stand for something else than a file.

    Raises
    ------
    InputError
        If one is a folder, which may hold other files, a link, whose other end may be on another disk, or a device.
    """
    for name in names:
        path = Path(folder) / name
        try:
            mode = os.lstat(path).st_mode
        except OSError:  # not there, or not to be seen: writing will say so
            continue
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a link" if stat.S_ISLNK(mode) else "no ordinary file"
            raise InputError(f"Cannot write '{path}': it is {what}; remove it, or choose another folder.")


def settle(folder: str | os.PathLike, names: Collection[str]) -> bool:
    """Complete or undo an exchange of such files in whose midst a process was killed; returns whether there was one.

    Raises
    ------
    InputError
        If the files cannot be moved to their places.
    """
    target = Path(os.path.realpath(folder))
    try:
        begun = _stages(target, ".out", ".in")
    except OSError:  # no folder, or none whose names can be read
        return False
    if not begun:
        return False
    try:
        with _alone(target):
            _settle(target, names)
    except OSError as error:
        raise InputError(
            f"The files in '{folder}' were half exchanged by a process that was killed, and cannot be moved to their "
            f"places ({error.strerror or error}); run this command where it may write to that folder."
        ) from error
    return True


# A folder that is new


def _appear(target: Path, files: Mapping[str, bytes]) -> bool:
    """Make a folder with its files; False if another process has made one of this name meanwhile."""
    made: list[Path] = []
    begun = False
    stage = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        _make_parents(target.parent, made)
        _delete_abandoned(target)
        stage.mkdir()
        begun = True
        _fill(stage, files)
        os.rename(stage, target)
        _sync(target.parent)
    except BaseException as error:
        if begun and not stage.exists():  # it was renamed
            os.rename(target, stage)
        shutil.rmtree(stage, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST) and target.is_dir():
            return False
        for parent in reversed(made):
            with suppress(OSError):  # another process uses it
                parent.rmdir()
        raise
    return True


def _make_parents(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, and note the ones that were not there."""
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir()
            made.append(each)


def _delete_abandoned(target: Path) -> None:
    """Delete what killed processes left beside a folder that they were to make."""
    left = re.compile(rf"\.{re.escape(target.name[:64])}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):  # a folder whose names cannot be read keeps them
        for path in target.parent.iterdir():
            status = path.lstat()
            if left.fullmatch(path.name) and stat.S_ISDIR(status.st_mode) and time.time() - status.st_mtime > ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


# A folder that is there


def _exchange(target: Path, files: Mapping[str, bytes], names: Collection[str]) -> None:
    """Put new files instead of earlier ones; an exception leaves the earlier ones."""
    stage = target / f".policytree-{secrets.token_hex(8)}.tmp"
    earlier = [name for name in names if (target / name).exists()]
    try:
        for folder in (stage, stage / NEW, stage / OLD):
            folder.mkdir()
        _fill(stage / NEW, files)
        for name in set(earlier) & set(files):
            shutil.copymode(target / name, stage / NEW / name)
        stage = _turn(stage, ".out")
        _move(earlier, target, stage / OLD)
        _sync(target)
        stage = _turn(stage, ".in")
        _move(files, stage / NEW, target)
        _sync(target)
        stage = _turn(stage, ".tmp")
    except BaseException as error:
        try:
            _undo(target, stage.stem, files)
        except OSError as failed:
            raise InputError(
                f"Cannot write to '{target}': {error}; its files could not be moved back either ({failed}), but are "
                "kept: the next command that writes to this folder, or reads from it, puts them in their places."
            ) from error
        raise
    shutil.rmtree(stage, ignore_errors=True)


def _undo(target: Path, stem: str, files: Collection[str]) -> None:
    """Take the steps of an exchange back, as far as it got."""
    writing, leaving, coming = (target / f"{stem}{ending}" for ending in (".tmp", ".out", ".in"))
    if coming.exists():
        _move([name for name in files if not (coming / NEW / name).exists()], target, coming / NEW)
        _turn(coming, ".out")
    if leaving.exists():
        _move(os.listdir(leaving / OLD), leaving / OLD, target)
        _turn(leaving, ".tmp")
    shutil.rmtree(writing, ignore_errors=True)


def _settle(target: Path, names: Collection[str]) -> None:
    """Complete or undo what processes that were killed left in a folder that this one has locked."""
    for stage in _stages(target):
        if stage.suffix != ".tmp":
            moved = stage / (NEW if stage.suffix == ".in" else OLD)
            _move([name for name in names if (moved / name).exists()], moved, target)
            stage = _turn(stage, ".tmp")
        shutil.rmtree(stage, ignore_errors=True)


def _stages(target: Path, *endings: str) -> list[Path]:
    """The stages in a folder; with endings, those that have one of them."""
    found = (target / name for name in os.listdir(target) if STAGE.fullmatch(name))
    return [each for each in found if (not endings or each.suffix in endings) and stat.S_ISDIR(each.lstat().st_mode)]


def _turn(stage: Path, ending: str) -> Path:
    """Say by the stage's name how far the exchange is."""
    turned = stage.with_suffix(ending)
    os.rename(stage, turned)
    return turned


def _move(names: Collection[str], source: Path, target: Path) -> None:
    for name in names:
        os.replace(source / name, target / name)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from exchanging files in a folder; waits for one that does."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            lock = lock_folder(folder)
            break
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise InputError(
                    f"Another process writes to the folder '{folder}'; wait until it ends, or name another folder."
                ) from error
            time.sleep(0.02)
    try:
        yield
    finally:
        unlock_folder(folder, lock)


# Files and disks


def _fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, and wait until they are on the disk: a full one says so here at the latest."""
    for name, content in files.items():
        with open(folder / name, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    _sync(folder)


def _sync(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError as error:  # Windows
        if error.errno in NO_SYNC:
            return
        raise
    try:
        os.fsync(opened)
    except OSError as error:  # some network file systems
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(opened)
