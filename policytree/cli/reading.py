"""The options of every command that reads a table, and what cells become. Imports nothing heavy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from policytree.cli.option_fields import asked
from policytree.common.number_texts import (
    OPTIONS,
    PERCENT,
    UNITS,
    WORD,
    Unread,
    number_of,
    percent_of,
)
from policytree.common.option_words import typed
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    import pandas as pd

_said = partial(asked, panel="How the file is read")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a table is to be read.

    Attributes
    ----------
    decimal : {".", ","} or None
        None: as the file says.
    thousands : {",", ".", "'", " "} or None
    na_values : tuple of str
        Values that mean a missing one, "-999,unknown", or with a column "age=99".
    encoding, sheet : str or None
    """

    decimal: str | None = _said(
        "SIGN",
        "Decimal sign of numbers: . or , as in 0,3. Default: a point; in files with semicolons as the cells say.",
    )
    thousands: str | None = _said("SIGN", "Sign between thousands: , or . or ' as in 1,234. Default: none, or blanks.")
    na_values: tuple[str, ...] = _said(
        "VALUES",
        "Values that stand for a missing one, beside NA, NaN, null and empty cells: -999,unknown in all columns, or "
        "COLUMN=99 in one; again for more.",
        default=(),
    )
    encoding: str | None = _said("NAME", "Encoding of a text file, such as latin-1 or utf-16. Default: UTF-8.")
    sheet: str | None = _said("NAME", "Sheet of an Excel file. Default: the first.")

    def __post_init__(self):
        if self.decimal not in (None, ".", ","):
            raise InputError(f"--decimal must be . or a comma; got {quoted(self.decimal)}.")
        if self.thousands not in (None, ",", ".", "'", " "):
            raise InputError(f"--thousands must be a comma, a point, ' or a blank; got {quoted(self.thousands)}.")
        try:
            "".encode("utf-8" if self.encoding is None else self.encoding)
        except (LookupError, ValueError) as error:  # unknown, or none of texts
            raise InputError(
                f"--encoding {quoted(self.encoding)} is no encoding of texts; say latin-1, cp1252 or utf-16."
            ) from error
        for text in self.na_values:
            if not text.rpartition("=")[2].replace(",", "").strip():
                raise InputError(
                    f"--na-values {shlex.quote(text)} names no value; say -999, or of one column bmi=-999 (empty cells "
                    "are missing anyway)."
                )
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            other = "." if self.thousands == "," else ","
            raise InputError(
                f"--thousands {shlex.quote(self.thousands)} is the decimal sign as well; say --decimal "
                f"{shlex.quote(other)} too."
            )

    @property
    def saved(self) -> dict[str, Any]:
        """Options that a tree's file keeps, since other tables of the study are written in the same way."""
        return {"decimal": self.decimal, "thousands": self.thousands, "na_values": list(self.na_values)}

    def otherwise(self, design: Mapping[str, Any]) -> Reading:
        """The same with what a saved design says, where the user says nothing."""
        kept = design.get("reading")
        kept = kept if isinstance(kept, Mapping) else {}
        values = kept.get("na_values")
        texts = tuple(v for v in values if isinstance(v, str)) if isinstance(values, list) else ()
        decimal, thousands = self.decimal, self.thousands
        if decimal is thousands is None:
            decimal, thousands = (kept.get(name) for name in ("decimal", "thousands"))
        return replace(self, decimal=decimal, thousands=thousands, na_values=self.na_values or texts)

    def refuse_unknown_columns(self, names: Any) -> None:
        """Refuse COLUMN=VALUE of a column that is not there."""
        for text in self.na_values:
            name, sign, _ = text.rpartition("=")
            if sign and name not in names:
                raise InputError(
                    f"--na-values {shlex.quote(text)} names no column; the columns are {', '.join(list(names)[:20])}."
                )

    def missing_in(self, column: str, names: Any) -> set[str]:
        """The texts that stand for a missing value in a column; ``names`` are those of all columns."""
        found: set[str] = set()
        for text in self.na_values:
            name, sign, values = text.rpartition("=")
            if not sign or name not in names:
                name, values = column, text
            if name == column:
                found |= {value.strip() for value in values.split(",")}
        return found - {""}

    def clean(self, frame: pd.DataFrame, typed: bool = False) -> pd.DataFrame:
        """A table as it was read, with missing values where they are meant and numbers where texts are numbers.

        Where columns have types (``typed``, as in Parquet), texts are meant as such unless an option says otherwise.
        """
        names = frame.columns
        changed = {k: self._clean(column, names, typed) for k, (_, column) in enumerate(frame.items())}
        changed = {k: column for k, column in changed.items() if column is not None}
        if not changed:
            return frame
        import pandas as pd

        parts = [changed.get(k, frame.iloc[:, k]) for k in range(len(names))]
        return pd.concat(parts, axis=1).set_axis(names, axis=1)

    def _clean(self, column: pd.Series, names: Any, typed: bool) -> pd.Series | None:
        """The column anew, or None if it stays."""
        import pandas as pd

        from policytree.study.columns import holds_tables

        if isinstance(column.dtype, pd.CategoricalDtype):
            gone = self.missing_in(str(column.name), names)
            return column.mask(column.astype(str).isin(gone)) if gone else None
        gone = self.missing_in(str(column.name), names)
        if pd.api.types.is_numeric_dtype(column):
            codes = [number for text in gone if (number := number_of(text, self.decimal or ".")) is not None]
            return column.mask(column.isin(codes)) if codes and column.isin(codes).any() else None
        if column.dtype != object and not pd.api.types.is_string_dtype(column):
            return None
        if holds_tables(column):
            return None
        masked = without_blanks(column.mask(column.map(_stripped).isin(gone)) if gone else column)
        if typed and self.decimal is self.thousands is None and masked.notna().sum() == column.notna().sum():
            return None
        numbers = self.numbers(masked)
        return numbers if numbers is not None else (None if masked is column else masked)

    def numbers(self, column: pd.Series) -> pd.Series | None:
        """A column of texts as numbers, if all of them are."""
        return _converted(column, lambda text: number_of(text, self.decimal or ".", self.thousands))

    def percents(self, column: pd.Series) -> pd.Series | None:
        """A column of texts such as 5.1 % as numbers, 5.1, if all are such."""
        return _converted(column, lambda text: percent_of(text, self.decimal or "."))


