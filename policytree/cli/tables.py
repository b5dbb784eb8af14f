"""Tables from files; columns are found by name, and errors of reading are one sentence."""

from __future__ import annotations

import codecs
import csv
import errno
import io
import re
import stat
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from policytree.cli.first_checks import no_such_file
from policytree.cli.formats import read_other, reads
from policytree.cli.reading import Reading, without_blanks
from policytree.common.close_names import no_such_column
from policytree.common.memory import free_bytes
from policytree.data.feature_encoder import LARGEST_INTEGER, first_repeated
from policytree.exceptions import InputError
from policytree.study.columns import holds_tables

PARQUET_ENDINGS = (".parquet", ".pq")
OTHER_SEPARATORS = (";", "\t", "|")
CELLS_LOOKED_AT = 10_000  # for decimal commas
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[-+]?\d+,\d+"), re.compile(r"[-+]?\d+\.\d+")
GROUPED_POINTS, GROUPED_BOTH = re.compile(r"[-+]?\d{1,3}(\.\d{3})+"), re.compile(r"[-+]?\d{1,3}(\.\d{3})+,\d+")
BYTE_ORDER_MARKS = {  # the longer ones first, which begin like others
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
PREVIEWED = 1 << 22  # bytes in which the first letter that is not UTF-8 is looked for
ROW_NUMBERS = ("", "Unnamed: 0")  # names that pandas and R give a column that numbers the rows
BUFFER = 1 << 20
OTHER_SIGNS = ("^", "~", ":", "#", "&", "!", "$", "%", "*", "\x01", "\x1f")  # separators that no file is read with
FEWEST_PRINTED = 3  # words in header and row, from which on they are columns
NOT_CSV = (  # first bytes of files that are called .csv and are something else
    (b"PK\x03\x04", "a spreadsheet (let its name end in .xlsx) or a zip archive: do that, or"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a spreadsheet: let its name end in .xls, or"),
    (b"PAR1", "a Parquet file: let its name end in .parquet, or"),
    (b"\x1f\x8b", "compressed by gzip: let its name end in .gz, or"),
    (b"\xfd7zXZ\x00", "compressed by xz: let its name end in .xz, or"),
    (b"(\xb5/\xfd", "compressed by zstd: let its name end in .zst, or"),
    (b"ARROW1", "a Feather file: let its name end in .feather, or"),
    (b"<stata_dta>", "a Stata file: let its name end in .dta, or"),
    (b"$FL2", "an SPSS file: let its name end in .sav, or"),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3", "a database"),
    (b"\x89HDF", "an HDF file"),
    (b'{"', "JSON: let its name end in .json, or"),
    (b'[{"', "JSON: let its name end in .json, or"),
    (b"<!doctype html", "a web page"),
    (b"<html", "a web page"),
    (b"<table", "a web page"),
    (b"<?xml", "XML"),
)
REMEDIES = {  # by pandas's words on a file
    "Expected 1 fields": "delete the lines above the header, or those below the table",
    "fields in line": "mend that line, or delete it",
    "EOF inside string": "a quotation mark is opened there and not closed: close it, or delete it",
    "Multiple files": "leave one table in the archive, or unpack it and name the table",
    "Zero files": "put a table into the archive, or name another file",
}
SEPARATOR_LINE = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=[^\r\n"]"?\r?\n', re.IGNORECASE)  # Excel writes and reads it
# pandas reads "None" as missing, but it is what many a trial calls the arm that got nothing.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"]


class Table(NamedTuple):
    """A table that was read, and what was decided without being asked."""

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()


AS_IT_IS = Reading()


def read_table(path: str | Path, reading: Reading = AS_IT_IS) -> Table:
    """A file as a DataFrame with text column names: CSV, Parquet, or another program's (:mod:`policytree.cli.formats`).

    Separators other than commas (semicolon, tab, bar) are recognised by header and first row, decimal commas between
    semicolons by the cells. "None" is a value in columns of text, and missing in columns of numbers. Empty rows, empty
    columns without a name and a first one that only numbers the rows are left out.

    Raises
    ------
    InputError
        If there is no such file, or it is empty or no table.
    """
    path = _existing(path)
    notes: list[str] = []
    if path.name.lower().endswith(PARQUET_ENDINGS):
        _refuse_text_options(path, reading)
        frame, typed = _read_parquet(path), True
    elif reads(path):
        frame, notes, typed = read_other(path, reading)
        frame = frame.set_axis([str(name).strip() for name in frame.columns], axis=1)
        _refuse_bad_names(list(frame.columns), path)
        frame = _with_rows(frame.reset_index(drop=True), path)
    else:
        frame, typed = _read_csv(path, reading, na_values=MISSING), False
    if not typed:
        frame, more = _tidy(frame, path)
        notes += more
    return Table(reading.clean(frame, typed), tuple(notes))


def _refuse_text_options(path: Path, reading: Reading) -> None:
    for option, value in (("--encoding", reading.encoding), ("--sheet", reading.sheet)):
        if value is not None:
            raise InputError(f"{option} says nothing about a Parquet file such as '{path}'; leave it out.")


def _tidy(frame: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, list[str]]:
    """A table without what spreadsheets leave around it, and what was left out."""
    notes, names = [], list(frame.columns)
    empty = frame.isna()
    rows = empty.all(axis=1).to_numpy()
    if rows.any() and len(names) > 1:  # in a file of one column they are its missing values
        frame = _with_rows(frame[~rows].reset_index(drop=True), path).apply(_whole_again)
        notes.append(f"'{path.name}' has {int(rows.sum()):,} rows in which nothing stands; they were left out.")
    unnamed = [k for k, name in enumerate(names) if not name]
    blank = [k for k in unnamed if frame.iloc[:, k].isna().all()]
    left_out, given = set(blank), dict[int, str]()
    if len(names) > 1 and names[0] in ROW_NUMBERS and 0 not in left_out and _counts(frame.iloc[:, 0]):
        left_out.add(0)
        notes.append(f"The first column of '{path.name}' has no name and numbers the rows; it was left out.")
    for k in unnamed:
        if k not in left_out:
            given[k] = f"column {k + 1}"
    if len(given) > 1 and all(isinstance(frame.iat[0, k], str) for k in given):
        cells = " and ".join(repr(frame.iat[0, k]) for k in list(given)[:2])
        raise InputError(
            f"'{path}' seems to have names in two lines: the first leaves columns without a name, and the second says "
            f"{cells}; delete the first, so that one line names every column."
        )
    if given:
        said = ", ".join(map(repr, given.values()))
        notes.append(f"'{path.name}' has columns without a name, which are called {said} by their place.")
        frame = frame.set_axis([given.get(k, name) for k, name in enumerate(names)], axis=1)
        _refuse_bad_names(list(frame.columns), path)
    if left_out:
        frame = frame.iloc[:, [k for k in range(len(names)) if k not in left_out]]
    return frame, notes


def _whole_again(column: pd.Series) -> pd.Series:
    """Integers that only empty rows made floating-point numbers."""
    if column.dtype != np.float64 or not np.isfinite(column).all() or (column % 1 != 0).any():
        return column
    return column.astype(np.int64) if (column.abs() < LARGEST_INTEGER).all() else column


def _counts(column: pd.Series) -> bool:
    """Whether whole numbers only number the rows: each is larger than the one before."""
    if not pd.api.types.is_integer_dtype(column) or column.isna().any():
        return False
    return bool((np.diff(column.to_numpy()) > 0).all())


def _existing(path: str | Path) -> Path:
    path = Path(path)
    try:
        kind = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(no_such_file(path)) from error
    except PermissionError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}); check the rights of its folder.") from error
    except (OSError, ValueError) as error:  # a name that no file can have
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise InputError(f"'{path}' is a link that leads to itself; name a file.") from error
        raise InputError(f"'{path}' cannot be the name of a file ({_first_line(error)}); check it.") from error
    if stat.S_ISDIR(kind):
        raise InputError(f"'{path}' is a folder; name a file in it.")
    if not stat.S_ISREG(kind):
        raise InputError(f"'{path}' is a pipe or a device, but is read more than once; save its rows to a file first.")
    return path


def _read_csv(path: Path, reading: Reading, **options) -> pd.DataFrame:
    if reading.sheet is not None:
        raise InputError(f"--sheet is about spreadsheets, and '{path}' is a text file; leave it out.")
    with _sentences(path, reading.encoding):
        names, how = _csv_options(path, reading)
        with _text_of(path, reading.encoding) as file:
            frame = pd.read_csv(file, low_memory=False, **how, **options)
        frame.columns = names
    return _with_rows(frame, path)


class _Text(io.RawIOBase):
    """Content of a CSV file, unpacked; refuses binary content, and to go on when little memory is left.

    A few kilobytes may unpack to more than any memory holds, and how much a table needs only reading it says.
    """

    def __init__(self, file: BinaryIO, path: Path, encoding: str | None = None):
        super().__init__()
        self._file, self._path = file, path
        self._free, self._read = free_bytes(), 0
        self._decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)()
        self._rest, self._ended = b"", False  # decoded text that did not fit; no more bytes to come

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with UTF-8; returns how many bytes there were."""
        while not self._rest and not self._ended:
            self._rest = self._decoded(len(buffer))
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def _decoded(self, size: int) -> bytes:
        data = self._file.read(size)
        self._ended = not data
        if not self._read:
            self._refuse_other_kinds(data)
            marked = next((name for mark, name in BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)
            if self._decoder is None and marked is not None:
                self._decoder = codecs.getincrementaldecoder(marked)()
        first = not self._read
        self._read += len(data)
        if self._decoder is not None:
            data = self._decoder.decode(data, final=self._ended).encode("utf-8")
        if first and (line := SEPARATOR_LINE.match(data)) is not None:
            data = data[line.end() :]
        if b"\0" in data:
            raise InputError(
                f"'{self._path}' holds bytes of zero, which no text has, so it is not a CSV file in UTF-8; if it is a "
                "text in UTF-16, say --encoding utf-16-le, else save its table as 'CSV UTF-8' or Parquet."
            )
        self._refuse_too_much()
        return data

    def _refuse_other_kinds(self, data: bytes) -> None:
        start = data[:100].lstrip().lower()
        for magic, kind in NOT_CSV:
            if data.startswith(magic) or start.startswith(magic):
                sign = "" if kind.endswith(" or") else ";"
                raise InputError(f"'{self._path}' is no CSV file but {kind}{sign} save its table as 'CSV UTF-8'.")

    def _refuse_too_much(self) -> None:
        """Cells take several times the memory of their text: half of it must be left when the text has been read."""
        now = free_bytes()
        if self._free is not None and now is not None and now < self._free / 2:
            raise InputError(
                _too_large(self._path, f"{self._read / 1e6:,.0f} MB of it, unpacked, took half of what is")
            )


def _too_large(path: Path, why: str) -> str:
    return (
        f"'{path}' does not fit into the memory that is free ({why} free); leave out rows or columns, or read it in "
        "Python with policytree.encoded.encode."
    )


@contextmanager
def _text_of(path: Path, encoding: str | None = None) -> Iterator[BinaryIO]:
    """A CSV file in UTF-8, unpacked if its name says that it is packed."""
    from pandas.io.common import get_handle

    with get_handle(str(path), "rb", compression="infer", is_text=False) as opened:
        yield io.BufferedReader(_Text(opened.handle, path, encoding), BUFFER)


@contextmanager
def _sentences(path: Path, encoding: str | None = None) -> Iterator[None]:
    """Turn errors of a CSV file into one sentence: unpacking and parsing strangers' files may raise anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows with more cells than there are names
            yield
    except InputError:
        raise
    except pd.errors.ParserWarning as error:
        raise InputError(
            f"'{path}' has more cells in its first row than names in its header; name every column, mend the row, or "
            "delete the lines above the header."
        ) from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"'{path}' is empty; give a CSV file with a header line and rows.") from error
    except UnicodeError as error:
        raise InputError(_not_decoded(path, encoding)) from error
    except MemoryError as error:
        raise InputError(_too_large(path, "reading it took all that is")) from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror or error}); check the file.") from error
    except ImportError as error:  # for what it is compressed with
        raise InputError(
            f"'{path}' cannot be read here ({_first_line(error)}); install that, or unpack the file."
        ) from error
    except Exception as error:
        line = _first_line(error)
        remedy = next((words for sign, words in REMEDIES.items() if sign in line), "check the file")
        raise InputError(f"'{path}' cannot be read as CSV ({line}); {remedy}.") from error


