"""Where rows come from: Parquet and CSV files, Arrow datasets and tables, DuckDB relations, frames, dask frames.

A source is read several times, column by column, in batches that the source chooses. Nothing here depends on where one
batch ends and the next begins.
"""

from __future__ import annotations

import glob
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policytree.exceptions import InputError

NUMBER, TEXT, UNKNOWN = "numbers", "text", "nothing but missing values"
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "ipc", ".feather": "ipc"}
BATCH_ROWS = 1 << 17  # requested of a source at a time
READ_ROWS = 1 << 18  # of a source in memory at a time, where nobody says how many


def arrow():
    """Return pyarrow, or one sentence that says how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Encoding needs pyarrow; install it with: pip install 'policytree[scale]'.") from error
    return pyarrow


@dataclass(frozen=True)
class Part:
    """A file, or a whole source that has none: its schema, and how to read some of its columns."""

    name: str
    schema: Any  # pyarrow.Schema
    read: Callable[[list[str], int], Iterator[Any]]  # columns, rows to a batch at most -> pyarrow.RecordBatch
    count_rows: Callable[[], int] | None = None  # where that takes less than reading them
    file: Path | None = None  # a Parquet file


@dataclass(frozen=True)
class Source:
    """Rows that can be read again and again.

    Attributes
    ----------
    parts : tuple of Part
    fingerprint : str or None
        Changes where the files do; None if that cannot be seen, so that a job cannot go on in the midst of the rows.
    bytes : int or None
        Size of the files, where there are any.
    files : tuple of Path
        Files of the fingerprint.
    """

    parts: tuple[Part, ...]
    fingerprint: str | None = None
    bytes: int | None = None
    files: tuple[Path, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns, as the first part has them."""
        return list(self.parts[0].schema.names)

    def __str__(self) -> str:
        return self.parts[0].name.lower() if len(self.parts) == 1 else f"{len(self.parts):,} files"

    def refuse_changed(self) -> None:
        """One sentence if files were changed since they were opened."""
        try:
            changed = self.fingerprint is not None and _fingerprint(list(self.files)) != self.fingerprint
        except OSError:  # one is gone
            changed = True
        if changed:
            raise InputError("The source changed while it was read; call this again once its files stay as they are.")

    def check_columns(self, columns: list[str], argument: str) -> None:
        """One sentence if a part lacks a column, or has two of its name."""
        for part in self.parts:
            twice = [c for c in columns if part.schema.names.count(c) > 1]
            if twice:
                raise InputError(f"{part.name} has several columns {twice[0]!r} of {argument}; rename all but one.")
            lacking = [c for c in columns if c not in part.schema.names]
            if lacking:
                raise InputError(
                    f"{part.name} lacks the column(s) {', '.join(map(repr, lacking))} of {argument}; it has "
                    f"{', '.join(part.schema.names[:10])}{', ...' if len(part.schema.names) > 10 else ''}."
                )

    def kinds(self, columns: list[str], argument: str = "X") -> dict[str, str]:
        """Whether columns hold numbers or text; one sentence if a part lacks one, or has another kind.

        The value is NUMBER, TEXT, or UNKNOWN where no part has a value.

        Warns
        -----
        UserWarning
            If a column holds true and false in one part and numbers in another.
        """
        self.check_columns(columns, argument)
        types = [(part.name, {column: part.schema.field(column).type for column in columns}) for part in self.parts]
        return common_kinds(types, columns, f" of {argument}", "write all files with one type")

    def tables(self, columns: list[str], rows: int, start: int = 0) -> Iterator[Any]:
        """Tables of exactly ``rows`` rows but for the last one, from row ``start`` on; none if there are no rows."""
        pa = arrow()
        held: list = []
        count, skip = 0, start
        schema = pa.schema([(c, common_type([p.schema.field(c).type for p in self.parts])) for c in columns])
        for part in self.parts:
            if skip and part.count_rows is not None and part.count_rows() <= skip:
                skip -= part.count_rows()
                continue
            for batch in _read(part, columns, BATCH_ROWS):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                piece, skip = _with_types(plain_columns(batch.slice(skip)), schema, part.name), 0
                while piece.num_rows:
                    taken = piece.slice(0, rows - count)
                    held.append(taken)
                    count += taken.num_rows
                    piece = piece.slice(taken.num_rows)
                    if count == rows:
                        yield pa.concat_tables(held)
                        held, count = [], 0
        if count:
            yield pa.concat_tables(held)

    def count_rows(self) -> int | None:
        """Number of rows, where that is known without reading them."""
        counts = [part.count_rows for part in self.parts]
        return None if None in counts else sum(count() for count in counts if count is not None)


