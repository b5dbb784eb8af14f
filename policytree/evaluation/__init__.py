"""The value of rules and what the evidence for them is; every estimate has an influence function, clusters and weights.

estimates.py      means with standard errors from influence functions, of blocks and of repeated cross-fittings too
formatting.py     numbers with their errors as text
inputs.py         checks of rewards, policies, clusters and weights
inference/        intervals: half-samples, cluster bootstrap, simultaneous intervals, partial identification
policy_value/     the values of rules, on the training rows and held out; the verdict
regimes/          the values of treatment regimes over several stages, held out
leaves/           the people in each leaf, and the value of every treatment there
heterogeneity/    tests of whether effects differ between people, and regressions of effects on covariates
targeting/        whom to treat first, and what a budget buys
instruments/      what offers do, and the effect on those who follow them
sensitivity/      bounds under hidden confounding
stability/        what recurs over resamples, and the Rashomon set
streaming/        the same estimates from batches of rows
"""

from policytree.evaluation.estimates import (
    DIRECTIONS,
    Estimate,
    blocked_estimate,
    estimate_with_error,
    mean_estimate,
    repeated_estimate,
)
from policytree.evaluation.inference.best_arm import BestComparison, compare_with_best
from policytree.evaluation.inference.half_samples import HalfSamples
from policytree.evaluation.leaves.honest import HonestLeaves, honest_leaf_summary
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS, LeafValue, leaf_summary
from policytree.evaluation.policy_value.cross_val import cross_val_policy_value
from policytree.evaluation.policy_value.fixed_rules import RuleValues, compare_rules
from policytree.evaluation.policy_value.gate import Gate
from policytree.evaluation.policy_value.optimism import Optimism
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, PLUG_IN, POLICY, STATUS_QUO
from policytree.evaluation.policy_value.sample_split import HeldOutRewards, held_out_rewards
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.values import policy_difference, policy_value
from policytree.evaluation.policy_value.verdict import Gain, Reason, SecondOpinion, Verdict
from policytree.evaluation.sensitivity.exclusion import ExclusionSensitivity, exclusion_sensitivity
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity, marginal_sensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds, omitted_variable_bounds
from policytree.evaluation.stability.rashomon import near_ties
from policytree.evaluation.stability.rashomon_tables import Exclusion, NearTies
from policytree.evaluation.stability.resampling import policy_agreement, policy_stability
from policytree.evaluation.stability.surest import SurestRule, surest_rule
from policytree.evaluation.stability.tables import PolicyStability
from policytree.evaluation.targeting.budget_path import BudgetPath, budget_path
from policytree.evaluation.targeting.least_budget import BudgetEstimate
from policytree.evaluation.targeting.pareto_path import ParetoPath, pareto_path
from policytree.evaluation.targeting.qini import QiniCurve, qini_curve
from policytree.evaluation.targeting.rate import Ranking, rank_average_treatment_effect
from policytree.evaluation.targeting.spend import policy_shares, policy_spend

__all__ = [
    "AS_RANDOMIZED",
    "DIRECTIONS",
    "HELD_OUT",
    "PLUG_IN",
    "POLICY",
    "STATUS_QUO",
    "TRAINING_ROWS",
    "BestComparison",
    "BudgetEstimate",
    "BudgetPath",
    "Estimate",
    "Exclusion",
    "ExclusionSensitivity",
    "Gain",
    "Gate",
    "HalfSamples",
    "HeldOutRewards",
    "HonestLeaves",
    "LeafValue",
    "MarginalSensitivity",
    "NearTies",
    "OmittedVariableBounds",
    "Optimism",
    "ParetoPath",
    "PolicyStability",
    "PolicyValueTable",
    "QiniCurve",
    "Ranking",
    "Reason",
    "RuleValues",
    "SecondOpinion",
    "SurestRule",
    "Verdict",
    "blocked_estimate",
    "budget_path",
    "compare_rules",
    "compare_with_best",
    "cross_val_policy_value",
    "estimate_with_error",
    "exclusion_sensitivity",
    "held_out_rewards",
    "honest_leaf_summary",
    "leaf_summary",
    "marginal_sensitivity",
    "mean_estimate",
    "near_ties",
    "omitted_variable_bounds",
    "pareto_path",
    "policy_agreement",
    "policy_difference",
    "policy_shares",
    "policy_spend",
    "policy_stability",
    "policy_value",
    "qini_curve",
    "rank_average_treatment_effect",
    "repeated_estimate",
    "surest_rule",
]
