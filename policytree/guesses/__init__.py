"""Guesses about the optimum from a reference model. A new guess is one file and its line in ``registry``."""

from policytree.guesses.additive import additive_cuts
from policytree.guesses.depth import guess_depth
from policytree.guesses.elimination import eliminate_in_batches, eliminate_one_by_one
from policytree.guesses.guess import Guess, Reference, merged
from policytree.guesses.lower_bounds import bounded_losses, check_reference, leaf_and_reference_loss, reference_losses
from policytree.guesses.reference import ReferenceGuesses, resolve_guesses
from policytree.guesses.registry import ALL, GUESSES
from policytree.guesses.thresholds import feature_thresholds, kept_cuts, snap_thresholds
from policytree.problem.types import Guesses

__all__ = [
    "ALL",
    "GUESSES",
    "Guess",
    "Guesses",
    "Reference",
    "ReferenceGuesses",
    "additive_cuts",
    "bounded_losses",
    "check_reference",
    "eliminate_in_batches",
    "eliminate_one_by_one",
    "feature_thresholds",
    "guess_depth",
    "kept_cuts",
    "leaf_and_reference_loss",
    "merged",
    "reference_losses",
    "resolve_guesses",
    "snap_thresholds",
]