def _not_decoded(path: Path, encoding: str | None) -> str:
    """One sentence on a text in another encoding than was said, with how the first such line reads in a likely one."""
    if encoding is not None:
        return f"'{path}' is not in the encoding {encoding} (--encoding); leave that out for UTF-8, or try latin-1."
    try:
        with path.open("rb") as file:
            lines = file.read(PREVIEWED).split(b"\n")
    except OSError:
        lines = []
    for number, line in enumerate(lines, start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            likely = "cp1252" if any(0x80 <= byte <= 0x9F for byte in line) else "latin-1"
            word = line[: error.start].rpartition(b",")[2].rpartition(b";")[2] + line[error.start :]
            text = re.split(r"[,;\t]", word.decode(likely, errors="replace"))[0].strip()
            return (
                f"'{path}' is not in UTF-8: line {number} holds other letters; say --encoding {likely} if {text!r} is "
                "right there, or save it as 'CSV UTF-8'."
            )
    return f"'{path}' is not in UTF-8; say its --encoding, such as latin-1, or save it as 'CSV UTF-8' or Parquet."


def _csv_options(path: Path, reading: Reading) -> tuple[list[str], dict[str, Any]]:
    """The names of a CSV file's columns, and how pandas is to read it."""
    separator = _separator(path, reading.encoding)
    with _text_of(path, reading.encoding) as file:
        header = pd.read_csv(file, header=None, nrows=1, dtype=str, keep_default_na=False, sep=separator)
    names = [str(name).strip("\ufeff").strip() for name in header.iloc[0]]  # a mark of bytes that stands there twice
    _refuse_bad_names(names, path)
    _refuse_other_signs(names, path, reading.encoding)
    blank = len(names) > 1  # in a file of one column blank lines are its missing values
    how = {"sep": separator, "keep_default_na": False, "index_col": False, "skip_blank_lines": blank}
    decimal, thousands = reading.decimal, None
    if decimal is None and separator == ";":
        decimal, thousands = _signs(path, len(names), reading.encoding)
    if decimal == ",":
        how["decimal"] = ","
    if thousands is not None and reading.thousands is None:
        how["thousands"] = thousands
    return names, how


def _refuse_other_signs(names: list[str], path: Path, encoding: str | None) -> None:
    """Refuse a table with blanks or rare signs between its cells, or with cells in single quotation marks."""
    if all(len(name) > 1 and name[0] == name[-1] == "'" for name in names):
        raise InputError(f"'{path}' has its cells in single quotation marks; save it with double ones, or with none.")
    if len(names) > 1:
        return
    lines = _first_lines(path, 2, encoding)
    for sign in (None, *OTHER_SIGNS):
        cells = {len(line.split(sign)) for line in lines}
        if len(lines) > 1 and len(cells) == 1 and max(cells) >= FEWEST_PRINTED:
            what = "blanks" if sign is None else f"the sign {sign!r}"
            raise InputError(f"'{path}' has {what} between its cells; save it with commas or tabs between them.")


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a file.

    Attributes
    ----------
    cells : DataFrame
        Every cell's text as it stands (of a Parquet file: its values).
    typed : DataFrame
        The columns that were asked for as numbers, if they are.
    missing : tuple of str
        Texts that mean a missing value.
    reading : Reading
    """

    cells: pd.DataFrame
    typed: pd.DataFrame
    missing: tuple[str, ...] = ()
    reading: Reading = AS_IT_IS

    def words(self, name: str) -> pd.Series:
        """A column of texts, missing ones marked as such."""
        cells = self.cells[name]
        gone = {*self.missing, *self.reading.missing_in(name, self.cells.columns)}
        return without_blanks(cells.mask(cells.isin(gone)) if gone else cells)


def batches(path: str | Path, rows: int, numeric: list[str], reading: Reading = AS_IT_IS) -> Iterator[Batch]:
    """A file, so many rows at a time; other programs' files are read as a whole.

    Parameters
    ----------
    path : path
    rows : int
    numeric : list of str
        Columns that are wanted as numbers too, as far as the file has them.

    Raises
    ------
    InputError
        If there is no such file, or it is empty or no table; a later row raises when it is reached.
    """
    path = _existing(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        _refuse_text_options(path, reading)
        yield from _parquet_batches(path, rows, reading)
        return
    if reads(path):
        frame = read_table(path, reading).frame
        for start in range(0, len(frame), rows):
            part = frame.iloc[start : start + rows]
            yield Batch(part, part, reading=reading)
        return
    with _sentences(path, reading.encoding):
        names, how = _csv_options(path, reading)
    wanted = [k for k, name in enumerate(names) if name in set(numeric)]
    done = 0
    # One reader takes every cell as it stands, the other turns some columns into numbers.
    with ExitStack() as stack:
        with _sentences(path, reading.encoding):
            first, second = (stack.enter_context(_text_of(path, reading.encoding)) for _ in range(2))
            cells = stack.enter_context(pd.read_csv(first, dtype=str, na_values=[], chunksize=rows, **how))
            numbers = stack.enter_context(
                pd.read_csv(second, usecols=wanted or [0], na_values=[*MISSING, "None"], low_memory=False,
                            chunksize=rows, **how)
            )  # fmt: skip
        while True:
            with _sentences(path, reading.encoding):
                text, typed = next(cells, None), next(numbers, None)
            if text is None or typed is None:
                break
            text.columns = names
            typed.columns = [names[k] for k in wanted or [0]]
            done += len(text)
            yield Batch(text, reading.clean(typed).apply(_percents, reading=reading), tuple(MISSING), reading)
    if not done:
        raise InputError(f"'{path}' has a header but no rows; give it one row per observation.")


def _percents(column: pd.Series, reading: Reading) -> pd.Series:
    """A column that is wanted as numbers, read as such where it is one of percentages."""
    numbers = None if pd.api.types.is_numeric_dtype(column) else reading.percents(column)
    return column if numbers is None else numbers


def _parquet_batches(path: Path, rows: int, reading: Reading) -> Iterator[Batch]:
    done = 0
    with ExitStack() as stack:
        with _parquet_sentences(path):
            tables = stack.enter_context(_parquet_file(path)).iter_batches(batch_size=rows)
        while True:
            with _parquet_sentences(path):
                table = next(tables, None)
                if table is None:
                    break
                frame = _named(table.to_pandas(), path)
            done += len(frame)
            yield Batch(frame, reading.clean(frame, typed=True), reading=reading)
    if not done:
        raise InputError(f"'{path}' has a header but no rows; give it one row per observation.")


def _separator(path: Path, encoding: str | None) -> str:
    """Guess the separator: header and first row have the same number of cells, and the most of them."""
    lines = _first_lines(path, 2, encoding)
    others = [s for s in OTHER_SEPARATORS if s in lines[0]]
    if others and len(_split(lines[0], ",")) == 1:
        return others[0]
    return max((",", *others), key=lambda separator: _cells(lines, separator)) if others else ","  # the first of equals


def _cells(lines: list[str], separator: str) -> int:
    """How many cells header and first row have; 0 if not the same number, or a quote is torn from its partner."""
    rows = [_split(line, separator) for line in lines]
    whole = len(rows) == 2 and all(name.count('"') % 2 == 0 for name in rows[0])
    return len(rows[0]) if whole and len(rows[0]) == len(rows[1]) else 0


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line; none if one would be longer than a cell can be."""
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []


def _first_lines(path: Path, n: int, encoding: str | None = None) -> list[str]:
    """Lines as they stand, of packed files too."""
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "quoting": csv.QUOTE_NONE}
    with _text_of(path, encoding) as file:
        return pd.read_csv(file, header=None, nrows=n, sep="\x00", **options)[0].tolist()


