"""Guesses by name; a new one is its file and its line here."""

from __future__ import annotations

from policytree.guesses.depth import suggest_depth
from policytree.guesses.guess import Guess
from policytree.guesses.lower_bounds import suggest_lower_bounds
from policytree.guesses.thresholds import suggest_thresholds

GUESSES = {
    "thresholds": Guess(suggest_thresholds, needs_cuts=True),
    "depth": Guess(suggest_depth),
    "lower_bounds": Guess(suggest_lower_bounds),
}
# guesses="all" means the three of McTavish et al. (AAAI 2022). A new guess does not join them, because that would
# change the trees of everybody who wrote "all".
ALL = ("thresholds", "depth", "lower_bounds")
