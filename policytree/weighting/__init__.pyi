"""The names of ``policytree.weighting``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.weighting.cate import cate_effects as cate_effects
from policytree.weighting.classification import weighted_labels as weighted_labels
from policytree.weighting.costs import row_costs as row_costs
from policytree.weighting.dose.rewards import DoseRewards as DoseRewards
from policytree.weighting.label_weights import feature_propensity_weights as feature_propensity_weights
from policytree.weighting.logit import LogitPropensity as LogitPropensity
from policytree.weighting.matching import MatchingRewards as MatchingRewards
