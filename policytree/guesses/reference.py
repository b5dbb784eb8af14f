"""Guesses from a reference model fitted to the same data: thresholds, depth and lower bounds in one value."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from policytree.common.validation import is_real, is_whole
from policytree.exceptions import InputError, SearchWarning, quoted
from policytree.guesses.additive import additive_cuts
from policytree.guesses.boosting import is_histogram, make_model
from policytree.guesses.depth import guess_depth
from policytree.guesses.elimination import ELIMINATIONS, OwnRefit, Refit, ScikitRefit, as_cuts, quantile_cuts
from policytree.guesses.guess import Guess, Reference, merged
from policytree.guesses.lower_bounds import leaf_and_reference_loss, reference_losses
from policytree.guesses.registry import ALL, GUESSES
from policytree.problem.types import BinnedData, Guesses
from policytree.weighting.classification import weighted_labels

MODELS = ("auto", "gradient_boosting", "hist_gradient_boosting", "additive")
MANY = 300_000  # entries of a table of which "auto" looks at quantiles only
MOST_CUTS = 254  # of a column then, as histograms have
POOR = 0.99  # a reference that loses more than this share of what a single leaf loses has nothing to say


@dataclass(frozen=True)
class ReferenceGuesses:
    """Choice of guesses and of their reference model; an estimator's ``guesses=`` argument.

    Parameters
    ----------
    thresholds : bool, default True
        Keep the thresholds that the model needs: by column elimination; for "additive", those at which it jumps.
    depth : bool, default False
        Limit the depth to that of ``guess_depth`` (``policytree/guesses/depth.py``).
    lower_bounds : bool, default False
        Take the model's weighted loss plus one leaf penalty as a lower bound of every subproblem. Saves time, and costs
        some of the objective: for searches that do not end without it.
    model : {"auto", "gradient_boosting", "hist_gradient_boosting", "additive"} or scikit-learn classifier
        "gradient_boosting" is what scikit-learn's GradientBoostingClassifier fits, refitted quickly; "auto" is the
        same, on 254 quantiles of every column where the table is large. "hist_gradient_boosting" and boosted
        classifiers are scikit-learn's own, whose elimination takes a full fit a threshold. "additive" takes
        thresholds at the jumps of interpret's explainable boosting machine, and everything else from boosting on these.
        A classifier of another kind can give lower bounds only.
    n_estimators : int, default 40
    max_depth : int, default 1
        Number and depth of the boosted trees; the papers use (40, 1), (30, 2), (50, 2), (20, 3).
    learning_rate : float, default 0.1
    elimination : {"one_by_one", "batches"}, default "one_by_one"
        "one_by_one" is the published rule: drop the least important threshold, refit, and stop at the first drop of the
        model's training accuracy. "batches" drops up to a quarter at once and halves that where accuracy drops: fewer
        refits, and fewer thresholds, since it steps over drops. Its price depends on the data: on the "Takeaway"
        coupons with 30 trees of depth two it keeps 6.6 thresholds in place of 17.2, and the tree's training accuracy
        is .749 in place of .767 (means of five folds).
    tolerance : float, default 0
        How much weighted training accuracy column elimination may cost.
    jump_tolerance : float, default 0.1
        For "additive": a threshold is kept if the score of its feature j jumps there by more than ``jump_tolerance *
        max_k importance_k / importance_j``.
    random_state : int, default 0
        Of scikit-learn's and interpret's models; this library's boosting draws nothing.
    further : tuple of str
        Further guesses, by their names in ``policytree/guesses/registry.py``.

    Notes
    -----
    McTavish et al., "Fast sparse decision tree optimization via reference ensembles", AAAI 2022; with weights: Behrouz
    et al. (2022), section 3.2 of the workshop's version (the long one is arXiv:2210.06825). The model is fitted to the
    integer codes of the data, so that missing values and categories take part, and to weighted labels: for rewards,
    those of :func:`policytree.weighting.weighted_labels`; the reference is then a policy.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.guesses import ReferenceGuesses
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> tree = OptimalTreeClassifier(max_depth=1, guesses=ReferenceGuesses(n_estimators=5)).fit(X, y)
    >>> tree.status_.name
    'OPTIMAL_GIVEN_GUESSES'
    """

    thresholds: bool = True
    depth: bool = False
    lower_bounds: bool = False
    model: Any = "auto"
    n_estimators: int = 40
    max_depth: int = 1
    learning_rate: float = 0.1
    elimination: str = "one_by_one"
    tolerance: float = 0.0
    jump_tolerance: float = 0.1
    random_state: int = 0
    further: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = isinstance(self.model, ClassifierMixin) or (isinstance(self.model, str) and self.model in MODELS)
        if not known:
            names = ", ".join(map(repr, MODELS))
            raise InputError(f"model must be one of {names} or a classifier; got {quoted(self.model)}.")
        guess_depth(self.n_estimators, self.max_depth)
        if not isinstance(self.elimination, str) or self.elimination not in ELIMINATIONS:
            names = ", ".join(map(repr, ELIMINATIONS))
            raise InputError(f"elimination must be one of {names}; got {quoted(self.elimination)}.")
        for name in ("tolerance", "jump_tolerance", "learning_rate"):
            value = getattr(self, name)
            if not is_real(value) or not 0 <= value < np.inf:
                raise InputError(f"{name} must be a number >= 0; got {quoted(value)}.")
        seed = self.random_state
        if seed is not None and not (is_whole(seed) and 0 <= seed < 2**32):
            raise InputError(f"random_state must be an integer from 0 to 2**32 - 1 or None; got {quoted(seed)}.")
        if not isinstance(self.further, tuple) or not set(self.further) <= set(GUESSES):
            raise InputError(f"further must be a tuple of {', '.join(map(repr, GUESSES))}; got {quoted(self.further)}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the guesses that are taken, as the registry has them."""
        return tuple(name for name in GUESSES if name in self.further or (name in ALL and getattr(self, name)))

    def _chosen(self) -> list[Guess]:
        return [GUESSES[name] for name in self.names]

    def make(self, data: BinnedData, losses: np.ndarray) -> tuple[Guesses, dict[str, float | str]]:
        """Fit the reference and take the guesses.

        Parameters
        ----------
        data : BinnedData
        losses : ndarray of shape (n, K)
            Weighted losses.

        Returns
        -------
        guesses : Guesses
        report : dict
            ``reference_loss`` and ``leaf_loss``, the shares of what can be lost that the reference and the best single
            leaf lose (for labels, weighted error rates); ``kept_thresholds`` of ``all_thresholds``; ``reference``, a
            sentence.

        Warns
        -----
        SearchWarning
            If the reference is hardly better than a single leaf.
        """
        from policytree.weighting.learners import one_thread

        with np.errstate(over="ignore"):
            if not np.isfinite(np.ptp(losses, axis=1).sum()):
                raise InputError("losses are too large to be added up; divide them by a constant.")
        if losses.shape[1] == 1 or not (losses.max(axis=1) > losses.min(axis=1)).any() or not len(data.codes):
            return Guesses(), {
                "reference": "There is nothing to guess: every action, or every row, is like the others."
            }
        labels = weighted_labels(-losses)
        label, weight = labels.label.astype(np.int64), labels.weight
        codes = data.codes[:, labels.row]
        if len(np.unique(label)) == 1 or not codes.any():  # nothing to tell apart, or nothing to tell it by
            best = int(np.argmax(np.bincount(label, weights=weight)))
            cuts, actions = [np.empty(0, np.int64)] * len(codes), np.full(len(losses), best)
        else:
            weight = weight / weight.mean()  # boosting's stopping rules and priors are not free of scale
            with one_thread():
                cuts, predict = self._fit(codes, label, weight)
                actions = predict(data.codes)
        report = _report(losses, reference_losses(losses, actions), actions)
        if self._needs_cuts:
            report["kept_thresholds"] = float(sum(map(len, cuts)))
            report["all_thresholds"] = float((data.n_bins - 1).sum())
        reference = Reference(data, losses, actions, cuts, self.n_estimators, self.max_depth)
        return merged(guess.suggest(reference) for guess in self._chosen()), report

    @property
    def _needs_cuts(self) -> bool:
        return any(guess.needs_cuts for guess in self._chosen())

    def _fit(self, codes: np.ndarray, label: np.ndarray, weight: np.ndarray):
        """Cuts and a function from codes to predicted actions."""
        additive = isinstance(self.model, str) and self.model == "additive"
        if additive:
            cuts = additive_cuts(codes, label, weight, tolerance=self.jump_tolerance, random_state=self.random_state)
        else:
            many = is_histogram(self.model) or (self.model == "auto" and codes.size > MANY)
            cuts = quantile_cuts(codes, MOST_CUTS if many else int(codes.max()))
        if sum(map(len, cuts)):
            refit = self._refit(cuts, codes, label, weight)
            refit.fit(np.ones(len(refit.pairs), dtype=bool))
            if additive or not self._needs_cuts:
                return cuts, refit.predict
            cuts = as_cuts(refit.pairs[refit.gains() >= 0], len(codes))
        if not sum(map(len, cuts)):
            best = int(np.argmax(np.bincount(label, weights=weight)))
            return cuts, lambda codes: np.full(codes.shape[1], best)
        refit = self._refit(cuts, codes, label, weight)
        kept = ELIMINATIONS[self.elimination](refit, self.tolerance)
        return as_cuts(refit.pairs[kept], len(codes)), refit.predict

    def _refit(self, cuts: list[np.ndarray], codes: np.ndarray, label: np.ndarray, weight: np.ndarray) -> Refit:
        """The model that is to be fitted to these cuts."""
        size = self.n_estimators, self.max_depth, self.learning_rate
        if isinstance(self.model, str) and self.model != "hist_gradient_boosting":
            return OwnRefit(cuts, codes, label, weight, size)
        return ScikitRefit(cuts, codes, label, weight, make_model(self.model, *size, self.random_state))


