"""From outcomes and treatments to rewards: one scheme a file, listed in :mod:`policytree.weighting.registry`."""

from policytree.weighting.cate import CateEffects, cate_effects, from_cate
from policytree.weighting.classification import WeightedLabels, best_arm, weighted_labels
from policytree.weighting.costs import row_costs, subtract_costs, treatment_costs
from policytree.weighting.direct_method import DirectMethod
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.inverse_propensity import InversePropensity
from policytree.weighting.label_weights import class_balanced_weights, cost_matrix_losses, feature_propensity_weights
from policytree.weighting.logit import LogitPropensity, propensity_table
from policytree.weighting.matching import MatchingRewards
from policytree.weighting.registry import SCHEMES
from policytree.weighting.reward_estimator import RewardEstimator

__all__ = [
    "SCHEMES",
    "CateEffects",
    "DirectMethod",
    "DoublyRobust",
    "InversePropensity",
    "LogitPropensity",
    "MatchingRewards",
    "RewardEstimator",
    "WeightedLabels",
    "best_arm",
    "cate_effects",
    "class_balanced_weights",
    "cost_matrix_losses",
    "feature_propensity_weights",
    "from_cate",
    "propensity_table",
    "row_costs",
    "subtract_costs",
    "treatment_costs",
    "weighted_labels",
]
