"""The names of ``policytree.objectives``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.objectives.accuracy import Accuracy as Accuracy
from policytree.objectives.accuracy import BalancedAccuracy as BalancedAccuracy
from policytree.objectives.accuracy import WeightedAccuracy as WeightedAccuracy
from policytree.objectives.auc import AUC as AUC
from policytree.objectives.f_score import FScore as FScore
from policytree.objectives.f_score import OmegaFScore as OmegaFScore
from policytree.objectives.monotone import MonotoneObjective as MonotoneObjective
from policytree.objectives.objective import Objective as Objective
from policytree.objectives.partial_auc import PartialAUC as PartialAUC
from policytree.objectives.registry import resolve_objective as resolve_objective
