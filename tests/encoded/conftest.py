"""Fixtures of the tests of encoded rows."""

from __future__ import annotations

import pandas as pd
import pytest

from policytree.encoded import solve, tally


@pytest.fixture
def small(monkeypatch):
    """Sizes at which small tables are large ones: few values are counted one by one, nothing is solved in memory."""
    monkeypatch.setattr(tally, "MOST_VALUES", 30)
    monkeypatch.setattr(tally, "MOST_COLLECTED", 40)
    monkeypatch.setattr(tally, "EDGES", 16)
    monkeypatch.setattr(tally, "SAMPLE", 8)
    monkeypatch.setattr(solve, "FEW_ROWS", 0)
    return monkeypatch


@pytest.fixture
def rows(rng):
    """60 rows with a number, text and two rewards."""
    x = rng.normal(size=60).round(1)
    return pd.DataFrame(
        {"x": x, "town": rng.choice(["Bonn", "Oslo"], 60), "a": rng.normal(size=60), "b": (x > 0.2) - 0.4}
    )
