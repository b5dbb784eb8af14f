"""What rules are worth, one question a file; everything speaks influence functions, clusters and weights.

``estimates``: means and their standard errors; ``half_samples``: the half-sample bootstrap. ``values``: a policy on
given rewards. ``held_out``: a learner, refitted without the rows it is judged on (``validation`` says which,
``refits`` does it). ``fixed_rules``: rules that are settled, on new rows. ``best_arm``: against the best of several.
``leaves``: what is in the leaves of a tree; ``two_valued``: intervals of shares there;
``honest``: judged by other rows than chose it; ``sample_split``: who learns and who judges; ``simultaneous``:
intervals that hold together. ``effects``: averages over a population; ``heterogeneity``: do effects differ at all,
and ``effect_regressions`` on predictions and covariates. ``ranking``: whom first (``toc`` has the sums);
``cost_curves``: what a budget buys (``cost_paths``: in which order; ``least_budget``: the inverse), both of rewards
that are ``judged``. ``budget_path``: the best trees for all budgets; ``spend``: what a policy spends on other people.
``verdict``: which rule to use. ``optimism``: how rules flatter themselves. ``tables``: what is
shown.

``sensitivity_marginal`` and ``sensitivity_omitted``: what a hidden confounder could do to a policy or to a contrast of
two (``contrasts``; ``judged_contrasts``, of the learnt rules of a table of held-out values); ``bounds`` come from
``simple_bounds`` and ``sharp_bounds``, their intervals from ``cluster_bootstrap`` and
``repeated_bounds``, and ``benchmark_covariates`` say how strong the confounder may be.
``stability``: what recurs over ``resamples`` (``stability_tables``).
``near_ties``: the other trees that do as well on the same rows (``near_tie_decisions``, ``near_tie_results``).
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
from policytree.evaluation.policy_value.optimism import Optimism
from policytree.evaluation.policy_value.sample_split import HeldOutRewards, held_out_rewards
from policytree.evaluation.policy_value.tables import PLUG_IN, POLICY, STATUS_QUO, PolicyValueTable
from policytree.evaluation.policy_value.values import policy_difference, policy_value
from policytree.evaluation.policy_value.verdict import Gain, Reason, SecondOpinion, Verdict
from policytree.evaluation.sensitivity.marginal import MarginalSensitivity, marginal_sensitivity
from policytree.evaluation.sensitivity.omitted_variables import OmittedVariableBounds, omitted_variable_bounds
from policytree.evaluation.stability.rashomon import near_ties
from policytree.evaluation.stability.rashomon_tables import Exclusion, NearTies
from policytree.evaluation.stability.resampling import policy_agreement, policy_stability
from policytree.evaluation.stability.tables import PolicyStability
from policytree.evaluation.targeting.budget_path import BudgetPath, budget_path
from policytree.evaluation.targeting.least_budget import BudgetEstimate
from policytree.evaluation.targeting.qini import QiniCurve, qini_curve
from policytree.evaluation.targeting.rate import Ranking, rank_average_treatment_effect
from policytree.evaluation.targeting.spend import policy_shares, policy_spend

__all__ = [
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
    "Gain",
    "HalfSamples",
    "HeldOutRewards",
    "HonestLeaves",
    "LeafValue",
    "MarginalSensitivity",
    "NearTies",
    "OmittedVariableBounds",
    "Optimism",
    "PolicyStability",
    "PolicyValueTable",
    "QiniCurve",
    "Ranking",
    "Reason",
    "RuleValues",
    "SecondOpinion",
    "Verdict",
    "blocked_estimate",
    "budget_path",
    "compare_rules",
    "compare_with_best",
    "cross_val_policy_value",
    "estimate_with_error",
    "held_out_rewards",
    "honest_leaf_summary",
    "leaf_summary",
    "marginal_sensitivity",
    "mean_estimate",
    "near_ties",
    "omitted_variable_bounds",
    "policy_agreement",
    "policy_difference",
    "policy_shares",
    "policy_spend",
    "policy_stability",
    "policy_value",
    "qini_curve",
    "rank_average_treatment_effect",
    "repeated_estimate",
]
