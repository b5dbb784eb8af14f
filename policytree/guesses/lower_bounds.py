"""Lower bounds from a reference model: what it loses in every row, built into the losses."""

from __future__ import annotations

import numpy as np

from policytree.exceptions import InputError
from policytree.guesses.guess import Reference
from policytree.problem.types import Guesses


def suggest_lower_bounds(reference: Reference) -> Guesses:
    """Expect no set of rows to lose less than the reference does on it; see :func:`bounded_losses`."""
    return Guesses(reference_losses=reference_losses(reference.losses, reference.actions))


def reference_losses(losses: np.ndarray, actions) -> np.ndarray:
    """Return a reference model's loss in every row.

    Parameters
    ----------
    losses : ndarray of shape (n, K)
        Weighted losses of every action (``w_i [k != y_i]`` for labels, ``-reward`` for policies).
    actions : array-like of shape (n,)
        The model's predictions, 0 .. K - 1.

    Returns
    -------
    ndarray of shape (n,), float64

    Raises
    ------
    InputError
        If actions are not n integers from 0 to K - 1.
    """
    n, K = losses.shape
    actions = np.asarray(actions)
    if actions.shape != (n,) or actions.dtype.kind not in "iub" or actions.min() < 0 or actions.max() >= K:
        raise InputError(f"The reference's predictions must be {n} integers from 0 to {K - 1}, one per row.")
    return losses[np.arange(n), actions.astype(np.intp)].astype(np.float64)


def check_reference(reference: np.ndarray, n: int) -> None:
    """Refuse losses of a reference that are not one finite number a row."""
    if reference.shape != (n,) or not np.isfinite(reference).all():
        raise InputError(f"reference_losses must be {n} finite numbers, the reference's loss in every row.")


def bounded_losses(losses: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Losses that are nowhere below the reference's, ``max(l_ik, r_i)``; shape (n, K).

    With them the guess "no subtree does better on its rows than the reference does, plus one leaf" is true of every set
    of rows, so that every bound of an exact search uses it, whatever the solver: subproblems close as soon as a leaf
    loses no more than the reference, up to the price of a leaf.

    Parameters
    ----------
    losses : ndarray of shape (n, K)
        Of rows; or, better, summed over groups of rows that no split can tell apart: where the reference takes a
        group's best action nothing changes then, while row by row other actions would lose what both of them do.
    reference : ndarray of shape (n,)
        The loss of every row, or group of rows, under the predictions of the reference model.

    Notes
    -----
    McTavish et al. (AAAI 2022), section 4.3 and Eq. 4, take ``sum of r_i over the rows + one leaf penalty`` as a
    subproblem's lower bound, and Behrouz et al. (2022), section 3.2 and Eq. 3, weight it. There, what is found depends
    on the order of the search, and a theorem bounds it (4.3 of the former, 1 of the latter): ``R(found) <= sum_i
    max(r_i, l_i(t)) + penalty * leaves of t`` for the optimal t.
    Here the right-hand side is what is minimised, over all trees t: the theorem holds by construction, and the tree
    does not depend on the order of the search.
    """
    return np.maximum(losses, reference[:, None])


def leaf_and_reference_loss(losses: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Losses of the best single leaf and of the reference, as shares of the most that rows can lose.

    For labels these are weighted error rates.
    """
    least = losses.min(axis=1)
    most = float((losses.max(axis=1) - least).sum())
    if most == 0:
        return 0.0, 0.0
    return float(losses.sum(axis=0).min() - least.sum()) / most, float((reference - least).sum()) / most
