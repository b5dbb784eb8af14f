"""Checks without heavy imports: files that are not there, columns that a header lacks, values that no option takes.

A mistake is told before pandas and the rest are loaded. Whatever is not plain here is left to those who read the table;
nothing is refused that they would take.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from policytree.cli.study_options import COLUMN, COLUMNS, StudyOptions, refuse_unnamed
from policytree.common.close_names import no_such_column, suggestion
from policytree.common.option_words import listed
from policytree.exceptions import InputError, quoted

PLAIN_ENDINGS = (".csv", ".tsv", ".txt")
SEPARATORS = (",", ";", "\t", "|")
LONGEST_LINE = 1 << 20
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9]{1,9}://")
REPEATED, ADAPTIVE, WAYS = "repeated", "adaptive", ("repeated", "sequential", "split")
AUTO, MOST_DIGITS = "auto", 9  # of a depth
CATEGORIES = ("levels", "groups")
DIRECTIONS, ESTIMATED = ("maximize", "minimize"), "estimated"


def no_such_file(path: Path) -> str:
    """The sentence about a file that is not there."""
    if path.is_symlink():
        return f"There is no file '{path}': it is a link to '{path.readlink()}', which is not there; check that."
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:  # no folder either, or one whose names cannot be read
        names = []
    return f"There is no file '{path}'; {suggestion(path.name, names, 'check its name and folder.')}"


def header_of(path: Path) -> list[str] | None:
    """The names of a plain CSV file's columns; None where only a whole reading tells them.

    Plain is a text in UTF-8 whose first two lines have as many cells, by one separator, and a name in every column.
    """
    if not path.name.lower().endswith(PLAIN_ENDINGS):
        return None
    try:
        with path.open("rb") as file:
            lines = [line for line in islice(iter(lambda: file.readline(LONGEST_LINE), b""), 2) if line.strip()]
        text = [line.decode("utf-8-sig") for line in lines]
    except (OSError, ValueError):
        return None
    if len(text) < 2 or any("\0" in line or line.count('"') % 2 or not line.endswith("\n") for line in text[:1]):
        return None
    found = []
    for separator in SEPARATORS:
        try:
            cells = [next(csv.reader(io.StringIO(line), delimiter=separator)) for line in text]
        except (csv.Error, StopIteration):
            continue
        if len(cells[0]) == len(cells[1]) > 1:
            found.append([name.strip() for name in cells[0]])
    quoted_once = found and all(name[:1] == name[-1:] == "'" for name in found[0])
    if len(found) != 1 or quoted_once or not all(found[0]) or len(set(found[0])) < len(found[0]):
        return None
    return found[0]


def check_first(
    data: str | None,
    dataset: str | None,
    options: StudyOptions | None = None,
    beside: Mapping[str, str | None] | None = None,
    *,
    whole: bool = True,
    level: float = 0.95,
    categories: str | None = None,
) -> None:
    """Refuse what is wrong whatever the rows hold.

    Parameters
    ----------
    data, dataset : str or None
        One of the two; where both are given, or none, others say so.
    options : StudyOptions, optional
    beside : mapping of option to text or None
        Further options that name one column.
    whole : bool
        Whether a treatment and an outcome must be named.

    Raises
    ------
    InputError
    """
    if (data is None) == (dataset is None):
        return
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1, for example 0.95; got {quoted(level)}.")
    if options is not None and options.direction not in (None, *DIRECTIONS):
        raise InputError(f"--direction must be maximize or minimize; got {quoted(options.direction)}.")
    check_categories(categories)
    if dataset is not None:
        _check_name(dataset)
        return
    assert data is not None, "one of them is given"
    names = _names_in(data)
    if names is None or options is None:
        return
    if whole:
        refuse_unnamed(options, names)
    for asked, text in {**options.named(COLUMN), **(beside or {})}.items():
        several = asked == "--treatment" and text is not None and text not in names
        _check_columns([text] if text is not None and not several else _listed(text), asked, names)
    for asked, text in options.named(COLUMNS).items():
        _check_columns(_listed(text), asked, names)
    _check_propensity(options.propensity, names)


def check_source(data: str | None, dataset: str | None, command: str) -> None:
    """Refuse a command that is given neither a file nor a data set, or both."""
    if (data is None) is (dataset is None):
        raise InputError(f"Give a data file or --dataset: policytree {command} trial.csv --treatment arm --outcome y")


def check_categories(text: str | None) -> None:
    """Refuse a way to split columns of text that there is not."""
    if text not in (None, *CATEGORIES):
        raise InputError(f"--categories must be levels or groups; got {quoted(text)}.")


def depth_of(text: str) -> int | str:
    """The depth that --max-depth asks for: a number, or that the data choose it.

    Raises
    ------
    InputError
    """
    if text != AUTO and (not text.isdecimal() or len(text) > MOST_DIGITS):
        raise InputError(f"--max-depth must be a whole number >= 0, or {AUTO}; got {quoted(text)}.")
    return text if text == AUTO else int(text)


def _check_name(dataset: str) -> None:
    from policytree.datasets import DATASET_NAMES

    if dataset not in DATASET_NAMES:
        raise InputError(f"There is no data set {dataset!r}; choose one of {', '.join(DATASET_NAMES)}.")


def _names_in(data: str) -> list[str] | None:
    path = Path(data)
    if not data.strip() or ADDRESS.match(data):
        what = "is an address: download the table" if data.strip() else "is no name of a file: say where the table is"
        raise InputError(f"'{data}' {what} and name that file.")
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(no_such_file(path)) from error
    except (OSError, ValueError):  # a name that no file can have, or no right to look
        return None
    return header_of(path) if path.is_file() else None


def _listed(text: str | None) -> list[str]:
    """Names in a comma-separated option; none where they cannot be read, which others say."""
    try:
        return [name.strip() for name in next(csv.reader([text or ""], skipinitialspace=True), []) if name.strip()]
    except csv.Error:
        return []


def _check_columns(asked: Sequence[str], option: str, names: Sequence[str]) -> None:
    for name in asked:
        if name not in names and not any("," in other for other in names):  # others say how to quote these
            raise InputError(no_such_column(name, option, names))


def _check_propensity(text: str | None, names: Sequence[str]) -> None:
    """Chances that are no numbers between 0 and 1, and no columns."""
    if text is None or text in (ESTIMATED, *names) or any("," in name or "=" in name for name in names):
        return
    for part in listed(text) if "=" in text else [text]:
        label, _, value = (piece.strip() for piece in part.rpartition("="))
        try:
            chance = float(value)
        except ValueError:
            if value not in names:
                raise InputError(no_such_column(value, "--propensity", names)) from None
            continue
        if not 0.0 < chance < 1.0:
            whose = f" of {label}" if label else ""
            raise InputError(f"--propensity{whose} is {chance:g}; it must lie strictly between 0 and 1.")


def repeats_of(validation: str, repeats: Any, honest: float | None, value: bool) -> int | str | None:
    """The validation that --repeats, --validation and --honest ask for together; ``value``: unless --no-value.

    Raises
    ------
    InputError
    """
    if validation not in WAYS:
        raise InputError(f"--validation must be repeated, sequential or split; got '{validation}'.")
    if honest is not None and not 0.1 <= honest <= 0.9:
        raise InputError(f"--honest must be a share from 0.1 to 0.9; got {honest:g}.")
    if honest is not None and (validation != REPEATED or repeats is not None or not value):
        raise InputError("--honest judges the tree by its own rows; leave out --validation, --repeats and --no-value.")
    if repeats is None:
        return None
    if validation != REPEATED:
        raise InputError(f"--repeats goes with --validation repeated; with {validation} leave it out.")
    if repeats == ADAPTIVE:
        return ADAPTIVE
    if not str(repeats).isdigit() or int(repeats) < 1:
        raise InputError(f"--repeats must be a whole number of at least 1, or adaptive; got '{repeats}'.")
    return int(repeats)
