"""The names of ``policytree.evaluation``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.evaluation.heterogeneity.linear_projection import best_linear_projection as best_linear_projection
from policytree.evaluation.heterogeneity.linear_projection import calibration_test as calibration_test
from policytree.evaluation.instruments.offer_rule import offer_rule as offer_rule
from policytree.evaluation.instruments.summary import instrument_summary as instrument_summary
from policytree.evaluation.policy_value.benchmark_covariates import nuisances_without as nuisances_without
from policytree.evaluation.policy_value.trial_plan import plan_trial as plan_trial
from policytree.evaluation.sensitivity.exclusion import exclusion_sensitivity as exclusion_sensitivity
from policytree.evaluation.sensitivity.marginal import marginal_sensitivity as marginal_sensitivity
from policytree.evaluation.sensitivity.omitted_variables import omitted_variable_bounds as omitted_variable_bounds
from policytree.evaluation.sensitivity.transport import transport_sensitivity as transport_sensitivity
from policytree.evaluation.stability.rashomon import near_ties as near_ties
from policytree.evaluation.stability.resampling import policy_stability as policy_stability
from policytree.evaluation.stability.surest import surest_rule as surest_rule
from policytree.evaluation.targeting.budget_path import budget_path as budget_path
from policytree.evaluation.targeting.pareto_path import pareto_path as pareto_path
from policytree.evaluation.targeting.qini import qini_curve as qini_curve
from policytree.evaluation.targeting.rate import rank_average_treatment_effect as rank_average_treatment_effect
