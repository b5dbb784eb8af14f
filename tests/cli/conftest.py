"""A trial as a file, and one whole run of ``policytree design``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import design, trial


@pytest.fixture
def csv(tmp_path) -> Path:
    path = tmp_path / "trial.csv"
    trial().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def designed(tmp_path_factory):
    """One whole run, shared by the tests that look at it."""
    folder = tmp_path_factory.mktemp("designed")
    trial().to_csv(folder / "trial.csv", index=False)
    code, out, err = design(
        folder / "trial.csv", folder / "out", "--cluster", "clinic", "--propensity", "0.5", "--max-depth", "1",
        "--cv", "2", "--stability", "4",
    )  # fmt: skip
    assert code == 0, err
    return folder, out, err
