"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from policytree.exceptions import InputError


def save_bytes(path: str | os.PathLike, data: bytes) -> Path:
    """Write a file so that, whatever happens, ``path`` holds either what it held before or all of ``data``.

    The bytes go to a temporary file beside ``path`` that then takes its place (atomic on one file system).

    Returns
    -------
    pathlib.Path
        The path written.

    Raises
    ------
    InputError
        If the folder does not exist or the file cannot be written.
    """
    with whole_file(path) as file:
        file.write(data)
    return Path(path)


@contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A file to write to, piece by piece, that appears when all is written; as :func:`save_bytes` says."""
    try:
        target = Path(os.path.realpath(path))  # through links: a link should keep pointing at what it points to
        if target.is_dir() or not target.parent.is_dir():
            problem = "it is a folder" if target.is_dir() else f"the folder '{target.parent}' does not exist"
            raise InputError(f"Cannot write '{path}': {problem}; name a file in an existing folder.")
        if target.exists() and not target.is_file():  # a device or pipe cannot be replaced
            with open(target, "wb") as file:
                yield file
            return
        yield from _replacing(target)
    except BrokenPipeError:
        raise  # who reads a pipe may leave
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}; choose another place.") from error


def save_text(path: str | os.PathLike, text: str) -> Path:
    """Write UTF-8 text as :func:`save_bytes` does."""
    return save_bytes(path, text.encode("utf-8"))


def _replacing(target: Path) -> Iterator[BinaryIO]:
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:  # an interrupt must not leave the temporary file either
        temporary.unlink(missing_ok=True)
        raise
