"""Born-again trees: the one tree that is the forest, as in the paper.

Public interface used: BornAgainTree, TreeEnsemble, OptimalTreeClassifier with guesses. One module a question: given.py
(the paper's three tables on the forests given), grown.py (ten folds, beside CART and sparse optimal trees), times.py.
"""

from __future__ import annotations

from born_again import given, grown, times

from policytree.solvers.compilation import BORN_AGAIN, load_kernels


def main(study) -> None:
    """Run the study."""
    load_kernels([(BORN_AGAIN, "")])
    given.show(study)
    grown.show(study)
    times.show(study)
