"""Tables of other programs: spreadsheets, Stata, SPSS, SAS, Feather and JSON; their packages are imported late."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from policytree.cli.reading import Reading
from policytree.common.memory import free_bytes
from policytree.common.option_words import typed
from policytree.exceptions import InputError

EXTRA = "pip install 'policytree[files]'"
# Cells of an Excel file take so many times its packed bytes, at most: more memory than there is would be needed.
UNPACKED = 100
PROGRAMS = {
    ".pkl": "a pickle, which runs whatever program it holds when it is opened",
    ".pickle": "a pickle, which runs whatever program it holds when it is opened",
    ".rds": "a file of R",
    ".rdata": "a file of R",
    ".rda": "a file of R",
    ".mat": "a file of Matlab",
    ".numbers": "a spreadsheet of Numbers",
}
Found = tuple[pd.DataFrame, list[str]]  # a table, and what was decided


def _excel(path: Path, reading: Reading) -> Found:
    frames = pd.read_excel(path, engine="calamine", sheet_name=None, header=None, keep_default_na=False)
    sheets = {str(name): _filled(frame) for name, frame in frames.items()}
    full = [name for name, frame in sheets.items() if frame.size]
    if reading.sheet is not None and reading.sheet not in sheets:
        raise InputError(f"'{path}' has no sheet {reading.sheet!r} (--sheet); its sheets are {', '.join(sheets)}.")
    if not full:
        raise InputError(f"'{path}' is empty; give a sheet with a header and rows.")
    name = full[0] if reading.sheet is None else reading.sheet
    cells, notes = sheets[name], []
    if not cells.size:
        raise InputError(f"Sheet {name!r} of '{path}' is empty; its other sheets are {', '.join(sheets)}.")
    others = ", ".join(repr(other) for other in full if other != name)
    if len(full) > 1 and reading.sheet is None:
        notes.append(f"'{path.name}' has several sheets; {name!r} was read, and not {others} (--sheet).")
    header = ["" if pd.isna(cell) else _header_text(cell) for cell in cells.iloc[0]]
    body = cells.iloc[1:].reset_index(drop=True).infer_objects()
    if body.empty and others:
        raise InputError(
            f"Sheet {name!r} of '{path}' has a header but no rows; its other sheets are {others} (--sheet)."
        )
    return body.set_axis(header, axis=1), notes


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """The part of a sheet in which something stands, without empty rows above and empty columns beside it."""
    frame = frame.astype(object).where(frame.notna() & (frame != ""), None)
    rows = frame.notna().any(axis=1).to_numpy()
    if not rows.any():
        return pd.DataFrame()
    frame = frame.iloc[int(rows.argmax()) :]
    columns = frame.notna().any(axis=0).to_numpy()
    return frame.loc[:, columns]


def _header_text(cell: Any) -> str:
    """A name of a column, which may be a number: 2024 and not 2024.0."""
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell).strip()


def _stata(path: Path, reading: Reading) -> Found:
    raw = pd.read_stata(path, convert_categoricals=False)
    try:
        named = pd.read_stata(path)
    except ValueError:  # two codes have one label
        return raw, ["Value labels were left out, since two codes of a column have the same label."]
    labels = {}
    for name, column in named.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            # A code without a label stays a number among the categories.
            pairs = dict(zip(raw[name], column.astype(object), strict=True))
            labels[name] = {code: pairs[code] for code in sorted(pairs) if isinstance(pairs[code], str)}
    return _labelled(raw, labels, reading)


def _statistical(read: str) -> Callable[[Path, Reading], Found]:
    """A reader of SPSS or SAS files, a function of pyreadstat."""

    def reader(path: Path, reading: Reading) -> Found:
        import pyreadstat

        options = {} if reading.encoding is None else {"encoding": reading.encoding}
        frame, about = getattr(pyreadstat, read)(str(path), dates_as_pandas_datetime=True, **options)
        return _labelled(frame, about.variable_value_labels, reading)

    return reader


def _labelled(frame: pd.DataFrame, labels: Mapping[Any, Mapping[Any, str]], reading: Reading) -> Found:
    """Columns all of whose values have labels as categories; of others, which values have one."""
    notes, out = [], {}
    for name, column in frame.items():
        if column.dtype == object:
            column = column.where(column != "", None)  # these programs have no missing texts
        known = labels.get(name)
        if known:
            if column.dropna().isin(list(known)).all():
                levels = list(dict.fromkeys(str(text) for text in known.values()))
                column = column.map(lambda code, known=known: known.get(code), na_action="ignore")
                column = pd.Series(pd.Categorical(column, categories=levels), index=column.index, name=name)
                column = column.cat.remove_unused_categories()
            else:
                gone = reading.missing_in(str(name), frame.columns)
                named = [
                    (shown, text) for code, text in known.items()
                    if (column == code).any() and (shown := _shown(code)) not in gone
                ]  # fmt: skip
                notes += [_partly_labelled(name, shown, text) for shown, text in named[:3]]
        out[name] = column
    return pd.DataFrame(out), notes


def _shown(code: Any) -> str:
    return f"{code:g}" if isinstance(code, float) else str(code)


def _partly_labelled(name: Any, shown: str, text: str) -> str:
    return (
        f"Value {shown} of column {name!r} has the label {text!r}, and other values have none: the column stays one of "
        f"numbers. If {shown} stands for a missing value, say --na-values {typed(f'{name}={shown}')}."
    )


def _feather(path: Path, reading: Reading) -> Found:
    return pd.read_feather(path), []


def _json(path: Path, reading: Reading) -> Found:
    text = path.read_text(encoding="utf-8-sig")
    lines = path.suffix.lower() in (".jsonl", ".ndjson")
    rows = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"'{path}' is JSON, but no list of rows; write one object with named values for every row.")
    return pd.DataFrame(rows), []


# By ending: what people call such a file, its reader, whether its columns have types, and the package it needs.
READERS: dict[str, tuple[str, Callable[[Path, Reading], Found], bool]] = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), ("a spreadsheet", _excel, False)),
    ".dta": ("a Stata file", _stata, True),
    **dict.fromkeys((".sav", ".zsav"), ("an SPSS file", _statistical("read_sav"), True)),
    ".por": ("an SPSS file", _statistical("read_por"), True),
    ".sas7bdat": ("a SAS file", _statistical("read_sas7bdat"), True),
    ".xpt": ("a SAS file", _statistical("read_xport"), True),
    ".feather": ("a Feather file", _feather, True),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), ("JSON", _json, False)),
}
PACKAGES: dict[Any, str] = {_excel: "python-calamine", _feather: "pyarrow"}


def reads(path: Path) -> bool:
    """Whether a file is one of another program, by its ending; refuses those that cannot be read safely.

    Raises
    ------
    InputError
    """
    ending = path.suffix.lower()
    if ending in PROGRAMS:
        raise InputError(f"'{path}' is {PROGRAMS[ending]}; save its table as CSV or Parquet and give that.")
    return ending in READERS


def read_other(path: Path, reading: Reading) -> tuple[pd.DataFrame, list[str], bool]:
    """A table of another program, what was decided, and whether its columns have types.

    Raises
    ------
    InputError
        If a package is missing, or the file cannot be read.
    """
    what, reader, typed = READERS[path.suffix.lower()]
    _refuse_options(path, what, reader, reading)
    free, size = free_bytes(), path.stat().st_size
    if free is not None and reader is _excel and size * UNPACKED > free:
        raise InputError(f"'{path}' may not fit into the memory that is free; save its table as CSV and give that.")
    try:
        frame, notes = reader(path, reading)
    except InputError:
        raise
    except ImportError as error:
        package = PACKAGES.get(reader, "pyreadstat")
        raise InputError(f"Reading '{path}' needs the package {package}; install it with `{EXTRA}`.") from error
    except MemoryError as error:
        raise InputError(f"'{path}' does not fit into memory; save its table as CSV and give that.") from error
    except Exception as error:  # readers of strangers' files may raise anything
        line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(
            f"'{path}' cannot be read as {what} ({line}); open it in its own program and save it again, or as CSV."
        ) from error
    return frame, notes, typed


def _refuse_options(path: Path, what: str, reader: Any, reading: Reading) -> None:
    """Refuse options that say nothing about a kind of file."""
    if reading.sheet is not None and reader is not _excel:
        raise InputError(f"--sheet is about spreadsheets, and '{path}' is {what}; leave it out.")
    if reading.encoding is not None and reader in (_excel, _stata, _feather, _json):
        raise InputError(f"--encoding is about text files, and '{path}' is {what}; leave it out.")
