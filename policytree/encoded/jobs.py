"""Jobs that write files into a folder of their own: what was written before a job was stopped is kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from policytree.encoded.sources import Source
from policytree.encoded.store import MANIFEST, STATE, read_json
from policytree.exceptions import InputError
from policytree.serialization.locks import LOCK, lock_folder, unlock_folder


class FolderJob:
    """One reading of a source into files of a folder.

    Attributes
    ----------
    files : str
        Pattern of the names of its files, the manifest and the state apart: nothing else is ever deleted.
    what, doing : str
        What the folder is for, and what the job is called, in messages.
    """

    pool: Any
    stage: Callable[..., Any] | None = None
    files = ""
    what = doing = ""

    def __init__(self, source: Source, columns: list[str], file_rows: int, directory: Path, asked: dict):
        self.source, self.columns, self.file_rows, self.directory = source, columns, file_rows, directory
        self.asked = {**asked, "source": source.fingerprint, "file_rows": file_rows}
        self.total: int | None = None  # rows of the source

    def finished(self, overwrite: bool) -> bool:
        """Whether this very job was done before; refuses a folder that holds anything else."""
        if self.directory.exists() and not self.directory.is_dir():
            raise InputError(f"'{self.directory}' is a file; name a folder for {self.what}.")
        held = self._held()
        own = rf"({self.files}|{re.escape(MANIFEST)}|{re.escape(STATE)})"
        foreign = [name for name in held if not re.fullmatch(rf"{own}|\.{own}\.[0-9a-f]{{16}}\.tmp", name)]
        state = self.directory / STATE  # another process may have just ended its job
        if foreign or (STATE in held and self._asked_in(STATE) is None and state.exists()):
            raise InputError(f"The folder '{self.directory}' holds other files; name a folder of its own.")
        if MANIFEST not in held or overwrite:
            return False
        if self.source.fingerprint is None or self._asked_in(MANIFEST) != self.asked:
            raise InputError(
                f"The folder '{self.directory}' holds {self.what} of another {self.doing}; name another folder, or "
                "pass overwrite=True."
            )
        return True

    @contextmanager
    def alone(self, overwrite: bool) -> Iterator[bool]:
        """Make the folder ready and keep other processes from writing to it; True if one has just done this job."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.directory)
        except BlockingIOError as error:
            raise InputError(
                f"Another process writes to the folder '{self.directory}'; wait until it ends, or name another folder."
            ) from error
        except OSError as error:
            raise InputError(f"Cannot make the folder '{self.directory}': {error.strerror}.") from error
        try:
            done = self.finished(overwrite)
            if not done:
                self._clear(overwrite)
            yield done
        finally:
            unlock_folder(self.directory, lock)

    def _clear(self, overwrite: bool) -> None:
        """Delete what an earlier job left that this one cannot go on from."""
        held = self._held()
        known = [n for n in (MANIFEST, STATE) if n in held]
        same = self.source.fingerprint is not None and any(self._asked_in(n) == self.asked for n in known)
        for name in sorted(held, key=lambda n: n not in known):  # first what vouches for the others
            if not same or overwrite or name.startswith("."):
                (self.directory / name).unlink()

    def _held(self) -> list[str]:
        try:
            there = self.directory.iterdir() if self.directory.exists() else ()
            return sorted(f.name for f in there if f.name != LOCK)
        except OSError as error:
            raise InputError(f"Cannot read the folder '{self.directory}': {error.strerror}.") from error

    def _asked_in(self, name: str) -> Any:
        try:
            found = read_json(self.directory / name)
        except InputError:  # a file that cannot be read is the file of no job
            return None
        return found.get("asked") if isinstance(found, dict) else None

    def each(self, f: Callable, items) -> list:
        """Map in threads."""
        return list(self.pool.map(f, items))

    def tables(self, title: str, start: int = 0, columns: list[str] | None = None) -> Iterator[tuple[int, Any]]:
        """All rows from ``start`` on, with the number of the first row of every table; shows progress."""
        with ExitStack() as stack:
            size = "" if self.source.bytes is None else f" of {_size_text(self.source.bytes)}"
            advance = stack.enter_context(self.stage(f"{title}{size}, rows", self.total)) if self.stage else None
            row = start
            for table in self.source.tables(columns or self.columns, self.file_rows, start):
                yield row, table
                row += table.num_rows
                if advance is not None:
                    advance(row, max(row, self.total or 0))


def _size_text(n: int) -> str:
    """Bytes as people say them: 2.1 GB."""
    power = min((len(str(n)) - 1) // 3, 4)
    return f"{n / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
