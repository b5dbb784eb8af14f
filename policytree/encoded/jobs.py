"""Jobs that write files into a folder of their own: what was written before a job was stopped is kept.

A source is written in files of so many rows each, and every file has a *note* of what is to be known of it, with its
checksum. A job that was stopped, and one whose files were damaged since, write the files that lack, and no others.

Nothing that is read back from such a folder can run code: it is JSON, numbers and Parquet. Who may write to the folder
can change results, though; checksums tell damage from what was written, not what was written from what was planted.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from policytree.common.progress import stage_progress
from policytree.data.sources import Source
from policytree.encoded.store import MANIFEST, STATE, json_object, read_json, save_json
from policytree.exceptions import InputError
from policytree.serialization.locks import LOCK, lock_folder, unlock_folder
from policytree.serialization.schema import Check

NOTE = "note"


class FolderJob(ABC):
    """One reading of a source into files of a folder.

    Attributes
    ----------
    files : str
        Pattern of the names of its files, the manifest and the state apart: nothing else is ever deleted.
    what, doing, again : str
        Purpose of the folder, name of the job, and the call to repeat, in messages.
    note : str
        Names of notes, with the file's number as ``k``.
    fields : dict of str to Check
        Contents of the manifest, of the state, and of every note (``NOTE``).
    """

    pool: Any
    stage: Callable[..., Any] | None = None
    files = ""
    what = doing = again = note = ""
    fields: ClassVar[dict[str, Check]]

    def __init__(self, source: Source, columns: list[str], file_rows: int, directory: Path, asked: dict):
        self.source, self.columns, self.file_rows, self.directory = source, columns, file_rows, directory
        self.asked = {**asked, "source": source.fingerprint, "file_rows": file_rows}
        self.total: int | None = None  # rows of the source

    @abstractmethod
    def whole(self) -> Any:
        """The result that this very job has written before; None if files of it were damaged since."""

    @abstractmethod
    def run(self) -> Any:
        """Write what lacks, from where an earlier run ended; the result."""

    @abstractmethod
    def is_intact(self, note: dict) -> bool:
        """Whether the files of a note hold what was written."""

    def carry_out(self, overwrite: bool, n_jobs: int, verbose: int) -> Any:
        """The result, of an earlier run if that has written all of it."""
        if self.finished(overwrite) and (result := self.whole()) is not None:
            return result
        with ExitStack() as stack:
            if stack.enter_context(self.alone(overwrite)) and (result := self.whole()) is not None:
                return result
            self.pool = stack.enter_context(ThreadPoolExecutor(n_jobs, thread_name_prefix="policytree-encode"))
            if verbose:
                self.stage = stack.enter_context(stage_progress()).stage
            return self.run()

    def finished(self, overwrite: bool) -> bool:
        """Whether this very job was done before; refuses a folder that holds anything else, or what cannot be read."""
        if self.directory.exists() and not self.directory.is_dir():
            raise InputError(f"'{self.directory}' is a file; name a folder for {self.what}.")
        held = self._held()
        own = rf"({self.files}|{re.escape(MANIFEST)}|{re.escape(STATE)})"
        foreign = [name for name in held if not re.fullmatch(rf"{own}|\.{own}\.[0-9a-f]{{16}}\.tmp", name)]
        foreign += [name for name in (MANIFEST, STATE) if name in held and self._is_foreign(name, held)]
        if foreign:
            raise InputError(
                f"The folder '{self.directory}' holds other files, such as '{foreign[0]}'; name a folder of its own, "
                "or delete what is no longer needed."
            )
        if overwrite:
            return False
        if MANIFEST not in held:
            if STATE in held:
                self._refuse_damaged_state()
            return False
        if self.source.fingerprint is None or self.read(MANIFEST).get("asked") != self.asked:
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

    def _is_foreign(self, name: str, held: list[str]) -> bool:
        """Whether a file of our name is somebody else's: it does not look like ours, and stands beside none of ours."""
        if any(re.fullmatch(self.files, other) for other in held):
            return False
        found = json_object(self.directory / name)
        return (found is None or "asked" not in found) and (self.directory / name).exists()

    def _refuse_damaged_state(self) -> None:
        try:
            self.read(STATE)
        except InputError:
            if (self.directory / STATE).exists():  # else another process has just ended its job
                raise

    def read(self, name: str) -> dict[str, Any]:
        """Read a JSON file of the folder, or raise one sentence."""
        return read_json(
            self.directory / name, f"{self.again}, with overwrite=True", self.fields.get(name, self.fields[NOTE])
        )

    def _asked_in(self, name: str) -> Any:
        try:
            return self.read(name).get("asked")
        except InputError:  # a file that cannot be read is the file of no job
            return None

    # --- files of rows ---

    def begin(self, start: Callable[[], dict]) -> dict:
        """Return the decisions made when the job began, ``start()`` if that is now."""
        if (self.directory / STATE).exists():
            return self.read(STATE)
        begun = {"asked": self.asked, **start()}
        save_json(self.directory / STATE, begun)
        return self.read(STATE)

    def end(self, manifest: dict[str, Any], n_files: int) -> None:
        """Write the manifest, which takes the place of the state and of all notes."""
        save_json(self.directory / MANIFEST, {"asked": self.asked, **manifest})
        for name in [STATE, *(self.note.format(k=k) for k in range(n_files))]:
            (self.directory / name).unlink(missing_ok=True)

    def save_note(self, k: int, note: dict) -> None:
        """Write the note of the k-th file, once the file itself is written."""
        save_json(self.directory / self.note.format(k=k), note)

    def known_notes(self) -> dict[int, dict]:
        """Notes of files that an earlier run has written, by the file's number, as far as both are whole."""
        notes: dict[int, dict] = {}
        while (self.directory / self.note.format(k=len(notes))).exists():
            try:
                note = self.read(self.note.format(k=len(notes)))
            except InputError:  # it is written again
                break
            if not self.is_intact(note):
                break
            notes[len(notes)] = note
        return notes

    def missing_tables(
        self, title: str, known: Container[int], n_files: int | None = None
    ) -> Iterator[tuple[int, int, Any]]:
        """Number, first row and table of every file that is not known; ``n_files``: how many there are, if that is."""
        k = next(k for k in itertools.count() if k not in known)
        if n_files is not None and k >= n_files:
            return
        for first_row, table in self.tables(title, k * self.file_rows):
            k = first_row // self.file_rows
            if k not in known:
                yield k, first_row, table
            if n_files is not None and all(later in known for later in range(k + 1, n_files)):
                return

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
