"""Trees for print: a journal's width, text that can be read, whole words, nothing over anything else."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree
from policytree.evaluation.leaves.summary import LeafValue
from policytree.exceptions import InputError
from policytree.plotting.common import wrapped
from policytree.plotting.trees import PolicyTreeDisplay

LONG = ["number_of_previous_hospital_admissions", "estimated_glomerular_filtration_rate", "age at enrolment in years"]
ARMS = ["Cognitive behavioural therapy", "Treatment as usual"]


def full_tree(depth: int):
    """A tree with all leaves that a depth allows, names as people have them, and intervals in its leaves."""
    rng = np.random.default_rng(depth)
    X = pd.DataFrame(rng.integers(0, 40, (400, 3)), columns=LONG)
    rewards = pd.DataFrame(rng.normal(size=(400, 2)), columns=ARMS)
    tree = PolicyTree(max_depth=depth, regularization=0.0, min_samples_leaf=5).fit(X, rewards).tree_
    leaves = np.flatnonzero(tree.is_leaf).tolist()
    assert len(leaves) == 2**depth
    return tree, {leaf: LeafValue(0.123, -0.046, 0.291, "held out") for leaf in leaves}


def drawn(depth: int, width):
    tree, values = full_tree(depth)
    return PolicyTreeDisplay(tree, values, {max(values): "uncertain"}).plot(width=width, title="Who gets therapy")


@pytest.mark.parametrize(("depth", "width"), [(1, "column"), (2, "page"), (3, "page"), (4, "page"), (2, "column")])
def test_a_printed_tree_has_the_width_of_its_place_and_text_of_7_points(depth, width):
    display = drawn(depth, width)
    figure = display.figure_
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    assert figure.get_figwidth() == pytest.approx({"column": 3.5, "page": 7.0}[width])
    assert figure.get_figheight() < 11.69 - 1.0, "an A4 page"
    texts = [text for text in display.ax_.texts if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 7.0

    boxes = {node: text.get_bbox_patch().get_window_extent(renderer) for node, text in display.boxes_.items()}
    for (_, one), (_, other) in itertools.combinations(boxes.items(), 2):
        assert not one.overlaps(other)
    whole = figure.bbox
    for box in boxes.values():
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
    plt.close(figure)


@pytest.mark.parametrize("width", ["column", "page"])
def test_no_word_is_broken_but_behind_its_marks(width):
    display = drawn(2, width)
    whole = {part for name in (*LONG, *ARMS) for part in name.replace("_", "_ ").split()}
    pieces = {word for text in display.boxes_.values() for word in text.get_text().replace("_", "_ ").split()}
    assert "admissions" in pieces | whole and "behavioural" in pieces
    broken = {
        piece for piece in pieces if piece not in whole and any(piece in word for word in whole if len(piece) > 3)
    }
    assert not broken
    plt.close(display.figure_)


def test_a_tree_too_large_for_its_place_says_so():
    tree, values = full_tree(4)
    with pytest.raises(InputError, match=r"At 7 points the tree takes .* inches, and there are 3.5 x 9.5"):
        PolicyTreeDisplay(tree, values).plot(width="column")
    with pytest.raises(InputError, match="width must be 'column', 'page' or a number of inches; got 'wide'"):
        PolicyTreeDisplay(tree).plot(width="wide")
    with pytest.raises(InputError, match="width must lie between 1 and 150"):
        PolicyTreeDisplay(tree).plot(width=0.2)
    figure, ax = plt.subplots()
    with pytest.raises(InputError, match="leave it out, or ax"):
        PolicyTreeDisplay(tree).plot(width="page", ax=ax)
    plt.close(figure)


def test_a_number_stays_beside_its_name():
    assert wrapped("got: drug\u00a0302, placebo\u00a0334").splitlines() == ["got: drug\u00a0302,", "placebo\u00a0334"]
    long = "usual\u00a0care\u00a0and\u00a0counselling\u00a0302"
    assert "".join(wrapped(long).splitlines()) == long, "broken where it is too long, and never cut short"
