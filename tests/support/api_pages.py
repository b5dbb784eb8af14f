"""Names listed by the pages of the API."""

from __future__ import annotations

import re
from pathlib import Path

import policytree
from policytree.common.lazy import homes_in

#: Packages and modules whose ``__all__`` is public: the one at the top, and those that its stub lists.
HOMES = ["policytree"] + [
    f"policytree.{name}"
    for name, home in sorted(homes_in(Path(policytree.__file__).with_suffix(".pyi")).items())
    if home == "policytree"
]
PAGES = Path(policytree.__file__).parents[1] / "docs" / "api"


def listed() -> set[tuple[str, str]]:
    """Module and name of everything that the pages of the API list or describe themselves."""
    found = set()
    for page in PAGES.glob("*.rst"):
        module, within = "policytree", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. "):
                within = line.startswith(".. autosummary::")
                module = line.split()[-1] if "currentmodule" in line else module
                if line.startswith(".. data:: "):
                    found.add((module, line.split()[-1]))
            elif within and re.fullmatch(r"   \w+", line):
                found.add((module, line.strip()))
    return found