def without_blanks(column: pd.Series) -> pd.Series:
    """A column of texts in which cells of nothing but blanks are missing; itself if it has none."""
    blank = [text for text in column.unique() if isinstance(text, str) and not text.strip()]
    return column.mask(column.isin(blank)) if blank else column


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _converted(column: pd.Series, read: Any) -> pd.Series | None:
    """The column with every different text read once; None if one of its values is no text, or cannot be read."""
    import pandas as pd

    from policytree.study.columns import holds_tables

    if holds_tables(column):
        return None
    codes, distinct = pd.factorize(column)
    values = []
    for value in distinct.tolist():
        number = read(value) if isinstance(value, str) else None
        if number is None and value != "None":  # Python's missing value, in a column of numbers
            return None
        if number is not None and abs(number) >= 2**53 and value.strip().lstrip("+-").isdigit():
            return None  # an id, whose last digits a floating-point number would lose
        values.append(float("nan") if number is None else number)
    if not values or all(value != value for value in values):
        return None
    numbers = pd.Series([*values, float("nan")], dtype=float).to_numpy()[codes]
    out = pd.Series(numbers, index=column.index, name=column.name)
    whole = out.notna().all() and (out % 1 == 0).all() and (out.abs() < 2**53).all()
    return out.astype("int64") if whole else out


def remedy(found: Unread, column: str, option: str) -> str:
    """The option that makes numbers of texts."""
    if found.cause == WORD:
        return f"if so, say --na-values {typed(','.join(found.words))}."
    if found.cause in OPTIONS:
        return f"say {OPTIONS[found.cause]} to read it."
    return {
        PERCENT: "write the numbers alone.",
        UNITS: "delete that line.",
    }.get(found.cause, f"write numbers there, or name another column by {option}.")
