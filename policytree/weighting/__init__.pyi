"""The names of ``policytree.weighting``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.weighting.cate import cate_effects as cate_effects
from policytree.weighting.classification import best_arm as best_arm
from policytree.weighting.classification import weighted_labels as weighted_labels
from policytree.weighting.costs import row_costs as row_costs
from policytree.weighting.costs import subtract_costs as subtract_costs
from policytree.weighting.costs import treatment_costs as treatment_costs
from policytree.weighting.direct_method import DirectMethod as DirectMethod
from policytree.weighting.dose.rewards import DoseRewards as DoseRewards
from policytree.weighting.doubly_robust import DoublyRobust as DoublyRobust
from policytree.weighting.instrument import InstrumentalVariable as InstrumentalVariable
from policytree.weighting.inverse_propensity import InversePropensity as InversePropensity
from policytree.weighting.label_weights import class_balanced_weights as class_balanced_weights
from policytree.weighting.label_weights import cost_matrix_losses as cost_matrix_losses
from policytree.weighting.label_weights import feature_propensity_weights as feature_propensity_weights
from policytree.weighting.logit import LogitPropensity as LogitPropensity
from policytree.weighting.logit import propensity_table as propensity_table
from policytree.weighting.matching import MatchingRewards as MatchingRewards
from policytree.weighting.overlap import DoublyRobustOverlap as DoublyRobustOverlap
from policytree.weighting.registry import SCHEMES as SCHEMES
from policytree.weighting.target_population import DoublyRobustTarget as DoublyRobustTarget
from policytree.weighting.time_to_event.survival_models import SurvivalModel as SurvivalModel
from policytree.weighting.treated import DoublyRobustTreated as DoublyRobustTreated