def _read(part: Part, columns: list[str], batch_rows: int) -> Iterator[Any]:
    """Batches of a part; what a reader cannot make sense of becomes one sentence that names the damaged row group."""
    try:
        with reading(part.name):
            yield from part.read(columns, batch_rows)
    except InputError:
        if part.file is not None:
            _name_row_group(part, columns)
        raise


@contextmanager
def reading(name: str) -> Iterator[None]:
    """One sentence in place of what Arrow says of files that it cannot read."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{name} cannot be read: {reason}. Mend or leave out that file.") from error
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error}. It may be damaged; write it anew.") from error


def _name_row_group(part: Part, columns: list[str]) -> None:
    """Read the row groups of a Parquet file one by one, so that the one that is damaged is named."""
    with reading(part.name), arrow().parquet.ParquetFile(part.file, page_checksum_verification=True) as file:
        for k in range(file.num_row_groups):
            with reading(f"Row group {k} of {part.name}"):
                file.read_row_group(k, columns=columns)


def row_groups(file: Path) -> int:
    """How many row groups a Parquet file has."""
    with reading(f"'{file.name}'"), arrow().parquet.ParquetFile(file) as opened:
        return opened.num_row_groups


def kind_of(type_: Any) -> str | None:
    """NUMBER, TEXT or UNKNOWN (all missing); None for types that are neither. Dictionaries are categories, as text."""
    types = arrow().types
    if types.is_null(type_):
        return UNKNOWN
    if types.is_dictionary(type_):
        return TEXT if kind_of(type_.value_type) in (NUMBER, TEXT, UNKNOWN) else None
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return TEXT
    number = types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_) or types.is_decimal(type_)
    return NUMBER if number else None


def common_kinds(
    parts: Sequence[tuple[str, Mapping[str, Any]]], columns: list[str], of: str, remedy: str
) -> dict[str, str]:
    """The kind of every column in all parts, by their names and Arrow's types of their columns; see :class:`Source`."""
    found: dict[str, str] = {}
    for column in columns:
        known, where = UNKNOWN, ""
        for part, types in parts:
            kind = kind_of(types[column])
            if kind is None:
                raise InputError(
                    f"Column {column!r}{of} has type {types[column]}; turn it into numbers or text, or leave it out."
                )
            if UNKNOWN not in (kind, known) and kind != known:
                raise InputError(f"Column {column!r} holds {known} in {where} and {kind} in {part}; {remedy}.")
            if known == UNKNOWN:
                known, where = kind, part
        warn_of_mixed_booleans(column, [(types[column], part) for part, types in parts])
        found[column] = known
    return found


def warn_of_mixed_booleans(column: str, types_: list[tuple[Any, str]]) -> None:
    """Say that true and false are read as numbers if a column has both; ``types_``: its type in every part."""
    types = arrow().types
    boolean = [where for type_, where in types_ if types.is_boolean(type_)]
    number = [where for type_, where in types_ if kind_of(type_) == NUMBER and not types.is_boolean(type_)]
    if boolean and number:
        warnings.warn(
            f"Column {column!r} holds true and false in {boolean[0]} and numbers in {number[0]}: true counts as 1, "
            "false as 0. Write all files with one type if they mean something else.",
            UserWarning,
            stacklevel=4,
        )


def plain_columns(batch: Any) -> Any:
    """A table without dictionaries, whose codes differ from batch to batch, and with one type of text."""
    pa = arrow()
    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
        if kind_of(column.type) == TEXT:
            column = column.cast(pa.large_string())
        columns.append(column)
    return pa.table(columns, names=batch.schema.names)


