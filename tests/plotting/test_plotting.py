"""Pictures: nothing overlaps, nothing is cut off, whatever the shape of the tree."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, leaf_summary
from policytree.exceptions import InputError
from policytree.plotting.values import PolicyValueDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _model(seed, depth, arms=3, names=("a", "b")):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((300, len(names))), columns=list(names))
    rewards = pd.DataFrame(rng.standard_normal((300, arms)), columns=[f"treatment {k}" * (1 + k) for k in range(arms)])
    return X, rewards, PolicyTree(max_depth=depth).fit(X, rewards)


def _extents(display):
    display.figure_.canvas.draw()
    return {node: text.get_bbox_patch().get_window_extent() for node, text in display.boxes_.items()}


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("names", [("a", "b"), ("a very long name of a feature that must be wrapped", "b")])
def test_boxes_neither_overlap_nor_leave_the_figure(depth, names):
    _, _, model = _model(depth, depth, names=names)
    display = model.plot()
    boxes = _extents(display)
    figure = display.figure_.bbox
    for node, box in boxes.items():
        assert figure.x0 <= box.x0 and box.x1 <= figure.x1 and figure.y0 <= box.y0 and box.y1 <= figure.y1
        assert not any(box.overlaps(other) for k, other in boxes.items() if k != node)


def test_text_shrinks_into_given_axes():
    _, _, model = _model(1, 3)
    _, ax = plt.subplots(figsize=(6, 4))
    display = model.plot(ax=ax)
    assert display.ax_ is ax
    boxes = list(_extents(display).values())
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_leaves_show_held_out_value_gain_and_second_best_arm():
    X, rewards, model = _model(2, 2)
    summary = leaf_summary(model, X, rewards, held_out=True)
    display = model.plot(leaf_summary=summary, title="A title")
    leaf = int(np.flatnonzero(model.tree_.is_leaf)[0])
    text = display.boxes_[leaf].get_text()
    arm = model.tree_.actions[model.tree_.action[leaf]]
    shown = [float(number) for number in re.findall(r"-?\d+\.\d+", text)]
    numbers = [summary.loc[leaf, (name, arm)] for name in ("value", "lower", "upper")]
    numbers += [summary.loc[leaf, ("gain_over_best", name)] for name in ("value", "lower", "upper")]
    assert shown == pytest.approx(numbers, abs=0.006)
    assert f"second best: {summary.loc[leaf, ('second_best', '')]}" in " ".join(text.split())
    assert "training rows" not in text
    assert display.ax_.get_title() == "A title"


def test_values_of_the_rows_that_chose_the_tree_say_so():
    """Wherever they come from: the estimator itself, or a summary that was not said to be held out."""
    X, rewards, model = _model(2, 2)
    leaves = np.flatnonzero(model.tree_.is_leaf)
    for display in (model.plot(), model.plot(leaf_summary=leaf_summary(model, X, rewards))):
        assert all("value" in (text := display.boxes_[k].get_text()) and "(training rows)" in text for k in leaves)
    assert all("value" not in model.tree_.plot().boxes_[k].get_text() for k in leaves)


def test_a_long_title_is_broken_and_stays_in_the_figure():
    _, _, model = _model(2, 1)
    title = "Use always b: " + "on held-out people the tree is not shown better than the best single treatment " * 3
    display = model.plot(title=title)
    display.figure_.canvas.draw()
    drawn, figure = display.ax_.title.get_window_extent(), display.figure_.bbox
    assert figure.x0 <= drawn.x0 and drawn.x1 <= figure.x1 and drawn.y1 <= figure.y1
    assert not any(drawn.overlaps(box) for box in _extents(display).values())


def test_the_number_in_a_leaf_can_be_named():
    _, _, model = _model(2, 1)
    texts = [box.get_text() for box in model.plot(value_name="share of weight", unit="trees").boxes_.values()]
    leaves = [text for text in texts if "trees" in text]
    assert len(leaves) == model.get_n_leaves()
    assert all("\nshare of weight " in text and "value" not in text for text in leaves)


@pytest.mark.parametrize(
    ("unit", "one"),
    [("people", "1 person"), ("men", "1 man"), ("person-years", "1 person-year"), ("sheep", "1 sheep")],
)
def test_one_is_not_many(unit, one):
    X = np.array([[0.0], [1.0], [1.0]])
    tree = PolicyTree(max_depth=1).fit(X, np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    text = " ".join(box.get_text() for box in tree.plot(unit=unit).boxes_.values())
    assert f"{one} (33%)" in text and f"2 {unit} (67%)" in text
    assert "1 row, 33.3%" in tree.export_graphviz() and "2 rows, 66.7%" in tree.export_graphviz()


def test_a_small_share_is_not_nothing():
    X = np.arange(1_000.0)[:, None]
    tree = PolicyTree(max_depth=1).fit(X, np.column_stack([X[:, 0] < 4.0, X[:, 0] >= 4.0]).astype(float))
    texts = [box.get_text() for box in tree.plot().boxes_.values()]
    assert "0\n4 people (<1%)\nvalue 1.00\n(training rows)" in texts
    assert "1\n996 people (>99%)\nvalue 1.00\n(training rows)" in texts


def test_an_unknown_arm_in_the_colours_is_named():
    _, _, model = _model(3, 1)
    with pytest.raises(InputError, match="purple arm"):
        model.plot(treatment_colors={"purple arm": "purple"})


def test_names_with_dollars_are_names_not_mathematics():
    _, _, model = _model(4, 2, names=("$\\bad$ name", "b$2$"))
    assert _extents(model.plot())


@pytest.mark.parametrize("differences", [False, True])
def test_values_are_drawn_with_their_intervals(differences):
    columns = ["value", "lower", "upper", "difference", "difference_lower", "difference_upper"]
    rows = [[3.0, 2.0, 4.0, np.nan, np.nan, np.nan], [1.0, 0.5, 1.5, 2.0, 1.2, 2.8]]
    frame = pd.DataFrame(rows, index=["policy tree", "always a"], columns=columns)
    display = PolicyValueDisplay(frame).plot(differences=differences, title="T")
    lines, points = display.ax_.collections[:2]
    drawn = {tuple(segment[:, 0]) for segment in lines.get_segments()}
    assert drawn == ({(1.2, 2.8)} if differences else {(2.0, 4.0), (0.5, 1.5)})
    assert points.get_offsets()[-1, 0] == (2.0 if differences else 3.0)
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert labels == (["tree - always a"] if differences else ["always a", "policy tree"])


def test_what_stands_under_a_small_tree_is_inside_the_picture():
    """One leaf is narrow; the arms that nobody gets, and long names, are not cut at the picture's edge."""
    arms = ["drug A, twice a day", "drug B (high dose)", "placebo", "watchful waiting"]
    tree = PolicyTree(max_depth=0).fit(np.zeros((5, 1)), pd.DataFrame(np.eye(4)[[0] * 5], columns=arms))
    figure = tree.plot().figure_
    legend = figure.legends[0]
    assert all(arm in legend.get_title().get_text() for arm in arms[1:])
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for text in (legend.get_title(), *legend.get_texts()):
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.width
    assert legend.get_window_extent(renderer).y1 <= figure.axes[0].get_window_extent(renderer).y0 + 1
