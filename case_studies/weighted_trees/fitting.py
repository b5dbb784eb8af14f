"""A timed fit, and what the parts of the study have in common."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.model_selection import KFold

from policytree import OptimalTreeClassifier
from policytree.exceptions import SearchWarning
from policytree.guesses import Guesses

COLORS = {
    "direct": "#0072B2",
    "duplication": "#E69F00",
    "sampling": "#009E73",
    "CART": "#999999",
    "GBDT": "#555555",
    "DL8.5": "#D55E00",
}
# Five folds drawn so are those of McTavish et al.: in one of them all their printed trees have the printed accuracies.
AUTHORS_SEED = 2021
SECONDS = "Seconds are of processor time, which other work on the machine lengthens little."


def timed(model, *args, **kwargs) -> float:
    """Fit, and return the processor seconds it took; a search that meets its limit says so in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        start = time.process_time()
        model.fit(*args, **kwargs)
        return time.process_time() - start


def guessed(reference, X, y, weight=None) -> tuple[Guesses, float]:
    """Return a reference model's guesses from these rows, for every search that is compared; and its seconds."""
    first = OptimalTreeClassifier(max_depth=1, guesses=reference)
    seconds = timed(first, X, y, sample_weight=weight)
    return first.guesses_, seconds


def by_kind(made: Guesses) -> dict[str, Guesses]:
    """The guesses as the papers use them: thresholds alone, or lower bounds as well."""
    return {
        "th": Guesses(thresholds=made.thresholds),
        "th+lb": Guesses(None, made.thresholds, made.reference_losses),
    }


def folds(n: int, n_splits: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows with a fixed seed; not stratified, since a label of Lalonde's is too rare for that."""
    return list(KFold(n_splits, shuffle=True, random_state=seed).split(np.zeros(n)))


def weighted_accuracy(predicted, y, weight) -> float:
    """Share of the weight whose label is predicted."""
    return float(np.average(predicted == y, weights=weight))


def proved(model) -> bool:
    """Whether no tree (of the allowed thresholds) is better."""
    return model.status_.name in ("OPTIMAL", "OPTIMAL_GIVEN_GUESSES")


def with_sd(values, digits: int = 3) -> str:
    """Mean and standard deviation over folds, as the papers print them."""
    values = np.asarray(values, dtype=float)
    spread = f"±{values.std(ddof=0):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}" if len(values) else ""
