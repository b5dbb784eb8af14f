"""Pictures beside the boxes of a tree: short thresholds, legends, maps, forests, diagnostics, notebooks."""

from __future__ import annotations

import itertools
import re
import unicodedata
import warnings
from decimal import Decimal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import Rectangle
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from policytree import (
    BornAgainTree,
    CostSensitiveTreeClassifier,
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
)
from policytree.common.safe_text import visible
from policytree.diagnostics import balance_table
from policytree.exceptions import BalanceWarning, InputError
from policytree.plotting.diagnostics import CovariateBalanceDisplay, OverlapDisplay
from policytree.plotting.partition import partition
from policytree.plotting.svg import to_svg
from policytree.plotting.values import PolicyValueDisplay
from policytree.report.content import Picture
from policytree.report.drawing import DRAWN, draw
from policytree.trees.short_thresholds import shortest_between, with_short_thresholds


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"age": rng.integers(20, 80, 400).astype(float), "income": rng.lognormal(9, 1, 400).round(2)})
    X.loc[::20, "income"] = np.nan
    rewards = pd.DataFrame({"a": np.zeros(400), "b": np.where(X["age"] <= 40, 1.0, -1.0), "c": -9.0})
    rewards["b"] += np.where(X["income"] > 9_000, 2.0, 0.0) * (X["age"] > 40) + 0.1 * rng.normal(size=400)
    return X, rewards


@pytest.fixture(scope="module")
def fitted(table):
    return PolicyTree(max_depth=2).fit(*table)


# Thresholds


def decimals_of(value: float) -> int:
    """Digits behind the point; negative where whole tens, hundreds, ... are meant."""
    return -Decimal(repr(value)).normalize().as_tuple().exponent if value else -99


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.01, 0.99))
def test_no_number_between_two_values_is_shorter(low, width, share):
    high, near = low + width, low + share * width
    if not low <= near < high:
        return
    found = shortest_between(low, high, near)
    assert low <= found < high
    assert decimals_of(found) <= decimals_of(round(near, 12)) or found == near
    fewer = 10.0 ** -(decimals_of(found) - 1)
    if found and fewer < 1e7:
        multiple = np.ceil(low / fewer) * fewer
        assert not (low < multiple * (1 - 1e-12) and multiple * (1 + 1e-12) < high) or multiple == 0.0


def test_short_thresholds_send_every_row_the_same_way(table):
    X, rewards = table
    for depth in (1, 2, 3):
        model = PolicyTree(max_depth=depth).fit(X, rewards)
        encoded = model.encoder_.encode(X)
        short = with_short_thresholds(model.tree_, encoded)
        assert (short.apply(encoded) == model.tree_.apply(encoded)).all()
        assert max(len(repr(t)) for t in short.threshold) <= max(len(repr(t)) for t in model.tree_.threshold)
    text = PolicyTree(max_depth=1).fit(X[["age"]], rewards).plot(X=X[["age"]]).boxes_[0].get_text()
    assert text == "age ≤ 46?"


# Trees


def test_legend_names_the_arms_and_those_that_nobody_gets(fitted):
    display = fitted.plot(treatment_colors={"b": "#123456"})
    legend = display.figure_.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert legend.get_title().get_text() == "nobody gets c"
    display.figure_.canvas.draw()
    drawn = legend.get_window_extent()
    assert not any(drawn.overlaps(box.get_window_extent()) for box in display.boxes_.values())
    assert display.figure_.bbox.y0 <= drawn.y0


def test_boxes_say_where_missing_values_go_if_there_were_any(fitted):
    tree = fitted.tree_
    for node, box in fitted.plot().boxes_.items():
        if tree.is_leaf[node]:
            continue
        name, text = tree.features[tree.feature[node]].name, box.get_text()
        side = "yes" if tree.missing_go_to_left[node] else "no"
        assert (f"(missing → {side})" in text) == (name == "income")


def test_long_titles_are_broken_in_given_axes_too(fitted):
    _, ax = plt.subplots(figsize=(5, 4))
    fitted.plot(ax=ax, title="A title that says more than fits over a picture of this width, " * 3)
    assert len(ax.get_title().splitlines()) > 2


def test_words_on_edges_stand_clear_of_boxes(fitted):
    display = fitted.plot()
    display.figure_.canvas.draw()
    words = [text for text in display.ax_.texts if text.get_text() in ("yes", "no")]
    assert len(words) == 2 * (fitted.get_n_leaves() - 1)
    for word in words:
        assert not any(word.get_window_extent().overlaps(box.get_window_extent()) for box in display.boxes_.values())


