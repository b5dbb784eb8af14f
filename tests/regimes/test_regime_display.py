"""Picture of a regime: all stages in order, who is eligible, one colour for one treatment."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree
from policytree.exceptions import InputError
from policytree.plotting.regimes import RegimeDisplay
from policytree.regimes import Stage, TreatmentRegime
from policytree.regimes.checking import check_stages
from policytree.regimes.eligibility import eligibility
from tests.support.regimes import smart


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    return smart()


@pytest.fixture(scope="module")
def regime(stages) -> TreatmentRegime:
    return TreatmentRegime(DRPolicyTree(LinearRegression(), max_depth=1, cv=2), random_state=0).fit(stages)


def test_stages_stand_in_order_and_say_who_is_eligible(regime, stages):
    display = regime.plot(title="First and second line", stages=stages)
    assert list(display.boxes_) == ["stage 1", "second line"]
    ends = [{name: box.get_position()[1] for name, box in boxes.items()} for boxes in display.boxes_.values()]
    assert min(ends[0].values()) > max(ends[1].values())
    texts = [text.get_text() for text in display.ax_.texts]
    n = int(stages[1].T.notna().sum())
    assert "stage 1: all 240 people" in texts
    assert f"second line: given outcome (stage 1) = 0, {n} of 240 people" in " ".join(texts).replace("\n", " ")
    assert display.ax_.get_title() == "First and second line"


def test_nothing_is_cut_or_covered(regime, stages):
    figure = regime.plot(stages=stages, given={"second line": "no response by week 8, as two raters saw it"}).figure_
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 for box in boxes)
    headings = [text for text in figure.axes[0].texts if text.get_fontweight() == "bold"]
    for heading in headings:
        own = heading.get_window_extent(renderer)
        assert not any(own.overlaps(box) for box in boxes if (box.bounds != own.bounds))


def test_a_treatment_has_one_colour_at_all_stages():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    first, second = rng.choice(["A", "B"], 400), rng.choice(["B", "C"], 400)
    gain = np.where(x > 0, 3.0, -3.0)
    table = pd.DataFrame({"x": x})
    stages = [Stage(first, X=table, Y=gain * (first == "B")), Stage(second, X=table, Y=gain * (second == "B"))]
    display = TreatmentRegime(DRPolicyTree(LinearRegression(), max_depth=1, cv=2)).fit(stages).plot()
    seen: dict[str, set] = {}
    for boxes in display.boxes_.values():
        for box in boxes.values():
            label = box.get_text().split("\n")[0]
            if label in "ABC":
                seen.setdefault(label, set()).add(box.get_bbox_patch().get_facecolor())
    assert seen.keys() == {"A", "B", "C"}
    assert all(len(colors) == 1 for colors in seen.values())
    assert len(set.union(*seen.values())) == 3
    _, ax = plt.subplots(figsize=(3, 2))
    assert RegimeDisplay(display.trees).plot(ax=ax, title="small").ax_ is ax


def test_who_is_eligible_is_said_where_one_column_says_it(stages):
    course = check_stages(stages)
    assert [eligibility(course, s) for s in (0, 1)] == ["", "outcome (stage 1) = 0"]
    rng = np.random.default_rng(0)
    arms, x = np.array(["A", "B"] * 60), rng.normal(size=120)

    def at(eligible, table=None) -> str:
        later = Stage(np.roll(np.repeat(["C", "D"], 60), 7), eligible=eligible, Y=x, X=pd.DataFrame({"own": x}))
        first = Stage(arms, X=pd.DataFrame({"x": x, "site": arms} if table is None else table))
        return eligibility(check_stages([first, later]), 1)

    assert at(np.ones(120)) == ""
    assert at(arms == "B") == "treatment (stage 1) = B"
    assert at(x > 0.5).startswith("x ≥ 0.5")
    assert at(rng.random(120) < 0.5) == ""
    assert at(x > 0.5, {"x": np.where(x > 1, np.nan, x)}) == ""  # a gap tells nothing
    third = [replace(stages[0]), stages[1], Stage(arms[rng.integers(0, 120, 240)], Y=np.zeros(240))]
    here = stages[1].T.notna().to_numpy() & (stages[1].T == "switch").to_numpy()
    course = check_stages([*third[:2], replace(third[2], eligible=here)])
    assert eligibility(course, 2) == "treatment (second line) = switch"


def test_what_the_picture_refuses(regime):
    with pytest.raises(InputError, match="given names the stage 'third line'; stages are stage 1, second line"):
        regime.plot(given={"third line": "relapse"})
    with pytest.raises(InputError, match="eligible has 1 texts, but there are 2 stages"):
        RegimeDisplay(regime.trees_, ["everybody"])
