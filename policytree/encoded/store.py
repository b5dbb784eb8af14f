"""Encoded rows on the disk: files of codes and numbers, mapped into memory, and a manifest that is written last.

A file holds the rows that stood at one place of the source:

    codes     (features, rows), uint8 or uint16; of labels one row more, the class of every row; filled up to a multiple
              of 64 bytes
    numbers   (planes, rows), float64: rewards of every action times the weight, if there are rewards; then the weights
              if there are any

Numbers stand there as they are, and are scaled to whole numbers when they are read: with the scale of a fit in memory,
so that both search the same problem, and values of trees are exact sums of the same numbers.

The manifest says what codes mean and has a checksum of every file. A folder without one is a job that has not ended.
"""

from __future__ import annotations

import mmap
import os
import zlib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from policytree.data.features import Feature
from policytree.exceptions import InputError, quoted
from policytree.problem.split_columns import code_type
from policytree.problem.types import BinnedData, SplitColumn
from policytree.serialization.checksums import CHECKSUM, has_checksum, text_with_checksum
from policytree.serialization.files import save_text
from policytree.serialization.parsing import parse_json
from policytree.serialization.schema import Check
from policytree.solvers.core.coded_features import CodedFeature

VERSION = 3  # of files of rows and of JSON files; 1: losses as fixed-point numbers, no checksums; 2: no direction
MANIFEST, STATE = "manifest.json", "state.json"
ALIGNED = 64
PIECE = 1 << 24  # bytes of a file read at a time
LARGEST = float(np.finfo(np.float64).max)
CHUNK = 1 << 13  # rows added up at a time: what is made of them stays in the processor's cache
SLACK = 1e-6  # relative difference of sums of the same numbers in another order


def rows_file(k: int) -> str:
    """Name of the k-th file of rows."""
    return f"rows-{k:06d}.bin"


def pack(codes: np.ndarray, numbers: np.ndarray) -> bytes:
    """The content of a file of rows."""
    head = np.ascontiguousarray(codes).tobytes()
    return head + b"\0" * (-len(head) % ALIGNED) + np.ascontiguousarray(numbers, dtype=np.float64).tobytes()


def scaled_rewards(rewards: np.ndarray, exponent: int) -> np.ndarray:
    """Rewards (K, m) less those of the first action, times ``2**exponent``; (K - 1, m), not yet rounded."""
    relative = rewards[1:] - rewards[:1]
    return np.ldexp(relative, exponent, out=relative)


