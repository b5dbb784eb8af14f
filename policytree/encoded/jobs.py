"""Jobs that write files into a folder of their own: what was written before a job was stopped is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from policytree.encoded.sources import Source
from policytree.encoded.store import MANIFEST, STATE, read_json
from policytree.exceptions import InputError


class FolderJob:
    """One reading of a source into files of a folder.

    Attributes
    ----------
    prefixes : tuple of str
        What names of its files begin with, the manifest and the state apart.
    what, doing : str
        What the folder is for, and what the job is called, in messages.
    """

    pool: Any
    stage: Callable[..., Any] | None = None
    prefixes: tuple[str, ...] = ()
    what = doing = ""

    def __init__(self, source: Source, columns: list[str], file_rows: int, directory: Path, asked: dict):
        self.source, self.columns, self.file_rows, self.directory = source, columns, file_rows, directory
        self.asked = {**asked, "source": source.fingerprint, "file_rows": file_rows}
        self.total: int | None = None  # rows of the source

    def finished(self, overwrite: bool) -> bool:
        """Whether this very job was done before; otherwise make the folder ready for it."""
        if self.directory.exists() and not self.directory.is_dir():
            raise InputError(f"'{self.directory}' is a file; name a folder for {self.what}.")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot make the folder '{self.directory}': {error.strerror}.") from error
        held = sorted(f.name for f in self.directory.iterdir())
        begins = (MANIFEST, STATE, *self.prefixes)
        if not all(name.removeprefix(".").startswith(begins) for name in held):
            raise InputError(f"The folder '{self.directory}' holds other files; name a folder of its own.")
        known = [n for n in (MANIFEST, STATE) if n in held]
        same = self.source.fingerprint is not None and any(self._asked_in(n) == self.asked for n in known)
        if MANIFEST in held and same and not overwrite:
            return True
        if MANIFEST in held and not overwrite:
            raise InputError(
                f"The folder '{self.directory}' holds {self.what} of another {self.doing}; name another folder, or "
                "pass overwrite=True."
            )
        for name in held:
            if not same or overwrite or name.startswith("."):
                (self.directory / name).unlink()
        return False

    def _asked_in(self, name: str) -> Any:
        try:
            return read_json(self.directory / name).get("asked")
        except InputError:  # a file that cannot be read is the file of no job
            return None

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
