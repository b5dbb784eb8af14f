"""The names of ``policytree.guesses``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.guesses.depth import guess_depth as guess_depth
from policytree.guesses.reference import ReferenceGuesses as ReferenceGuesses
from policytree.guesses.registry import GUESSES as GUESSES
from policytree.problem.types import Guesses as Guesses
