"""From outcomes and treatments to rewards: one scheme per file, one line per scheme here."""

from policytree.weighting.cate import CateEffects, cate_effects, from_cate
from policytree.weighting.classification import WeightedLabels, best_arm, weighted_labels
from policytree.weighting.costs import row_costs, subtract_costs, treatment_costs
from policytree.weighting.direct_method import DirectMethod
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.inverse_propensity import InversePropensity
from policytree.weighting.label_weights import class_balanced_weights, cost_matrix_losses, feature_propensity_weights
from policytree.weighting.logit import LogitPropensity, propensity_table
from policytree.weighting.matching import MatchingRewards
from policytree.weighting.overlap import DoublyRobustOverlap
from policytree.weighting.treated import DoublyRobustTreated

# Schemes by name; a new one is its file and its line. RewardEstimator also takes instances.
SCHEMES = {
    "direct": DirectMethod(),
    "doubly_robust": DoublyRobust(),
    "doubly_robust_normalized": DoublyRobust(normalized=True),
    "inverse_propensity": InversePropensity(),
    "self_normalized": InversePropensity(normalized=True),
}

from policytree.weighting.reward_estimator import RewardEstimator  # noqa: E402  (it looks schemes up above)

__all__ = [
    "SCHEMES",
    "CateEffects",
    "DirectMethod",
    "DoublyRobust",
    "DoublyRobustOverlap",
    "DoublyRobustTreated",
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
