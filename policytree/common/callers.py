"""Where a warning belongs: at the line outside of the package that made the call."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1]) + os.sep


def stacklevel_outside() -> int:
    """The ``stacklevel`` of :func:`warnings.warn` that names the nearest line outside, however many decorators wrap."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return max(level, 1)