def common_type(types_: list) -> Any:
    """The type that a column of several files is read as, so that a value is the same whichever file it stands in.

    Whole numbers and yes or no: int64; other numbers: float64; a file without a value has no say. Columns that are only
    copied may be of other types, such as times: what Arrow makes of these.
    """
    pa = arrow()
    plain = [t.value_type if pa.types.is_dictionary(t) else t for t in types_]
    found = {pa.large_string() if kind_of(t) == TEXT else t for t in plain if not pa.types.is_null(t)}
    if len(found) <= 1:
        return found.pop() if found else pa.null()
    if pa.large_string() in found:
        return pa.large_string()
    if any(kind_of(t) is None for t in found):
        with reading("A column of several types"):
            each = [pa.schema([("column", t)]) for t in sorted(found, key=str)]
            return pa.unify_schemas(each, promote_options="permissive").field(0).type
    whole = all(pa.types.is_integer(t) or pa.types.is_boolean(t) for t in found)
    return pa.int64() if whole else pa.float64()


def _with_types(table: Any, schema: Any, name: str) -> Any:
    """A table of a part with the types that all parts share."""
    if table.schema.types == schema.types:
        return table
    with reading(name):
        return table.cast(schema)


def names_files(source: Any) -> bool:
    """Whether it is the name of a file, folder or pattern, or a list of such names."""
    single = str | os.PathLike
    return isinstance(source, single) or (
        isinstance(source, list | tuple) and bool(source) and all(isinstance(each, single) for each in source)
    )


def is_dask(frame: Any) -> bool:
    """Whether it is a frame of dask."""
    return hasattr(frame, "to_delayed") and hasattr(frame, "map_partitions") and hasattr(frame, "columns")


def is_larger_than_memory(rows: Any) -> bool:
    """Whether rows are read a batch at a time: files, datasets, relations and dask frames, and no frame in memory."""
    if isinstance(rows, Source) or names_files(rows) or is_dask(rows) or _is_relation(rows):
        return True
    return type(rows).__module__.startswith(("pyarrow.dataset", "pyarrow._dataset", "pyarrow.ipc"))


def open_source(source: Any) -> Source:
    """Read files by their names, or what Arrow, DuckDB and frames hold; one sentence for anything else."""
    if isinstance(source, Source):
        return source
    pa = arrow()
    if names_files(source):
        return _files([source] if isinstance(source, str | os.PathLike) else list(source))
    if is_dask(source):
        return _of_dask(source)
    if isinstance(source, pa.dataset.Dataset):
        return _dataset(source)
    if isinstance(source, pa.Table):
        return Source((_table_part(source),))
    if isinstance(source, pa.RecordBatchReader):
        raise InputError(
            "A RecordBatchReader can be read only once; pass the dataset, the files or the table behind it."
        )
    if _is_relation(source):
        return Source((_duckdb_part(source),))
    if hasattr(source, "columns") and hasattr(source, "shape"):
        return Source((_table_part(_from_frame(source)),))
    raise InputError(
        "The rows must be the name of a Parquet or CSV file, a folder or list of such files, an Arrow dataset or "
        f"table, a DuckDB relation, a dask frame or a frame; got {type(source).__name__}."
    )


def _is_relation(source: Any) -> bool:
    return type(source).__module__.split(".")[0].lstrip("_") == "duckdb" and hasattr(source, "project")


def _of_dask(frame: Any) -> Source:
    """The partitions of a dask frame, each computed when it is read."""
    import dask

    delayed = [dask.delayed(_from_frame)(part) for part in frame.to_delayed()]
    schemas = dask.compute(*(each.schema for each in delayed))

    def part(k: int) -> Part:
        def read(columns: list[str], rows: int) -> Iterator[Any]:
            return iter(delayed[k].compute().select(columns).to_batches(max_chunksize=rows))

        return Part(f"partition {k}", schemas[k], read)

    return Source(tuple(part(k) for k in range(len(delayed))))


def _from_frame(frame: Any) -> Any:
    import narwhals.stable.v2 as nw

    pa = arrow()
    try:
        return nw.from_native(frame, eager_only=True).to_arrow()
    except (TypeError, nw.exceptions.DuplicateError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"The frame cannot be read as an Arrow table: {str(error).splitlines()[0]}.") from error


