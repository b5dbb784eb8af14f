"""Tables from CSV and Parquet files; columns are found by name, and errors of reading are one sentence."""

from __future__ import annotations

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
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from policytree.cli.first_checks import no_such_column, no_such_file
from policytree.common.memory import free_bytes
from policytree.data.feature_encoder import first_repeated
from policytree.exceptions import InputError

PARQUET_ENDINGS = (".parquet", ".pq")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
OTHER_SEPARATORS = (";", "\t", "|")
CELLS_LOOKED_AT = 10_000  # for decimal commas
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[-+]?\d+,\d+"), re.compile(r"[-+]?\d+\.\d+")
BUFFER = 1 << 20
NOT_CSV = (  # what files begin with that are called .csv and are something else
    (b"PK\x03\x04", "a spreadsheet or a zip archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a spreadsheet"),
    (b"PAR1", "a Parquet file: let its name end in .parquet, or"),
    (b"\x1f\x8b", "compressed by gzip: let its name end in .gz, or"),
    (b"\xfd7zXZ\x00", "compressed by xz: let its name end in .xz, or"),
    (b"(\xb5/\xfd", "compressed by zstd: let its name end in .zst, or"),
    (b"ARROW1", "a Feather file"),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3", "a database"),
    (b"\x89HDF", "an HDF file"),
    (b'{"', "JSON"),
    (b'[{"', "JSON"),
    (b"<!doctype html", "a web page"),
    (b"<html", "a web page"),
    (b"<table", "a web page"),
    (b"<?xml", "XML"),
)
# pandas reads "None" as missing, but it is what many a trial calls the arm that got nothing.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"]


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV or Parquet file as a DataFrame with text column names.

    Separators other than commas (semicolon, tab, bar) are recognised by header and first row, decimal commas between
    semicolons by the cells. "None" is a value in columns of text, and missing in columns of numbers.

    Raises
    ------
    InputError
        If there is no such file, or it is empty or no table.
    """
    path = _existing(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return _read_parquet(path)
    frame = _read_csv(path, na_values=MISSING)
    unnamed = [k + 1 for k, name in enumerate(frame.columns) if not name]
    if len(unnamed) > 1:
        raise InputError(
            f"'{path}' has {len(unnamed)} columns without a name (column {' and column '.join(map(str, unnamed[:2]))}"
            f"{', ...' if len(unnamed) > 2 else ''}); give every column its own name, or delete those that are empty."
        )
    return frame.apply(_none_in_numbers)


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
        raise InputError(f"'{path}' is a folder; name a CSV or Parquet file in it.")
    if not stat.S_ISREG(kind):
        raise InputError(f"'{path}' is a pipe or a device, but is read more than once; save its rows to a file first.")
    if path.suffix.lower() in SPREADSHEETS:
        raise InputError(f"'{path}' is a spreadsheet; save its table as 'CSV UTF-8' and give that.")
    return path


def _read_csv(path: Path, **options) -> pd.DataFrame:
    with _sentences(path):
        names, how = _csv_options(path)
        with _text_of(path) as file:
            frame = pd.read_csv(file, low_memory=False, **how, **options)
        frame.columns = names
    return _with_rows(frame, path)


class _Text(io.RawIOBase):
    """What a CSV file holds, unpacked; refuses what is no text, and to go on when little memory is left.

    A few kilobytes may unpack to more than any memory holds, and how much a table needs only reading it says.
    """

    def __init__(self, file: BinaryIO, path: Path):
        super().__init__()
        self._file, self._path = file, path
        self._free, self._read = free_bytes(), 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; returns how many bytes there were."""
        data = self._file.read(len(buffer))
        if not self._read:
            self._refuse_other_kinds(data)
        if b"\0" in data:
            raise InputError(
                f"'{self._path}' holds bytes of zero, which no text has, so it is not a CSV file in UTF-8; save it as "
                "'CSV UTF-8' or Parquet."
            )
        self._read += len(data)
        self._refuse_too_much()
        buffer[: len(data)] = data
        return len(data)

    def _refuse_other_kinds(self, data: bytes) -> None:
        start = data[:100].lstrip().lower()
        for magic, kind in NOT_CSV:
            if data.startswith(magic) or start.startswith(magic):
                raise InputError(f"'{self._path}' is no CSV file but {kind}; save its table as 'CSV UTF-8'.")

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
        "Python with policytree.encode."
    )