@dataclass(frozen=True, slots=True)
class Stored:
    """One file of rows: its name, how many rows it has, and its checksum."""

    file: str
    rows: int
    crc: int


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers as whole numbers: ``value * 2**exponent``, rounded; and the total of their sizes before that."""

    exponent: int
    total: float

    def to_float(self, value: int) -> float:
        """A scaled sum in the unit of the numbers."""
        return float(Fraction(value) / Fraction(2) ** self.exponent)


class CodedRows(NamedTuple):
    """Some rows, as they stand in a file.

    ``codes`` (features, m); ``classes`` (m,), codes of labels, None if there are rewards; ``numbers`` (planes, m).
    """

    codes: np.ndarray
    classes: np.ndarray | None
    numbers: np.ndarray


@dataclass(frozen=True, eq=False)
class EncodedData:
    """Rows as codes on the disk, made by :func:`policytree.encoded.encode`; what estimators fit in place of a table.

    Attributes
    ----------
    directory : Path
    n_rows : int
        Rows of positive weight.
    features : tuple of Feature
        The columns of X.
    coded : tuple of CodedFeature
        Those that have a cut, in the order of the codes on the disk.
    labels : ndarray of shape (K,)
        Names of the treatments, or the classes.
    of_labels : bool
        Whether losses are those of labels (y) and not of rewards.
    weighted : bool
    relative : Scale
        Of losses less those of the first action.
    total_weight : float
        Sum of the weights, or the number of rows.
    inexact : int
        Rows whose losses had to be rounded.
    thinned : tuple of int
        Features that keep quantiles only, so that proofs hold given the bins.
    direction : {"maximize", "minimize"} or None
        Which way rewards are better, where the study says it.
    stored : tuple of Stored

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from policytree import Study
    >>> from policytree.encoded import encode
    >>> from policytree.study import Rewards
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> study = Study(rows, outcome=Rewards(["none", "drug"]), covariates=["age"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = encode(study, directory=folder)
    ...
    >>> data.n_rows, data.labels.tolist()
    (4, ['none', 'drug'])
    """

    directory: Path
    n_rows: int
    features: tuple[Feature, ...]
    coded: tuple[CodedFeature, ...]
    dtype: np.dtype
    labels: np.ndarray
    of_labels: bool
    weighted: bool
    relative: Scale
    total_weight: float
    inexact: int
    thinned: tuple[int, ...]
    direction: str | None
    stored: tuple[Stored, ...]
    sizes: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # sums of files whose checksum was tested

    def __repr__(self) -> str:
        what = "classes" if self.of_labels else "treatments"
        return (
            f"EncodedData({str(self.directory)!r}: {self.n_rows:,} rows, {len(self.features)} features, "
            f"{len(self.labels)} {what}{', features in bins' if self.thinned else ''})"
        )

    def __len__(self) -> int:
        return self.n_rows

    @property
    def nbytes(self) -> int:
        """Bytes of all files of rows."""
        return sum((self.directory / s.file).stat().st_size for s in self.stored)

    @property
    def n_planes(self) -> int:
        """Planes of numbers on the disk."""
        return len(self.labels) * (not self.of_labels) + self.weighted

    @property
    def resolution(self) -> float:
        """The largest difference, in summed losses, that rounding can make between two trees."""
        return float(np.ldexp(float(self.inexact), -self.relative.exponent))

    @cached_property
    def columns(self) -> tuple[SplitColumn, ...]:
        """All ways to split, in the order in which a table in memory has them."""
        return tuple(column for each in self.coded for column in each.columns)

    @cached_property
    def most_codes(self) -> np.ndarray:
        """How many codes each row of codes may have: features, then classes if there are labels."""
        return np.array([c.n_codes for c in self.coded] + [len(self.labels)] * self.of_labels, dtype=np.int64)

    def rows(self, k: int) -> CodedRows:
        """The rows of the k-th file, mapped; its checksum is tested once, its codes whenever it is read.

        Raises
        ------
        InputError
            If the file is gone, has another length, or another content than was written.
        """
        stored = self.stored[k]
        n, p = stored.rows, len(self.coded) + self.of_labels
        head = n * p * self.dtype.itemsize
        start = head + -head % ALIGNED
        path = self.directory / stored.file
        again = "encode the source again into this folder, which mends it"
        try:
            if os.path.realpath(path) != os.path.join(os.path.realpath(self.directory), stored.file):
                raise InputError(f"'{path}' is a link to another place, and was not written by encode; {again}.")
            if path.stat().st_size != start + 8 * n * self.n_planes:
                raise InputError(f"'{path}' has another length than was written; {again}.")
            with open(path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # kernels take writable arrays only
        except OSError as error:
            raise InputError(f"'{path}' cannot be read: {error.strerror}; {again}.") from error
        codes = np.frombuffer(mapped, self.dtype, n * p).reshape(p, n)
        numbers = np.frombuffer(mapped, np.float64, n * self.n_planes, start).reshape(self.n_planes, n)
        if stored.file not in self.sizes and zlib.crc32(mapped) != stored.crc:
            raise InputError(f"'{path}' is damaged: its checksum is wrong; {again}.")
        self.refuse_foreign_codes(codes, f"'{path}'", again)
        rows = self.as_rows(codes, numbers)
        if stored.file not in self.sizes:
            self._add_sizes(stored.file, rows, f"'{path}'", again)
        return rows

    def refuse_foreign_codes(self, codes: np.ndarray, what: str, remedy: str) -> None:
        """Refuse codes beyond the bins of their features: kernels write at the places that codes name, unchecked.

        It reads a byte a code, which is next to nothing beside the sums over all pairs of features.
        """
        if codes.shape[1] == 0:
            return
        beyond = np.flatnonzero(codes.max(axis=1) >= self.most_codes)
        if len(beyond):
            j = int(beyond[0])
            of = "classes" if j == len(self.coded) else f"column {quoted(self.features[self.coded[j].feature].name)}"
            raise InputError(f"{what} is damaged: it holds codes of {of} that no value has; {remedy}.")

    def _add_sizes(self, file: str, rows: CodedRows, what: str, remedy: str) -> None:
        """Refuse numbers that add up to more than the manifest says: whole numbers of 64 bits might not hold them."""
        most = np.array([self.relative.total, LARGEST, self.total_weight])
        with np.errstate(over="ignore", invalid="ignore"):  # whatever is no number fits nowhere
            starts = range(0, rows.codes.shape[1], CHUNK)
            self.sizes[file] = sum((self._sizes(rows.numbers[:, k : k + CHUNK]) for k in starts), np.zeros(3))
            fits = (sum(list(self.sizes.values())) <= np.minimum(most * (1.0 + SLACK), LARGEST)).all()
        if not fits or (self.weighted and rows.numbers[-1].min() <= 0):
            del self.sizes[file]
            raise InputError(f"{what} is damaged: its numbers are not those that the manifest adds up; {remedy}.")

    def _sizes(self, numbers: np.ndarray) -> np.ndarray:
        """Sums over rows (planes, m): largest loss beside the first action's, size of that, weight."""
        weight = float(numbers[-1].sum()) if self.weighted else float(numbers.shape[1])
        if self.of_labels:
            return np.array([weight, 0.0, weight])
        first, largest = numbers[0], np.zeros(0)
        for each in numbers[1 : len(self.labels)]:
            relative = each - first
            np.abs(relative, out=relative)
            largest = np.maximum(largest, relative) if len(largest) else relative
        return np.array([largest.sum(), abs(first.sum()), weight])

    def is_intact(self, k: int) -> bool:
        """Whether the k-th file holds what was written."""
        try:
            self.rows(k)
        except InputError:
            return False
        return True

    def as_rows(self, codes: np.ndarray, numbers: np.ndarray) -> CodedRows:
        """Rows from arrays as ``pack`` takes them."""
        if not self.of_labels:
            return CodedRows(codes, None, numbers)
        return CodedRows(codes[:-1], codes[-1], numbers)

    def weights(self, rows: CodedRows) -> np.ndarray:
        """Weights of rows, (m,); one each if there are none."""
        return rows.numbers[-1] if self.weighted else np.ones(rows.codes.shape[1])

    def losses(self, rows: CodedRows) -> np.ndarray:
        """Scaled losses of rows, or rewards, less those of the first action; (K - 1, m), int64."""
        K, exponent = len(self.labels), self.relative.exponent
        if rows.classes is None:
            scaled = scaled_rewards(rows.numbers[:K], exponent)
            return np.rint(scaled, out=scaled).astype(np.int64)
        weight = np.rint(np.ldexp(self.weights(rows), exponent)).astype(np.int64)
        out = np.empty((K - 1, len(weight)), np.int64)
        first = (rows.classes == 0).astype(np.int8)
        for k in range(1, K):
            np.multiply(weight, first - (rows.classes == k), out=out[k - 1])
        return out

    def in_memory(self) -> BinnedData:
        """All rows as columns of codes, as :func:`policytree.solvers.core.binning.bin_matrix` makes them."""
        parts = [self.rows(k).codes for k in range(len(self.stored))]  # mapped, and as long as the manifest says
        bins = [len(column.thresholds) + 1 for column in self.columns]
        codes = np.empty((len(bins), self.n_rows), dtype=code_type(max(bins, default=1)))
        first = 0
        for part, stored in zip(parts, self.stored, strict=True):
            to = iter(codes[:, first : first + stored.rows])
            for each, row in zip(self.coded, part, strict=True):
                for of_column in each.codes_of_columns:
                    next(to)[:] = of_column[row]
            first += stored.rows
        return BinnedData(codes, np.array(bins, dtype=np.int64), self.columns, self.features, not self.thinned)


def crc_of(path: Path) -> int | None:
    """The checksum of a file's content, read piece by piece; None if it cannot be read."""
    crc = 0
    try:
        with open(path, "rb") as file:
            while piece := file.read(PIECE):
                crc = zlib.crc32(piece, crc)
    except OSError:
        return None
    return crc


def save_json(path: Path, data: dict[str, Any]) -> None:
    """Write an object to a JSON file of a folder, with the version of the format and a checksum."""
    save_text(path, text_with_checksum({"version": VERSION, **data}))


def json_object(path: Path) -> dict[str, Any] | None:
    """The object that a JSON file holds, whatever its checksum; None if it holds none."""
    try:
        data = parse_json(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def read_json(path: Path, again: str, check: Check = lambda data, _: data) -> Any:
    """Read a file of :func:`save_json`, checked, or raise one sentence; ``again``: what makes the file anew."""
    data = json_object(path)
    if data is not None and has_checksum(data) and _is_this_version(data):
        try:
            return check({key: value for key, value in data.items() if key not in (CHECKSUM, "version")}, "the file")
        except InputError as error:  # the checksum is that of what somebody else wrote
            why = str(error)
            raise InputError(f"'{path}' is damaged: {why[0].lower()}{why[1:].rstrip('.')}; {again}.") from error
    # Before there were checksums, only the manifest of codes told its version.
    if data is not None and (not _is_this_version(data) if has_checksum(data) else _is_first_version(data)):
        raise InputError(f"'{path}' was written by another version of policytree; {again}.")
    raise InputError(f"'{path}' is damaged: it is not what was written; {again}.")


def _is_this_version(data: dict[str, Any]) -> bool:
    """Whether an object says that it has the version of files that this policytree writes."""
    return type(data.get("version")) is int and data["version"] == VERSION


def _is_first_version(data: dict[str, Any]) -> bool:
    """Whether an object looks as before there were checksums."""
    return CHECKSUM not in data and data.get("version", 1) == 1
