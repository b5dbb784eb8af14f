"""Labels of treatments and categories, and floats, as what strict JSON can hold."""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from policytree.data.features import check_whole
from policytree.exceptions import InputError
from policytree.serialization.parsing import MALFORMED

if TYPE_CHECKING:
    import pandas as pd

_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no such numbers
_NUMPY_TYPES = re.compile(
    r"bool|str|u?int(8|16|32|64)|float(16|32|64)|(datetime64|timedelta64)\[\d*(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]"
)
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
_UNKNOWN = object()


def float_to_json(value: float) -> float | str:
    """Give a float as JSON: itself, or the name of what JSON lacks."""
    if math.isfinite(value):
        return value  # json writes the shortest text that reads back as the same float64
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def float_from_json(value: Any, name: str) -> float:
    """Read what :func:`float_to_json` gave; ``name`` begins the sentence of an InputError."""
    if isinstance(value, str) and value in _NAMED_FLOATS:
        return _NAMED_FLOATS[value]
    if type(value) in (int, float) and abs(value) <= sys.float_info.max:
        return float(value)
    raise InputError(f"{name} must be a number, or one of {', '.join(_NAMED_FLOATS)}.")


def label_to_json(label: Any) -> Any:
    """Describe a label by what strict JSON can hold, checked to come back as it is.

    Raises
    ------
    InputError
        If a label of this type could not be restored.
    """
    if isinstance(label, str):
        check_text(label)
    if isinstance(label, int):
        check_whole(label)
    data = _describe_label(label)
    if data is not _UNKNOWN:
        back = label_from_json(data)
        same_value = back == label or (back != back and label != label)
        if type(back) is type(label) and same_value:
            return data
    raise InputError(
        f"The label {label!r} of type {type(label).__name__} cannot be saved; use text, numbers, booleans or dates."
    )


def check_text(text: str) -> str:
    """A label or name, or one sentence if no file or terminal could hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The label {text!a} holds half a letter (a lone surrogate); rename it.") from error
    return text


def _describe_label(label: Any) -> Any:
    if label is None or type(label) in (str, bool, int):
        return label
    if type(label) is float:
        return label if math.isfinite(label) else {"type": "float", "value": float_to_json(label)}
    if isinstance(label, np.generic):
        return _describe_numpy(label)
    import pandas as pd

    if isinstance(label, pd.Timestamp):
        return {"type": "timestamp", "unit": label.unit, **_describe_time(label)}
    if type(label) is dt.datetime:
        return {"type": "datetime", **_describe_time(label)}
    if type(label) is dt.date:
        return {"type": "date", "value": label.isoformat()}
    if isinstance(label, pd.Interval):  # the categories that pandas.cut makes
        ends = {"left": label_to_json(label.left), "right": label_to_json(label.right)}
        return {"type": "interval", "closed": label.closed, **ends}
    return _UNKNOWN


def _describe_numpy(label: np.generic) -> Any:
    kind = label.dtype.kind
    name = "str" if kind == "U" else label.dtype.name
    if not _NUMPY_TYPES.fullmatch(name):
        return _UNKNOWN
    if kind in "Mm":
        value: Any = int(label.astype(np.int64))
    else:
        value = float_to_json(label.item()) if kind == "f" else label.item()
    return {"type": "numpy", "dtype": name, "value": value}


def _describe_time(label: dt.datetime) -> dict[str, Any]:
    # A named zone cannot be read off an offset, so it is kept beside the moment in UTC.
    zone = getattr(label.tzinfo, "key", None)
    moment = label if zone is None else label.astimezone(dt.UTC)
    return {"value": moment.isoformat(), "timezone": zone}


def label_from_json(data: Any) -> Any:
    """Rebuild the label that :func:`label_to_json` described; InputError if it is malformed."""
    if type(data) is str:
        return check_text(data)
    if type(data) is int:
        return check_whole(data)
    if data is None or type(data) is bool:
        return data
    if type(data) is float and math.isfinite(data):
        return data
    reader = _READERS.get(str(data.get("type"))) if isinstance(data, dict) else None
    if reader is None:
        raise InputError("A label must be text, a number, true, false, null, or have a known 'type'.")
    try:
        return reader(data)
    except (*MALFORMED, OSError) as error:
        raise InputError(f"A label of type {data['type']!r} is malformed; save it again.") from error


def _read_numpy(data: dict) -> Any:
    name, value = data["dtype"], data["value"]
    if not (isinstance(name, str) and _NUMPY_TYPES.fullmatch(name)):
        raise ValueError(name)
    dtype = np.dtype(name)
    wanted: Any = {"b": bool, "U": str, "f": (int, float, str)}.get(dtype.kind, int)
    if not isinstance(value, wanted) or (isinstance(value, bool) and dtype.kind != "b"):
        raise TypeError(value)
    if dtype.kind in "Mm":
        return np.array(value, dtype=np.int64).astype(dtype)[()]
    if dtype.kind != "f":
        return dtype.type(value)
    number = float_from_json(value, "A label")
    with np.errstate(over="ignore"):
        out = dtype.type(number)
    if not (float(out) == number or math.isnan(number)):
        raise OverflowError(number)
    return out


def _read_datetime(data: dict) -> dt.datetime:
    moment = dt.datetime.fromisoformat(_iso_time(data["value"]))
    return moment if data["timezone"] is None else moment.astimezone(ZoneInfo(data["timezone"]))


def _read_timestamp(data: dict) -> pd.Timestamp:
    import pandas as pd

    moment = pd.Timestamp(_iso_time(data["value"])).as_unit(data["unit"])
    return moment if data["timezone"] is None else moment.tz_convert(ZoneInfo(data["timezone"]))


def _read_interval(data: dict) -> pd.Interval:
    import pandas as pd

    if any(isinstance(data[end], dict) and data[end].get("type") == "interval" for end in ("left", "right")):
        raise ValueError("nested intervals")
    return pd.Interval(label_from_json(data["left"]), label_from_json(data["right"]), closed=data["closed"])


def _iso_time(text: Any) -> str:
    # Parsers take more ("now", "today"), which would not mean the same tomorrow.
    if not isinstance(text, str) or not _ISO_TIME.fullmatch(text):
        raise ValueError(text)
    return text


_READERS = {
    "float": lambda data: float_from_json(data["value"], "A label"),
    "numpy": _read_numpy,
    "timestamp": _read_timestamp,
    "datetime": _read_datetime,
    "date": lambda data: dt.date.fromisoformat(data["value"]),
    "interval": _read_interval,
}