def _report(losses: np.ndarray, reference: np.ndarray, actions: np.ndarray) -> dict[str, float | str]:
    """Losses of reference and leaf, and a sentence; warns where the reference says little."""
    leaf, loss = leaf_and_reference_loss(losses, reference)
    text = f"reference loss {loss:.3g}, leaf loss {leaf:.3g}"
    if (actions == actions[0]).all():
        text += "; the reference predicts one class only"
    if loss > POOR * leaf:
        warnings.warn(
            f"The reference model says little about the tree ({text}); guess less, or from a richer model.",
            SearchWarning,
            stacklevel=2,
        )
    return {"reference_loss": loss, "leaf_loss": leaf, "reference": text}


def resolve_guesses(guesses, random_state: int = 0) -> Guesses | ReferenceGuesses | None:
    """Interpret an estimator's ``guesses=`` argument.

    Parameters
    ----------
    guesses : None, str, sequence of str, ReferenceGuesses or Guesses
        Names in the registry of guesses, one or several, or "all" for "thresholds", "depth" and
        "lower_bounds", from a default reference model; a configured one; or the guesses themselves.
    random_state : int
        Seed of a default reference model.

    Raises
    ------
    InputError
        If a name is unknown, or there is none.
    """
    if guesses is None or isinstance(guesses, (Guesses, ReferenceGuesses)):
        return guesses
    if isinstance(guesses, str):
        wanted = ALL if guesses == "all" else (guesses,)
    else:
        listed = isinstance(guesses, Iterable) and not isinstance(guesses, type) and getattr(guesses, "ndim", 1) == 1
        wanted = tuple(guesses) if listed else ()
    unknown = [name for name in wanted if not isinstance(name, str) or name not in GUESSES]
    if unknown or not wanted:
        raise InputError(
            f"guesses={quoted(guesses)} is not known; use {', '.join(map(repr, GUESSES))}, a list of them, 'all', a "
            "ReferenceGuesses or a Guesses."
        )
    further = tuple(name for name in wanted if name not in ALL)
    asked: dict[str, Any] = {name: name in wanted for name in ALL}
    return ReferenceGuesses(**asked, random_state=random_state, further=further)
