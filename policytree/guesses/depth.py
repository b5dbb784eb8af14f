"""How deep a tree must be to be as rich as an ensemble."""

from __future__ import annotations

import math

from policytree.common.validation import is_whole
from policytree.exceptions import InputError, quoted
from policytree.guesses.guess import Reference
from policytree.problem.types import Guesses


def suggest_depth(reference: Reference) -> Guesses:
    """Limit the depth to that of :func:`guess_depth` for the reference's size."""
    return Guesses(max_depth=guess_depth(reference.n_estimators, reference.max_depth))


def guess_depth(n_estimators: int, max_depth: int) -> int:
    """Depth at which single trees are as rich, by VC dimension, as a boosted ensemble.

    Parameters
    ----------
    n_estimators : int
        Number K of trees in the ensemble.
    max_depth : int
        Their depth d; a tree of depth d is taken to have VC dimension B = 2 ** d, at least 3.

    Returns
    -------
    int
        ``log2((K B + K) (3 log(K B + K) + 2))``, rounded up: 11 for 10 trees of depth 3, 15 for 100.

    Raises
    ------
    InputError
        If an argument is no integer >= 1.

    Notes
    -----
    McTavish et al., "Fast sparse decision tree optimization via reference ensembles", AAAI 2022, Theorem 4.2; the VC
    dimension of ensembles is bounded after Shalev-Shwartz and Ben-David (2014), Lemma 10.3, which needs K, B >= 3.

    Examples
    --------
    >>> from policytree.guesses.depth import guess_depth
    >>> guess_depth(10, 3), guess_depth(100, 3)
    (11, 15)
    """
    for name, value in (("n_estimators", n_estimators), ("max_depth", max_depth)):
        if not is_whole(value) or value < 1:
            raise InputError(f"{name} must be an integer >= 1; got {quoted(value)}.")
    K, B = max(int(n_estimators), 3), max(2 ** int(max_depth), 3)
    size = K * (B + 1)
    return math.ceil(math.log2(size * (3 * math.log(size) + 2)))
