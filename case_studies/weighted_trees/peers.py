"""Other exact solvers, each in a process of its own with limits of time and memory: DL8.5 and gosdt.

As a script it is that process: it reads fits from one file and appends an answer for each to another.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

MODULES = {"DL8.5": "pydl85", "gosdt": "gosdt"}
PACKAGES = {"DL8.5": "pydl8.5", "gosdt": "gosdt"}
MEMORY = 6 * 2**30  # bytes of address space
STARTING = 60.0  # seconds for imports, and for stopping late


@dataclass(frozen=True)
class Fit:
    """One fit of a peer on 0/1 columns.

    Attributes
    ----------
    rows : ndarray or None
        Row numbers, repeated as often as each row stands; None for every row once. Repeating is not timed.
    weight : ndarray or None
        For DL8.5, which takes weights.
    penalty : float
        Price of a leaf as a share of the rows; for gosdt.
    reference : ndarray or None
        A reference model's labels, from which gosdt guesses lower bounds.
    least_leaf : int
        Fewest rows of a leaf, for DL8.5.
    """

    peer: str
    X: np.ndarray
    y: np.ndarray
    depth: int
    time_limit: int
    rows: np.ndarray | None = None
    weight: np.ndarray | None = None
    penalty: float = 0.0
    reference: np.ndarray | None = None
    least_leaf: int = 1
    X_test: np.ndarray | None = None


@dataclass(frozen=True)
class Answer:
    """Answer of a solver; ``predicted`` for the rows of X and ``held_out`` for those of X_test, None without a tree."""

    seconds: float
    proved: bool
    n_leaves: int | None = None
    predicted: np.ndarray | None = None
    held_out: np.ndarray | None = None
    failure: str = ""


def installed(peer: str) -> bool:
    """Whether the peer can be run here."""
    return find_spec(MODULES[peer]) is not None


def run(fits: list[Fit]) -> list[Answer]:
    """Answers to all fits. A peer that dies (of memory, usually) is started anew with the next fit."""
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as folder:
        while len(answers) < len(fits):
            left = fits[len(answers) :]
            answers += _run_until_dead(left, Path(folder))
    return answers


def _run_until_dead(fits: list[Fit], folder: Path) -> list[Answer]:
    asked, told = folder / "fits", folder / "answers"
    asked.write_bytes(pickle.dumps(fits))
    told.write_bytes(b"")
    patience = STARTING + sum(2 * fit.time_limit + 2 for fit in fits)
    try:
        command = [sys.executable, __file__, str(asked), str(told)]
        subprocess.run(command, capture_output=True, check=False, timeout=patience)
        failure = "out of memory or crashed"
    except subprocess.TimeoutExpired:
        failure = "did not stop at its time limit"
    answers = list(_answers(told))
    if len(answers) < len(fits):
        answers.append(Answer(float("nan"), False, failure=failure))
    return answers


def _answers(path: Path) -> Iterator[Answer]:
    with path.open("rb") as file:
        while True:
            try:
                yield Answer(**pickle.load(file))
            except (EOFError, pickle.UnpicklingError):  # the end, or half an answer of a process that died
                return


def fit_dl85(fit: Fit) -> Answer:
    """DL8.5 has no price of a leaf; its answers without a tree are failures."""
    from pydl85 import DL85Classifier

    rows = np.arange(len(fit.y)) if fit.rows is None else fit.rows
    labels, codes = np.unique(fit.y, return_inverse=True)  # it takes labels for positions
    X, y = fit.X[rows].astype(np.int32), codes[rows]
    weight = None if fit.weight is None else fit.weight[rows].tolist()
    model = DL85Classifier(max_depth=fit.depth, min_sup=fit.least_leaf, time_limit=fit.time_limit)
    start = time.process_time()
    model.fit(X, y, sample_weight=weight)
    seconds = time.process_time() - start
    if model.tree_ is None:
        return Answer(seconds, False, failure="no tree within its time limit")
    predicted, test = (
        None if table is None else labels[np.asarray(model.predict(table.astype(np.int32)), dtype=int)]
        for table in (fit.X, fit.X_test)
    )
    return Answer(seconds, not model.timeout_, (model.size_ + 1) // 2, predicted, test)


def fit_gosdt(fit: Fit) -> Answer:
    """Run gosdt; its ``depth_budget`` counts splits on a path, as our ``max_depth`` does."""
    from gosdt import GOSDTClassifier
    from gosdt._libgosdt import Status

    model = GOSDTClassifier(regularization=fit.penalty, depth_budget=fit.depth, time_limit=fit.time_limit)
    start = time.process_time()
    model.fit(fit.X, fit.y, y_ref=fit.reference)
    seconds = time.process_time() - start
    proved = model.result_.status == Status.CONVERGED
    failure = "" if proved else "time limit" if model.result_.status == Status.TIMEOUT else "ended without proof"
    if not model.trees_:
        return Answer(seconds, False, failure="no tree within its time limit")
    root = model.trees_[0].tree
    predicted, leaves = _by_tree(root, fit.X, model.classes_)
    test = None if fit.X_test is None else _by_tree(root, fit.X_test, model.classes_)[0]
    return Answer(seconds, proved, leaves, predicted, test, failure)


def _by_tree(root, X: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, int]:
    """Labels by a tree of gosdt's, whose own predict fails with recent scikit-learn; and its number of leaves."""
    predicted = np.zeros(len(X), dtype=np.intp)
    leaves, todo = 0, [(root, np.arange(len(X)))]
    while todo:
        node, rows = todo.pop()
        if hasattr(node, "prediction"):
            predicted[rows] = classes[node.prediction]
            leaves += 1
            continue
        true = X[rows, node.feature]
        todo += [(node.left_child, rows[true]), (node.right_child, rows[~true])]
    return predicted, leaves


def few(fit: Fit) -> Fit:
    """Return a small fit of the same kind."""
    X, y = np.array([[False], [True]] * 20), np.array([0, 1, 0, 0] * 10)
    return Fit(fit.peer, X, y, 1, 1, penalty=0.1)


def answer_all(asked: str, told: str) -> None:
    """Answer every fit, one after the other, each as soon as it is known."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fits = pickle.loads(Path(asked).read_bytes())
    solve = {"DL8.5": fit_dl85, "gosdt": fit_gosdt}
    solve[fits[0].peer](few(fits[0]))  # loads libraries: not for the first fit to pay
    with Path(told).open("ab") as file:
        for fit in fits:
            answer = solve[fit.peer](fit)
            file.write(pickle.dumps(vars(answer)))
            file.flush()


if __name__ == "__main__":
    # Pickled fits name this module as the study imports it.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from weighted_trees import peers

    peers.answer_all(*sys.argv[1:])