def _signs(path: Path, columns: int, encoding: str | None) -> tuple[str | None, str | None]:
    """The decimal sign, and the one between thousands, in a file whose cells stand between semicolons.

    Commas are decimal where numbers are written as 27,5, and none as 27.5; points between thousands beside them are
    known by a number such as 1.234,5, if all others with a point can be such.
    """
    lines = _first_lines(path, max(2, CELLS_LOOKED_AT // columns), encoding)[1:]
    try:
        rows = list(csv.reader(lines, delimiter=";"))
    except csv.Error:  # a cell longer than Python takes: its line has no say
        rows = [_split(line, ";") for line in lines]
    cells = [cell.strip() for row in rows for cell in row]
    points = [cell for cell in cells if DECIMAL_POINT.fullmatch(cell)]
    if any(map(GROUPED_BOTH.fullmatch, cells)) and all(map(GROUPED_POINTS.fullmatch, points)):
        return ",", "."
    return ("," if any(map(DECIMAL_COMMA.fullmatch, cells)) and not points else None), None


def _read_parquet(path: Path) -> pd.DataFrame:
    with _parquet_sentences(path), _parquet_file(path) as file:
        rows, columns = file.metadata.num_rows, len(file.schema_arrow.names)
        free, needed = free_bytes(), 8.0 * rows * columns  # a number, or where a text stands
        if free is not None and needed > free:
            sizes = f"{rows:,} rows of {columns:,} columns need {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are"
            raise InputError(_too_large(path, sizes))
        frame = pd.read_parquet(path, engine="pyarrow")
    return _with_rows(_named(frame, path), path)


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """An open Parquet file whose columns have a name each."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        _refuse_bad_names(file.schema_arrow.names, path)
        yield file


@contextmanager
def _parquet_sentences(path: Path) -> Iterator[None]:
    """Turn errors of a Parquet file into one sentence: pyarrow's own errors are subclasses of many others."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        raise InputError(
            f"Reading '{path}' needs the package pyarrow; install it with `pip install pyarrow`."
        ) from error
    except MemoryError as error:
        raise InputError(_too_large(path, "reading it took all that is")) from error
    except Exception as error:
        raise InputError(f"'{path}' cannot be read as Parquet ({_first_line(error)}); check the file.") from error


def _named(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """With names of text, and a named index as the columns that it is in the file."""
    frame = frame.reset_index([name for name in frame.index.names if name is not None])
    frame.columns = [str(name) for name in frame.columns]
    _refuse_bad_names(list(frame.columns), path)
    return frame.reset_index(drop=True)


def _refuse_bad_names(names: list[str], path: Path) -> None:
    """Refuse names that stand twice; columns without a name may, until somebody asks for one."""
    twice = first_repeated(filter(None, names))
    if twice is not None:
        raise InputError(f"'{path}' has more than one column {twice!r}; give every column its own name.")


def _with_rows(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    if not len(frame):
        raise InputError(f"'{path}' has a header but no rows; give it one row per observation.")
    return frame


def _first_line(error: BaseException) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.removeprefix("Error tokenizing data. C error: ").rstrip(".")


def column_names(text: str | None, option: str, frame: pd.DataFrame) -> list[str]:
    """Names in a comma-separated option (those that hold commas in double quotes), checked against the table."""
    if text is None:
        return []
    try:
        names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:  # a line break in it
        raise InputError(f"{option} cannot be read ({error}); give names separated by commas.") from error
    names = list(dict.fromkeys(name for name in names if name))
    if not names:
        raise InputError(f"{option} names no column; give names separated by commas.")
    for name in names:
        divided = [c for c in frame.columns if "," in c and c.split(",")[0].strip() == name]
        if divided and name not in frame.columns:
            raise InputError(
                f"There is no column {name!r} ({option}); write a name that holds a comma in double quotes, and all of "
                f"it in single ones: {option} '\"{divided[0]}\",...'."
            )
        require_column(name, option, frame)
    return names


def require_column(name: str, option: str, frame: pd.DataFrame) -> None:
    """Refuse a column that is not there, with names that are close."""
    if name not in frame.columns:
        raise InputError(no_such_column(name, option, list(frame.columns)))
    if (frame.columns == name).sum() > 1:
        raise InputError(f"There is more than one column {name!r} ({option}); give every column its own name.")
    if holds_tables(frame[name]):
        raise InputError(f"Column {name!r} ({option}) holds lists or tables; make numbers or texts of them.")


def number_in(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def by_treatment(texts: list[str] | None, argument: str, frame: pd.DataFrame | None = None) -> dict[str, float | str]:
    """Parse LABEL=X options: a number, or with a frame the name of one of its columns."""
    option, found = f"--{argument.replace('_', '-')}", dict[str, float | str]()
    for text in texts or ():
        name, _, value = (piece.strip() for piece in text.rpartition("="))
        number: float | str | None = number_in(value)
        if number is None and frame is not None and value in frame.columns:
            number = value
        if not name or number is None or name in found:
            wrong = f"names {name!r} twice" if name in found else f"{text!r} cannot be read"
            columns = " or a column" if frame is not None else ""
            raise InputError(f"{option} {wrong}; give a treatment and a number{columns}, as in drug=0.3.")
        found[name] = number
    return found
