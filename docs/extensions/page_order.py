"""Thumbnails stand in the order of the index beside them."""

from __future__ import annotations

import re
from pathlib import Path


def place(script: str) -> tuple[str, int]:
    """Room of a script, and its place in that room's index; scripts that no index names come last."""
    path = Path(script)
    index = path.with_name("index.rst")
    entries = re.findall(r"^   ([a-z_]+)$", index.read_text(encoding="utf-8"), re.MULTILINE) if index.is_file() else []
    return path.parent.name, entries.index(path.stem) if path.stem in entries else len(entries)
