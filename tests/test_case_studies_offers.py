"""The case study of offers: how its file is read, and what one more result costs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree import InputError

STUDY = Path(policytree.__file__).parents[1] / "case_studies" / "thornton_hiv" / "study.py"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("case_studies_thornton_hiv", STUDY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample() -> pd.DataFrame:
    """Rows as the file has them: amounts in dollars as single-precision numbers, gaps, people without an offer."""
    return pd.DataFrame({
        "villnum": [1.0, 1.0, 2.0, 2.0, np.nan, 3.0, 3.0],
        "got": [0.0, 1.0, 1.0, 0.0, 1.0, np.nan, 1.0],
        "distvct": np.float32([0.5, 1.5, 2.5, 3.5, 1.0, 1.0, 4.0]),
        "tinc": np.float32([0.0, 0.9456, 1.8912, 2.8368, 0.9456, np.nan, 1.03]),
        "age": [20.0, np.nan, 40.0, 50.0, 60.0, 30.0, 33.0],
        "hiv2004": [0.0, 0.0, 1.0, -1.0, 0.0, np.nan, 0.0],
    })  # fmt: skip


def test_amounts_become_offers_and_rows_without_one_are_left_out(study):
    frame = study.usable(sample())
    assert frame["offer"].tolist() == ["none", "up to $1", "up to $2", "up to $3", "up to $2"]
    assert frame["paid"].tolist() == pytest.approx([0.0, 0.9456, 1.8912, 0.0, 1.03], abs=1e-6)  # to those who came
    assert frame["village"].tolist() == [1, 1, 2, 2, 3] and frame["age"].isna().sum() == 1
    assert study.net(frame, 3.0).tolist() == pytest.approx([0.0, 2.0544, 1.1088, 0.0, 1.97], abs=1e-6)
    assert list(study.OFFERS) == sorted(study.OFFERS)


def test_the_file_gives_the_published_shares(study):
    """Thornton (2008), American Economic Review 98(5): a third without money, four in five with some."""
    pytest.importorskip("causaldata")
    frame = study.people()
    assert len(frame) == 2_830 and frame["village"].nunique() == 119
    some = frame["offer"] != "none"
    assert frame["learnt"][~some].mean() == pytest.approx(0.34, abs=0.005)
    assert frame["learnt"][some].mean() == pytest.approx(0.79, abs=0.005)


def test_without_the_package_one_sentence_says_what_to_install(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "causaldata", None)
    with pytest.raises(InputError, match="pip install causaldata"):
        study.people()
