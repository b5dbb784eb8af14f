"""Born-again trees: the one tree that is the forest, as in the paper.

Public interface used: BornAgainTree, TreeEnsemble, OptimalTreeClassifier with guesses. given.py has
the paper's three tables on the forests given; parts that run by themselves are grown.py (ten folds, beside CART and
sparse optimal trees) and times.py (seconds as rows, features and trees grow).
"""

from __future__ import annotations

from born_again import given

from policytree.born_again.needed_kernels import BORN_AGAIN
from policytree.solvers.core.compilation import load_kernels


def main(study) -> None:
    """Run the study."""
    load_kernels([(BORN_AGAIN, "")])
    given.show(study)
