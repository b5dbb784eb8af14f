"""Pictures of sensitivity and stability: they show the numbers of the tables."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from policytree.evaluation import marginal_sensitivity, omitted_variable_bounds
from policytree.evaluation.stability.resamples import Split
from policytree.exceptions import InputError
from tests.evaluation.test_stability import result


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def study(rng):
    T = rng.integers(0, 2, 300)
    return {"Y": T + rng.normal(size=300), "T": T, "propensity": 0.5, "regression": np.tile([0.0, 1.0], (300, 1))}


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_curve_shows_bounds_interval_and_where_they_end(study):
    gammas = np.linspace(1, 7, 7)
    found = marginal_sensitivity(1, **study, baseline=0, gammas=gammas, random_state=0)
    display = found.plot(ylabel="effect")
    assert labels(display.ax_) == ["sharp bounds", "simple bounds", "95% interval of the sharp bounds"]
    lines = {line.get_label(): line for line in display.ax_.lines}
    np.testing.assert_allclose(lines["simple bounds"].get_ydata(), [b.lower for b in found.simple])
    interval = lines["95% interval of the sharp bounds"].get_ydata()
    np.testing.assert_allclose(interval, [b.interval_lower for b in found.sharp])
    assert f"Gamma {found.tipping['sharp'].bounds:.2f}" in [t.get_text() for t in display.ax_.texts]
    assert display.ax_.get_title() == "300 rows, held out" and display.ax_.get_ylabel() == "effect"
    _, ax = plt.subplots()
    assert found.plot(ax=ax, title="mine").ax_ is ax and ax.get_title() == "mine"


def test_rows_that_chose_the_policy_say_so(study):
    policy = np.resize([0, 1, 1], 300)
    found = marginal_sensitivity(policy, study["Y"], study["T"], propensity=0.5, random_state=0)
    display = found.plot()
    assert display.ax_.get_title() == "300 rows, training rows: flattered"
    assert labels(display.ax_) == ["simple bounds"]


def benchmarks(study):
    rng = np.random.default_rng(3)
    less = study["regression"] + rng.normal(scale=0.5, size=(300, 2))
    return {"age": (np.full(300, 0.5) + 0.0, less), "income": (pd.DataFrame({0: 0.4, 1: 0.6}, index=range(300)), less)}


@pytest.mark.parametrize("kind", ["contour", "curve"])
def test_omitted_variables(study, kind):
    found = omitted_variable_bounds(
        1, **study, baseline=0, benchmarks=benchmarks(study), multiples=(1, 2), random_state=0
    )
    display = found.plot(kind=kind)
    display.figure_.canvas.draw()
    if kind == "contour":
        assert labels(display.ax_) == ["1, 2 x age", "1, 2 x income"]
        line = next(line for line in display.ax_.lines if "income" in str(line.get_label()))
        strengths = [found.benchmarks[1].strength(m) for m in (1, 2)]
        np.testing.assert_allclose(np.column_stack([line.get_ydata(), line.get_xdata()]), strengths)
        x, y = display.ax_.get_xlim()[1], display.ax_.get_ylim()[1]
        assert all(cf_d <= x and cf_y <= y for cf_y, cf_d in strengths)
        legend, labelled = display.ax_.get_legend().get_window_extent(), display.ax_.xaxis.label.get_window_extent()
        assert legend.y1 <= labelled.y0 and legend.y0 >= 0  # it hides no line, and stays within the picture
    else:
        assert f"{found.robustness_value:.1%}" in [t.get_text() for t in display.ax_.texts]
    assert display.ax_.get_title() == "policy - baseline, 300 rows, held out"


def test_values_without_a_baseline_and_without_benchmarks_can_be_drawn(study):
    found = omitted_variable_bounds(1, **study, random_state=0)
    for kind in ("contour", "curve"):
        found.plot(kind=kind, largest=0.2).figure_.canvas.draw()
    with pytest.raises(InputError, match="kind must be 'contour' or 'curve'"):
        found.plot(kind="pie")
    with pytest.raises(InputError, match="largest must lie between 0 and 1"):
        found.plot(largest=1.5)


def test_the_heat_map_shows_shares(rng):
    splits = ((Split("x", 0, 2.5), Split("town", 1, np.nan, "Rome")), (Split("x", 0, 9.5),), (Split("x", 0, np.inf),))
    found = result(
        rng.integers(0, 3, (3, 20)), splits=splits,
        covariates={"x": np.arange(1.0, 11.0), "town": np.empty(0), "unused": np.arange(4.0)},
    )  # fmt: skip
    display = found.plot(title="mine")
    left, right = display.axes_
    assert [t.get_text() for t in left.get_yticklabels()] == ["x (100%)", "town (33%)"]
    texts = [t.get_text() for t in left.texts]
    assert texts.count("33%") == 2 and "Rome\n33%" in texts and "is known\n33%" in texts
    assert [t.get_text() for t in right.get_yticklabels()] == ["a", "b", "c"]
    image = right.images[0].get_array()
    assert image.shape == (3, 20)
    np.testing.assert_allclose(image.sum(axis=0), 1.0)
    np.testing.assert_allclose(np.sort(image.mean(axis=1)), np.sort(found.arm_shares().mean()))
    assert display.figure_.get_suptitle() == "mine"
    with pytest.raises(InputError, match="n_covariates must be"):
        found.plot(n_covariates=0)


def test_long_names_are_cut_and_have_room(rng):
    name = "systolic blood pressure at the first visit after discharge"
    splits = tuple((Split(name, 0, x), Split("town", 1, np.nan, "the " * 20 + "sea")) for x in (2.5, 7.5, 9.5))
    covariates = {name: np.arange(1.0, 11.0), "town": np.empty(0)}
    display = result(rng.integers(0, 3, (3, 20)), splits=splits, covariates=covariates).plot()
    display.figure_.canvas.draw()
    left = display.axes_[0]
    assert left.get_yticklabels()[0].get_text() == "systolic blood pressure at … (100%)"
    assert max(len(text.get_text().split("\n")[0]) for text in left.texts) < 12
    assert left.get_position().width * display.figure_.get_figwidth() > 3.0


def test_learners_without_trees_have_people_only(rng):
    display = result(rng.integers(0, 2, (3, 20))).plot(unit="visits")
    assert len(display.axes_) == 1
    assert display.axes_[0].get_xlabel() == "20 visits, sorted"