def test_notebooks_show_the_tree_and_its_certificate(table, fitted):
    X, rewards = table
    page = fitted._repr_html_()
    assert (
        page.startswith('<div class="policytree" style="overflow-x:auto"><svg')
        and "no tree of depth 2 or less is better" in page
    )
    assert fitted._repr_mimebundle_() == {"text/plain": repr(fitted), "text/html": page}
    assert "optimal" not in PolicyTree()._repr_html_() and "PolicyTree" in PolicyTree()._repr_html_()
    labels = np.where(rewards["b"] > 0, "<b>", "x")
    for model, words in (
        (OptimalTreeClassifier(1, 0.0).fit(X, labels), "1 - accuracy on the rows that chose the tree: flattered"),
        (CostSensitiveTreeClassifier(max_depth=1).fit(X, -rewards), "mean cost on the rows that chose the tree"),
    ):
        assert words in model._repr_html_() and "<b>" not in model._repr_html_()
    born_again = BornAgainTree(OptimalTreeClassifier(1, 0.0).fit(X.dropna(), labels[X["income"].notna()]))
    assert "<svg" not in born_again._repr_html_()


def test_svg_is_safe_whatever_the_names(table):
    X, _ = table
    names = ["a\x00\x1b[0m", "<g onload='x'>", "]]>", "العمر", "\\u{}", "長い"]
    rewards = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 2)), columns=["</svg><script>", "-->&amp;"])
    for name in names:
        model = PolicyTree(max_depth=1).fit(X[["age"]].set_axis([name], axis=1), rewards)
        page = model._repr_html_()
        assert "<script" not in page and "<g onload" not in page and not set(page) & {"\x00", "\x1b"}
        assert page.count("<svg") == page.count("</svg>") == 1


@given(st.text(max_size=40))
def test_visible_text_has_no_hidden_characters(text):
    shown = visible(text)
    assert all(c.isprintable() or c == "\n" or unicodedata.category(c) in ("Zs", "Cn", "Co") for c in shown)
    assert not set(shown) & set("\x00\x07\x1b\x7f\u202a\u202b\u202d\u202e\u2066\u2067\u2028\u2029\ud800")
    assert visible(shown) == shown
    if text.isascii() and text.isprintable():
        assert shown == text


# Maps


def test_a_map_gives_every_point_what_the_tree_gives(table, fitted):
    X, _ = table
    encoded = fitted.encoder_.encode(X)
    data = partition(fitted.tree_, encoded)
    assert data["names"] == ["age", "income"]
    (x0, x1), (y0, y1) = data["x"], data["y"]
    areas = [(f[1] - f[0]) * (f[3] - f[2]) for f in data["fields"]]
    assert sum(areas) == pytest.approx((x1 - x0) * (y1 - y0)) and min(areas) > 0
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(x0, x1, 500), rng.uniform(y0, y1, 500)])
    given_arm = np.array(fitted.tree_.actions)[fitted.tree_.action[fitted.tree_.apply(points)]]
    for (x, y), arm in zip(points, given_arm, strict=True):
        inside = [f[4] for f in data["fields"] if f[0] < x <= f[1] and f[2] < y <= f[3]]
        assert inside == [arm]
    display = fitted.plot_partition(X)
    assert sum(isinstance(p, Rectangle) for p in display.ax_.patches) == fitted.get_n_leaves()


def test_other_trees_have_no_map(table):
    X, rewards = table
    model = PolicyTree(max_depth=1).fit(X, rewards)
    assert partition(model.tree_, model.encoder_.encode(X)) is None
    with pytest.raises(InputError, match="this one asks about income"):
        model.plot_partition(X)


# Forests


def forest(values, **options):
    frame = pd.DataFrame(values, index=["policy tree", "always a"], columns=["value", "lower", "upper"])
    return PolicyValueDisplay(frame, options.pop("direction", None)).plot(**options)


def test_a_forest_says_which_way_is_better_and_keeps_off_its_frame():
    values = [[0.95, 0.9, 1.05], [0.05, -0.04, 0.1]]
    better = {"maximize": "better →", "minimize": "← better", None: "held-out value"}
    for direction, words in better.items():
        display = forest(values, direction=direction)
        assert display.ax_.get_xlabel().splitlines()[-1] == words
        (left, right), (bottom, top) = display.ax_.get_xlim(), display.ax_.get_ylim()
        assert left < -0.04 and right > 1.05 and bottom < 0 and top > 1


def test_a_long_label_is_not_cut_off_under_a_reports_forest():
    unit = "held-out mean visits, face-to-face physician visits a year, by the calendar"
    rows = {"policy tree": [1.0, 0.5, 1.5], "always deductible": [2.0, 1.5, 2.5]}
    figure = DRAWN["values"]({"rows": rows, "direction": "minimize", "limits": None, "xlabel": unit, "strong": None})
    figure.canvas.draw()
    box = figure.axes[0].xaxis.label.get_window_extent(figure.canvas.get_renderer())
    assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
    assert " ".join(figure.axes[0].get_xlabel().split()) == f"{unit} ← better"


