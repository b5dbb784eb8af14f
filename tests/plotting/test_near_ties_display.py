"""Picture of near-ties: shares as bars, people sorted, how many trees and decisions there are."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.evaluation import near_ties
from policytree.exceptions import InputError


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def rows(rng):
    X = pd.DataFrame({"age $ in years": rng.integers(20, 40, 150), "score": rng.normal(size=150)})
    return X, np.where((X["score"] > 0) ^ (rng.random(150) < 0.2), "yes", "no")


def test_bars_and_people(rows):
    ties = near_ties(OptimalTreeClassifier(regularization=0.01, max_depth=2), *rows, epsilon=0.1)
    display = ties.plot(title="A study", unit="loans")
    columns, people = display.axes_
    shares = ties.variables()
    shares = shares[shares["trees"] > 0]
    widths = [[bar.get_width() for bar in bars] for bars in columns.containers]
    assert widths == [shares["trees"].tolist(), shares["decisions"].tolist()]
    names = [label.get_text() for label in columns.get_yticklabels()]
    assert names == [f"{name} *" if best else name for name, best in shares["best"].items()]
    image = people.images[0].get_array()
    assert image.shape == (2, 150)
    assert (np.diff(image[0]) <= 0).all() and np.allclose(image.sum(axis=0), 1.0)
    assert people.get_xlabel() == "150 loans, sorted"
    assert f"{ties.settled_share:.0%} of loans settled" in people.get_title()
    assert columns.get_title() == f"{ties.n_trees:,} near-ties"
    display.figure_.canvas.draw()


def test_several_arms_and_a_short_list(rng):
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    ties = near_ties(PolicyTree(max_depth=2), X, rng.normal(size=(60, 3)), epsilon=0.2, most=5)
    display = ties.plot(n_columns=1)
    assert len(display.axes_[0].get_yticklabels()) == 1
    assert "the best 5 shown" in display.axes_[0].get_title()
    assert display.axes_[1].images[0].get_array().shape == (3, 60)
    with pytest.raises(InputError, match="n_columns"):
        display.plot(n_columns=0)


def test_a_single_leaf():
    ties = near_ties(OptimalTreeClassifier(regularization=0.1, max_depth=2), np.ones((6, 1)), [0, 0, 0, 0, 0, 1])
    display = ties.plot()
    assert display.axes_[1].get_title() == "1 decision: 100% of people settled"
    display.figure_.canvas.draw()


def test_long_names_leave_room(rng):
    """The axes keep most of the figure, whatever columns and treatments are called."""
    name = "a covariate with a name that goes on and on and on and on and on and on"
    X = pd.DataFrame({name: rng.normal(size=60)})
    rewards = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a treatment " * 8, "another one"])
    display = near_ties(PolicyTree(max_depth=1), X, rewards, epsilon=0.2).plot()
    display.figure_.canvas.draw()
    assert display.axes_[0].get_yticklabels()[0].get_text().startswith("a covariate with a name tha…")
    wide = display.figure_.get_figwidth()
    assert min(ax.get_position().width * wide for ax in display.axes_) > 3.0
