"""The names of ``policytree.guesses``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.guesses.reference import ReferenceGuesses as ReferenceGuesses
from policytree.problem.types import Guesses as Guesses
