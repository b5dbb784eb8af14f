"""The R package in `r/`: installed, and its own tests run, where R, reticulate and testthat are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases import policy

ROOT = Path(__file__).parents[2]
NEEDED = ("reticulate", "testthat")
INSTALLED = f"quit(status = !all(sapply({NEEDED!r}, requireNamespace, quietly = TRUE)))".replace("('", "c('", 1)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """A folder with the package installed."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    if subprocess.run(["Rscript", "-e", INSTALLED], capture_output=True, check=False).returncode:
        pytest.skip(f"R's packages {' and '.join(NEEDED)} are not installed")
    folder = tmp_path_factory.mktemp("library")
    install = ["R", "CMD", "INSTALL", f"--library={folder}", ROOT / "r"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_packages_own_tests(library, tmp_path):
    case = tmp_path / "case.csv"
    arrays = policy(tmp_path, 1_000, 5, 2, "continuous")
    names = ",".join([f"X{j}" for j in range(5)] + ["a", "b"])
    np.savetxt(case, np.column_stack([arrays.X, -arrays.losses]), delimiter=",", header=names, comments="", fmt="%.17g")
    environment = os.environ | {
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "R_LIBS": str(library),
        "POLICYTREE_CASE": str(case),
    }
    run = (
        "library(policytreepy); "
        f"testthat::test_dir('{ROOT / 'r' / 'tests' / 'testthat'}', reporter = 'summary', stop_on_failure = TRUE)"
    )
    done = subprocess.run(["Rscript", "-e", run], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Skipped" not in done.stdout, done.stdout


def test_the_version_is_pythons():
    import policytree

    description = (ROOT / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    assert f"Version: {policytree.__version__}\n" in description
