"""Curves of events as pictures: what they show is what was estimated, and everything stays in the figure."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from policytree import Study
from policytree.exceptions import InputError
from policytree.plotting.survival import KaplanMeierDisplay
from policytree.study import TimeToEvent
from policytree.weighting.time_to_event.product_limit import product_limit


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def follow_up(n=200, seed=0):
    """A small dirty study: times that tie, a rare arm, an arm with hostile letters."""
    rng = np.random.default_rng(seed)
    T = rng.choice(["none", "$\\frac{}$", "a very long name of a treatment that does not fit anywhere at all"], n,
                   p=[0.6, 0.35, 0.05])  # fmt: skip
    return np.ceil(rng.exponential(100, n)), (rng.uniform(size=n) < 0.6).astype(int), T


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_lines_are_the_curves_and_numbers_are_at_risk():
    time, event, T = follow_up()
    display = KaplanMeierDisplay.from_data(time, event, T, horizon=120, xlabel="days")
    assert display.ax_.get_xlabel() == "days" and len(display.lines_) == 3
    for label, line in zip(sorted(set(T)), display.lines_, strict=True):
        own = label == T
        known = product_limit(time[own], event[own] == 1)
        x, y = line.get_xdata(), line.get_ydata()
        assert np.allclose(y, known.at(x), atol=1e-12) and line.get_drawstyle() == "steps-post"
        for at in (0, 30, 60, 90, 120):
            assert f"{(time[own] >= at).sum():,}" in texts(display.ax_)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "30", "60", "90", "120"]
    assert "horizon " in texts(display.ax_) and "number at risk" in texts(display.ax_)
    looks = {(str(line.get_linestyle()), str(line._dash_pattern)) for line in display.lines_}
    assert len(looks) == 3, "told apart without colours"


def test_nothing_leaves_the_figure():
    time, event, T = follow_up()
    display = KaplanMeierDisplay.from_data(time, event, T, horizon=120, title="Time to relapse")
    display.figure_.canvas.draw()
    whole = display.figure_.bbox
    for text in [*display.ax_.texts, display.ax_.title, display.ax_.xaxis.label, display.ax_.yaxis.label]:
        box = text.get_window_extent()
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1, text.get_text()


def test_bands_are_the_pointwise_intervals_and_can_be_left_out():
    time, event, _ = follow_up()
    arm = np.arange(200) % 2
    display = KaplanMeierDisplay.from_data(time, event, arm)
    bands = display.ax_.collections
    assert len(bands) == 2
    curve = display.curves[0].curve
    low = bands[0].get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx(np.nanmin(curve.lower))
    assert len(display.plot(intervals=False).ax_.collections) == 0
    assert len(KaplanMeierDisplay.from_data(*follow_up()).ax_.collections) > 2, "at a few times, of three curves"


def test_one_curve_of_everybody_and_axes_of_ones_own():
    time, event, _ = follow_up()
    _, ax = plt.subplots()
    display = KaplanMeierDisplay.from_data(pd.Series(time, name="days"), event, ax=ax)
    assert display.ax_ is ax and [curve.name for curve in display.curves] == ["everybody"]
    assert display.curves[0].at_risk[0] == 200
    legend = display.plot(numbers_at_risk=False).ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["everybody"]


def test_causes_add_up_to_who_had_any_event():
    time, event, _ = follow_up()
    cause = np.where(event == 1, 1 + np.arange(200) % 2, 0)
    one, two = (KaplanMeierDisplay.from_data(time, cause, cause=c) for c in (1, 2))
    assert one.ax_.get_ylabel() == "share with an event of the cause"
    known = product_limit(time, event == 1)
    total = one.curves[0].curve.share[-1] + two.curves[0].curve.share[-1]
    assert total == pytest.approx(1 - known.survival[-1], abs=1e-12)
    field = np.array(list(zip(event == 1, time, strict=True)), dtype=[("event", bool), ("time", float)])
    assert KaplanMeierDisplay.from_data(field).curves[0].at_risk[0] == 200


def test_what_cannot_be_drawn_is_refused_in_a_sentence():
    time, event, T = follow_up()
    with pytest.raises(InputError, match="event is missing; pass 1 where"):
        KaplanMeierDisplay.from_data(time)
    with pytest.raises(InputError, match=r"must be 1 \(the event was seen\) or 0"):
        KaplanMeierDisplay.from_data(time, event + 1)
    with pytest.raises(InputError, match="horizon must be a time greater than 0; got -3"):
        KaplanMeierDisplay.from_data(time, event, horizon=-3)
    with pytest.raises(InputError, match="T has 199 rows"):
        KaplanMeierDisplay.from_data(time, event, T[1:])
    with pytest.raises(InputError, match="negative times"):
        KaplanMeierDisplay.from_data(-time, event)
    with pytest.raises(InputError, match="time has no rows"):
        KaplanMeierDisplay.from_data([], [])


def test_times_that_are_all_zero_need_a_horizon():
    time, event, T = np.zeros(30), np.arange(30) % 2, np.repeat(["a", "b"], 15)
    with pytest.raises(InputError, match="time is 0 in all rows, so that curves have no length"):
        KaplanMeierDisplay.from_data(time, event, T)
    drawn = KaplanMeierDisplay.from_data(time, event, T, horizon=2.0)
    assert [curve.curve.share[0] for curve in drawn.curves] == pytest.approx([8 / 15, 7 / 15])


def test_a_study_draws_its_curves():
    time, event, T = follow_up()
    table = pd.DataFrame({"days": time, "died": event.astype(int), "arm": T, "age": np.arange(len(time)) % 50})
    outcome = TimeToEvent("days", event="died", horizon=120)
    study = Study(table, treatment="arm", outcome=outcome, direction="maximize", unit="days")
    display = study.plot_survival(level=0.9)
    by_hand = KaplanMeierDisplay.from_data(time, event, T, horizon=120, level=0.9)
    assert display.ax_.get_xlabel() == "days" and study.plot_survival(xlabel="time").ax_.get_xlabel() == "time"
    for found, expected in zip(display.curves, by_hand.curves, strict=True):
        assert found.name == expected.name
        np.testing.assert_array_equal(found.at_risk, expected.at_risk)
        np.testing.assert_array_equal(found.curve.lower, expected.curve.lower)
    with pytest.raises(InputError, match="The outcome is 'age', no time to an event"):
        Study(table, treatment="arm", outcome="age", direction="maximize", covariates=["days"]).plot_survival()