def test_rules_are_named_whole_in_a_reports_forest_and_a_telephone_shows_it_whole():
    names = ["policy tree", "always zidovudine + didanosine", "always zidovudine + zalcitabine"]
    rows = {name: [400.0 + k, 390.0 + k, 410.0 + k] for k, name in enumerate(names)}
    data = {"rows": rows, "direction": "maximize", "limits": None, "xlabel": "value", "strong": names[1]}
    figure = DRAWN["values"](data)
    figure.canvas.draw()
    labels = figure.axes[0].get_yticklabels()
    assert [" ".join(label.get_text().split()) for label in labels] == names[::-1]
    boxes = [label.get_window_extent(figure.canvas.get_renderer()) for label in labels]
    assert all(low.y1 < high.y0 for low, high in itertools.pairwise(boxes)), "no name stands on its neighbour"
    least = float(re.search(r"min-width:(\d+)px", draw(Picture("values", data, "alt"), "key"))[1])
    assert least <= 390 - 2 * 16, "of 390 pixels, less the page's margins"


def test_intervals_stay_inside_the_outcomes_range():
    values = [[0.95, 0.9, 1.05], [0.05, -0.04, 0.1]]
    drawn = forest(values, limits=(0.0, 1.0)).ax_.collections[0].get_segments()
    assert sorted(tuple(s[:, 0]) for s in drawn) == [(0.0, 0.1), (0.9, 1.0)]
    beyond = forest([[1.2, 1.1, 1.3], [0.05, -0.04, 0.1]], limits=(0.0, 1.0)).ax_.collections[0].get_segments()
    assert (1.1, 1.3) in {tuple(s[:, 0]) for s in beyond}, "a value outside the range has its own interval"


# Diagnostics


@pytest.fixture(scope="module")
def trial():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"age": rng.normal(size=200), "sex": rng.choice(["f", "m"], 200), "town": rng.choice([*"ABC"], 200)}
    )
    return X, rng.choice(["drug", "none"], 200), rng.normal(size=200)


def test_displays_take_a_policy_tree_and_draw_no_bars_of_known_chances(trial):
    X, T, Y = trial
    known = DRPolicyTree(LinearRegression(), cv=2, random_state=0).fit(Y, T, X=X[["age"]], propensity=0.5)
    display = known.reward_estimator_.plot_overlap(T)
    assert all(not ax.patches for ax in display.axes_) and all(len(ax.lines) == 1 for ax in display.axes_)
    estimated = DRPolicyTree(LinearRegression(), DummyClassifier(strategy="prior"), cv=3, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimated.fit(Y, T, X=X[["age"]])
        propensity = estimated.reward_estimator_.propensity_ * np.linspace(0.6, 1.0, 200)[:, None]
        assert all(len(ax.patches) == 2 for ax in OverlapDisplay(propensity, T).plot().axes_)
    with pytest.raises(NotFittedError):
        RewardEstimator().plot_overlap(T)


def test_overlap_and_balance_fit_a_phone_with_long_names(trial):
    X, T, _ = trial
    T = np.where(T == "drug", "a treatment with a name of many words", "another one with many words")
    X = X.rename(columns={"age": "the age at the first visit in completed years"})
    propensity = np.linspace(0.2, 0.6, 200)
    both = pd.DataFrame(np.column_stack([propensity, 1 - propensity]), columns=np.unique(T))
    overlap = OverlapDisplay(both, T).plot()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BalanceWarning)  # these propensities are none of theirs
        balance = CovariateBalanceDisplay(balance_table(T, X=X, propensity=both)).plot()
    for figure in (overlap.figure_, balance.figure_):
        figure.canvas.draw()
        renderer, page = figure.canvas.get_renderer(), figure.bbox
        for ax in figure.axes:
            box = ax.get_tightbbox(renderer)
            assert page.x0 <= box.x0 and box.x1 <= page.x1, "nothing is cut off"
        least = re.search(r"min-width:(\d+)px", to_svg(figure, "", "x"))[1]
        assert int(least) <= 366, "a phone of 390 pixels less its margins"
    assert balance.ax_.get_legend() is not None, "two kinds of points"
    unweighted = CovariateBalanceDisplay(balance_table(T, X=X)).plot()
    assert unweighted.ax_.get_legend() is None, "one kind of points; a sample of it would look like another point"


def test_balance_shows_one_level_of_a_binary(trial):
    X, T, Y = trial
    model = DRPolicyTree(LinearRegression(), cv=2, random_state=0).fit(Y, T, X=X[["age"]], propensity=0.5)
    display = model.reward_estimator_.plot_balance(T, X)
    names = sorted(tick.get_text() for tick in display.ax_.get_yticklabels())
    assert names == ["age", "sex=f", "town=A", "town=B", "town=C"]
    assert len(display.ax_.collections) == 1, "nothing was weighted where everybody had the same chances"
    left, right = display.ax_.get_xlim()
    drawn = display.ax_.collections[0].get_offsets()[:, 0]
    assert left < drawn.min() and drawn.max() < right


def test_an_svg_closes_its_figure(fitted):
    figure = fitted.plot().figure_
    to_svg(figure, "a tree", "key")
    assert not plt.fignum_exists(figure.number)