def _table_part(table: Any) -> Part:
    def read(columns: list[str], rows: int) -> Iterator[Any]:
        return iter(table.select(columns).to_batches(max_chunksize=rows))

    return Part("The table", table.schema, read, lambda: table.num_rows)


def _duckdb_part(relation: Any) -> Part:
    def read(columns: list[str], rows: int) -> Iterator[Any]:
        quoted = ", ".join('"' + c.replace('"', '""') + '"' for c in columns)
        return iter(_reader(relation.project(quoted), rows))

    return Part("The relation", _reader(relation.limit(0), 1).schema, read)


def _reader(relation: Any, rows: int) -> Any:
    """Run a relation; DuckDB 1.4 renamed the method."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


def _files(given: list) -> Source:
    """Files, folders and patterns, each file by its ending."""
    files = files_of(given)
    return Source(tuple(_file_part(file) for file in files), _fingerprint(files), _bytes(files), tuple(files))


def files_of(given: list) -> list[Path]:
    """The files that names of files, folders and patterns stand for."""
    files: list[Path] = []
    for name in map(Path, given):
        if name.is_dir():
            found = sorted(f for f in name.rglob("*") if f.suffix in FORMATS and not f.name.startswith((".", "_")))
        else:
            found = [name] if name.exists() else sorted(map(Path, glob.glob(str(name))))
        if not found:
            raise InputError(f"There is no file '{name}'; name Parquet or CSV files, or a folder that holds some.")
        files += found
    return files


def _fingerprint(files: list[Path]) -> str:
    stamps = [f"{f.resolve()} {f.stat().st_size} {f.stat().st_mtime_ns}" for f in files]
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


def _bytes(files: list[Path]) -> int:
    return sum(f.stat().st_size for f in files)


def _file_part(file: Path) -> Part:
    pa = arrow()
    if file.suffix not in FORMATS:
        raise InputError(f"'{file}' is of no known kind; give files that end in {', '.join(FORMATS)}.")
    form: Any = FORMATS[file.suffix]
    counted, of_parquet = form != "csv", form == "parquet"
    if form == "csv":  # gaps in text as pandas reads them
        options = pa.csv.ConvertOptions(strings_can_be_null=True)
        form = pa.dataset.CsvFileFormat(convert_options=options)
    elif form == "parquet":  # pages have checksums if their writer made any, as stream_rewards does
        scan = pa.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        form = pa.dataset.ParquetFileFormat(default_fragment_scan_options=scan)
    try:
        data = pa.dataset.dataset(str(file), format=form)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"'{file}' cannot be read: {reason}. It may be damaged; write it anew.") from error
    return _dataset_part(f"'{file.name}'", data, data.schema, counted, file if of_parquet else None)


def _dataset_part(name: str, data: Any, schema: Any, counted: bool, file: Path | None = None) -> Part:
    """``data``: a dataset, or one of its fragments; ``file``: where it is one of Parquet."""

    def read(columns: list[str], rows: int) -> Iterator[Any]:
        scanned = data.scanner(columns=columns, batch_size=rows, fragment_readahead=2, batch_readahead=4)
        return (batch for batch in scanned.to_batches() if batch.num_rows)

    return Part(name, schema, read, data.count_rows if counted else None, file)


def _dataset(data: Any) -> Source:
    """The fragments of an Arrow dataset, each with the types of its own file."""
    try:
        fragments = list(data.get_fragments())
    except ValueError:  # it has a filter, which fragments do not know of
        return Source((_dataset_part("The dataset", data, data.schema, counted=False),))
    files = [Path(path) for path in getattr(data, "files", [])]
    if not files or not all(file.exists() for file in files):
        return Source((_dataset_part("The dataset", data, data.schema, counted=False),))
    own = [f if set(f.physical_schema.names) >= set(data.schema.names) else None for f in fragments]
    parts = (
        tuple(
            _dataset_part(
                f"'{file.name}'", data if fragment is None else fragment, fragment.physical_schema, counted=True
            )
            for file, fragment in zip(files, fragments, strict=True)
        )
        if None not in own
        else (_dataset_part("The dataset", data, data.schema, counted=False),)
    )  # columns in folder names
    return Source(parts, _fingerprint(files), _bytes(files), tuple(files))
