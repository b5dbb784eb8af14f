"""The names of ``policytree.objectives``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.objectives.accuracy import WeightedAccuracy as WeightedAccuracy
from policytree.objectives.f_score import FScore as FScore
from policytree.objectives.f_score import OmegaFScore as OmegaFScore
from policytree.objectives.monotone import MonotoneObjective as MonotoneObjective
from policytree.objectives.partial_auc import PartialAUC as PartialAUC
