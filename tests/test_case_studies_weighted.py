"""The study of weighted trees: what its parts compute, apart from running (tests/test_case_studies.py runs it)."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import policytree
from policytree import InputError

STUDIES = Path(policytree.__file__).parents[1] / "case_studies"


@pytest.fixture(scope="module")
def part():
    """Import a module of the study as the command does."""
    sys.path.insert(0, str(STUDIES))
    try:
        yield lambda name: importlib.import_module(f"weighted_trees.{name}")
    finally:
        sys.path.remove(str(STUDIES))


def small_problem(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 3)).astype(float)
    y = ((X[:, 0] > 2) ^ (X[:, 1] > 1) ^ (rng.random(n) < 0.1)).astype(int)
    return X, y, rng.integers(1, 4, n).astype(float)


def test_a_missing_file_is_one_sentence_with_its_source(part, tmp_path):
    with pytest.raises(InputError, match=r"^compas\.csv\.gz is not in .* nor its folder classification; get it from"):
        part("data").table("compas", tmp_path)


def test_tables_are_found_beside_or_in_the_folder(part, tmp_path):
    (tmp_path / "classification").mkdir()
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 3], "target": [0, 1, 1]})
    frame.to_csv(tmp_path / "classification" / "compas.csv.gz", index=False)
    X, y = part("data").table("compas", tmp_path)
    assert X["a"].tolist() == [1.0, 2.0, 3.0] and y.tolist() == [0, 1, 1]


def test_binary_columns_are_the_guessed_cuts(part):
    X = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]])
    columns = part("data").binary(X, (np.array([1.5, 2.5]), np.array([])))
    assert columns.tolist() == [[False, False], [True, False], [True, True]]


@pytest.mark.parametrize("method", ["direct", "duplication", "direct, rows repeated"])
def test_every_way_of_taking_whole_weights_has_the_same_errors(part, method):
    X, y, _ = small_problem()
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    fig1 = part("duplication_time")
    found = {name: fig1.ours(name, X, y, weight, copies)["errors"] for name in (method, "direct")}
    assert found[method] == found["direct"]


def test_dl85_agrees_with_ours_on_repeated_rows_and_any_labels(part):
    pytest.importorskip("pydl85")
    from policytree import OptimalTreeClassifier

    X, y, weight = small_problem()
    columns = part("data").binary(X, [np.arange(4) + 0.5] * 3)
    labels = np.where(y == 1, 7, 3)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    peers = part("peers")
    [answer] = peers.run([peers.Fit("DL8.5", columns, labels, 2, 5, rows=copies, X_test=columns[:4])])
    ours = OptimalTreeClassifier(0.0, 2).fit(X, labels, sample_weight=weight)
    assert answer.proved and answer.held_out.tolist() == answer.predicted[:4].tolist()
    assert weight[answer.predicted != labels].sum() == pytest.approx(weight[ours.predict(X) != labels].sum())


def test_gosdt_is_scored_by_its_tree(part):
    pytest.importorskip("gosdt")
    from policytree import OptimalTreeClassifier

    X, y, _ = small_problem()
    columns = part("data").binary(X, [np.arange(4) + 0.5] * 3)
    peers = part("peers")
    [answer] = peers.run([peers.Fit("gosdt", columns, y, 3, 10, penalty=0.02)])
    ours = OptimalTreeClassifier(0.02, 3).fit(X, y)
    objective = np.mean(answer.predicted != y) + 0.02 * answer.n_leaves
    assert answer.proved and objective == pytest.approx(ours.objective_value_)


def test_a_peer_that_dies_is_reported_and_the_next_fit_is_made(part):
    pytest.importorskip("pydl85")
    X, y, _ = small_problem()
    peers = part("peers")
    broken = peers.Fit("DL8.5", X > 2, y, 2, 5, rows=np.array([len(y)]))  # no such row: its process ends by an error
    good = peers.Fit("DL8.5", X > 2, y, 2, 5)
    first, second = peers.run([broken, good])
    assert first.predicted is None and first.failure
    assert second.proved and second.failure == ""


def test_ratios_of_the_large_table_are_against_direct(part):
    people = part("sizes").people
    X, outcomes, noise = people(500, seed=1)
    assert X.shape == (500, 10) and outcomes.shape == (500, 2) and (outcomes.min(), noise.min()) > (-1.0, 0.0)
    again = people(500, seed=1)
    assert np.array_equal(X, again[0]) and np.array_equal(outcomes, again[1])
