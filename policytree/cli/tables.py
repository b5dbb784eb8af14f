"""Tables from files: CSV and Parquet in, columns found by name, one sentence for what cannot be read."""

from __future__ import annotations

import csv
import difflib
import lzma
import tarfile
import warnings
import zipfile
import zlib
from pathlib import Path

import pandas as pd

from policytree.binning import first_repeated
from policytree.exceptions import InputError

BAD_ARCHIVES = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error)
PARQUET_ENDINGS = (".parquet", ".pq")
OTHER_SEPARATORS = (";", "\t", "|")
NAMES_SHOWN = 20
# pandas reads "None" as missing, but it is what many a trial calls the arm that got nothing.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null"]


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV or Parquet file as a DataFrame with text column names.

    Separators other than commas (semicolon, tab, bar) are recognised by the header. "None" is a value in columns of
    text, and missing in columns of numbers.

    Raises
    ------
    InputError
        If there is no such file, or it is empty or no table.
    """
    path = _existing(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return _read_parquet(path)
    frame = _read_csv(path, na_values=MISSING)
    return frame.apply(_none_in_numbers)


def read_as_text(path: str | Path) -> pd.DataFrame:
    """A CSV file with every cell's text as it stands; a Parquet file as :func:`read_table` reads it."""
    path = _existing(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return _read_parquet(path)
    return _read_csv(path, dtype=str, na_values=[])


def _existing(path: str | Path) -> Path:
    path = Path(path)
    try:
        there = path.exists()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise InputError(f"'{path}' cannot be the name of a file ({_first_line(error)}); check it.") from error
    if not there:
        folder = path.parent
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        raise InputError(f"There is no file '{path}'; {_suggestion(path.name, names, 'check its name and folder.')}")
    if path.is_dir():
        raise InputError(f"'{path}' is a folder; name a CSV or Parquet file in it.")
    return path


def _read_csv(path: Path, **options) -> pd.DataFrame:
    try:
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
        separator = _separator(header)
        if separator != ",":
            header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, sep=separator)
        names = [str(name).strip() for name in header.iloc[0]]
        _refuse_bad_names(names, path)
        options |= {"skip_blank_lines": len(names) > 1}  # in a file of one column they are its missing values
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows with more cells than there are names
            frame = pd.read_csv(
                path, sep=separator, keep_default_na=False, index_col=False, low_memory=False, **options
            )
    except pd.errors.ParserWarning as error:
        raise InputError(f"'{path}' has more cells in its rows than names in its header; name every column.") from error
    except pd.errors.EmptyDataError as error:
        raise InputError(f"'{path}' is empty; give a CSV file with a header line and rows.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not a CSV file in UTF-8; save it as 'CSV UTF-8' or Parquet.") from error
    except (pd.errors.ParserError, csv.Error, *BAD_ARCHIVES, ValueError, EOFError) as error:
        raise InputError(f"'{path}' cannot be read as CSV ({_first_line(error)}); check the file.") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror or error}); check the file.") from error
    frame.columns = names
    return _with_rows(frame, path)


def _separator(header: pd.DataFrame) -> str:
    """The comma, unless the header is one name with some other separator in it."""
    if header.shape[1] > 1:
        return ","
    found = [s for s in OTHER_SEPARATORS if s in str(header.iloc[0, 0])]
    return found[0] if found else ","


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise InputError(
            f"Reading '{path}' needs the package pyarrow; install it with `pip install pyarrow`."
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses
        raise InputError(f"'{path}' cannot be read as Parquet ({_first_line(error)}); check the file.") from error
    frame.columns = [str(name) for name in frame.columns]
    _refuse_bad_names(list(frame.columns), path)
    return _with_rows(frame.reset_index(drop=True), path)


def _refuse_bad_names(names: list[str], path: Path) -> None:
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
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def column_names(text: str | None, option: str, frame: pd.DataFrame) -> list[str]:
    """Names in a comma-separated option (those that hold commas in double quotes), checked against the table."""
    if text is None:
        return []
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    names = list(dict.fromkeys(name for name in names if name))
    if not names:
        raise InputError(f"{option} names no column; give names separated by commas.")
    for name in names:
        require_column(name, option, frame)
    return names


def require_column(name: str, option: str, frame: pd.DataFrame) -> None:
    """Refuse a column that is not there, with names that are close."""
    if name not in frame.columns:
        names = list(frame.columns)
        shown = ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")
        rest = _suggestion(name, names, f"the columns are {shown}.")
        raise InputError(f"There is no column {name!r} ({option}); {rest}")


def _suggestion(name: str, known: list[str], otherwise: str) -> str:
    """'did you mean ...' if some known name is close."""
    folded: dict[str, str] = {}
    for other in known:
        folded.setdefault(other.casefold(), other)
    close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(folded[c]) for c in close)}?" if close else otherwise