@contextmanager
def _text_of(path: Path) -> Iterator[BinaryIO]:
    """A CSV file, unpacked if its name says that it is packed."""
    from pandas.io.common import get_handle

    with get_handle(str(path), "rb", compression="infer", is_text=False) as opened:
        yield io.BufferedReader(_Text(opened.handle, path), BUFFER)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """What is wrong with a CSV file, in one sentence: what unpacks and parses strangers' files may raise anything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows with more cells than there are names
            yield
    except InputError:
        raise
    except pd.errors.ParserWarning as error:
        raise InputError(
            f"'{path}' has more cells in its first row than names in its header; name every column, or mend the row."
        ) from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"'{path}' is empty; give a CSV file with a header line and rows.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not a CSV file in UTF-8; save it as 'CSV UTF-8' or Parquet.") from error
    except MemoryError as error:
        raise InputError(_too_large(path, "reading it took all that is")) from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror or error}); check the file.") from error
    except ImportError as error:  # for what it is compressed with
        raise InputError(
            f"'{path}' cannot be read here ({_first_line(error)}); install that, or unpack the file."
        ) from error
    except Exception as error:
        raise InputError(f"'{path}' cannot be read as CSV ({_first_line(error)}); check the file.") from error


def _csv_options(path: Path) -> tuple[list[str], dict[str, Any]]:
    """The names of a CSV file's columns, and how pandas is to read it."""
    separator = _separator(path)
    with _text_of(path) as file:
        header = pd.read_csv(file, header=None, nrows=1, dtype=str, keep_default_na=False, sep=separator)
    names = [str(name).strip() for name in header.iloc[0]]
    _refuse_bad_names(names, path)
    blank = len(names) > 1  # in a file of one column blank lines are its missing values
    how = {"sep": separator, "keep_default_na": False, "index_col": False, "skip_blank_lines": blank}
    return names, how | ({"decimal": ","} if separator == ";" and _has_decimal_commas(path, len(names)) else {})


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
    """

    cells: pd.DataFrame
    typed: pd.DataFrame
    missing: tuple[str, ...] = ()

    def words(self, name: str) -> pd.Series:
        """A column of texts, missing ones marked as such."""
        cells = self.cells[name]
        return cells.mask(cells.isin(self.missing)) if self.missing else cells


def batches(path: str | Path, rows: int, numeric: list[str]) -> Iterator[Batch]:
    """A CSV or Parquet file, so many rows at a time.

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
        yield from _parquet_batches(path, rows)
        return
    with _sentences(path):
        names, how = _csv_options(path)
    wanted = [k for k, name in enumerate(names) if name in set(numeric)]
    done = 0
    # One reader takes every cell as it stands, the other turns some columns into numbers.
    with ExitStack() as stack:
        with _sentences(path):
            first, second = (stack.enter_context(_text_of(path)) for _ in range(2))
            cells = stack.enter_context(pd.read_csv(first, dtype=str, na_values=[], chunksize=rows, **how))
            numbers = stack.enter_context(
                pd.read_csv(second, usecols=wanted or [0], na_values=[*MISSING, "None"], low_memory=False,
                            chunksize=rows, **how)
            )  # fmt: skip
        while True:
            with _sentences(path):
                text, typed = next(cells, None), next(numbers, None)
            if text is None or typed is None:
                break
            text.columns = names
            typed.columns = [names[k] for k in wanted or [0]]
            done += len(text)
            yield Batch(text, typed, tuple(MISSING))
    if not done:
        raise InputError(f"'{path}' has a header but no rows; give it one row per observation.")


def _parquet_batches(path: Path, rows: int) -> Iterator[Batch]:
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
            yield Batch(frame, frame)
    if not done:
        raise InputError(f"'{path}' has a header but no rows; give it one row per observation.")


def _separator(path: Path) -> str:
    """What stands between cells: what gives header and first row the same number of cells, and the most of them."""
    lines = _first_lines(path, 2)
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


def _first_lines(path: Path, n: int) -> list[str]:
    """Lines as they stand, of packed files too."""
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "quoting": csv.QUOTE_NONE}
    with _text_of(path) as file:
        return pd.read_csv(file, header=None, nrows=n, sep="\x00", **options)[0].tolist()


def _has_decimal_commas(path: Path, columns: int) -> bool:
    """Whether numbers are written as 27,5 in a file whose cells stand between semicolons."""
    lines = _first_lines(path, max(2, CELLS_LOOKED_AT // columns))[1:]
    try:
        rows = list(csv.reader(lines, delimiter=";"))
    except csv.Error:  # a cell longer than Python takes: its line has no say
        rows = [_split(line, ";") for line in lines]
    cells = [cell.strip() for row in rows for cell in row]
    return any(map(DECIMAL_COMMA.fullmatch, cells)) and not any(map(DECIMAL_POINT.fullmatch, cells))


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
    """What is wrong with a Parquet file, in one sentence: pyarrow's own errors are subclasses of many others."""
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
    """With names of text, and without an index."""
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


def _none_in_numbers(column: pd.Series) -> pd.Series:
    """Numbers written by Python, whose missing value is the text None."""
    if pd.api.types.is_numeric_dtype(column) or not (column == "None").any():
        return column
    rest = column.where(column != "None")
    numbers = pd.to_numeric(rest, errors="coerce")
    return numbers if rest.notna().any() and numbers.notna().sum() == rest.notna().sum() else column


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


def holds_tables(column: pd.Series) -> bool:
    """Whether cells are lists, arrays or mappings, as in Parquet's columns of lists, structs and maps."""
    return column.dtype == object and any(isinstance(cell, (list, tuple, dict, np.ndarray)) for cell in column)


def number_in(text: str) -> float | None:
    """The number that a text is, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def by_treatment(texts: list[str] | None, argument: str, frame: pd.DataFrame | None = None) -> dict[str, float | str]:
    """What LABEL=X options say: a number, or with a frame the name of one of its columns."""
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
