"""What rules are worth, one question a file; everything speaks influence functions, clusters and weights.

``estimates``: means and their standard errors; ``resampling``: the half-sample bootstrap. ``values``: a policy on given
rewards. ``held_out``: a learner, refitted without the rows it is judged on (``validation`` says which, ``refits`` does
it). ``best_arm``: against the best of several. ``leaves``: what is in the leaves of a tree; ``honest``: judged by other
rows than chose it; ``sample_split``: who learns and who judges; ``simultaneous``: intervals that hold together.
``effects``: averages over a population; ``heterogeneity``: do effects differ at all, and ``effect_regressions`` on
predictions and covariates. ``ranking``: whom first (``toc`` has the sums); ``cost_curves``: what a budget buys
(``cost_paths``: in which order; ``least_budget``: the inverse), both of rewards that are ``judged``. ``verdict``: which
rule to use. ``tables``: what is shown.
"""

from policytree.evaluation.best_arm import BestComparison, compare_with_best
from policytree.evaluation.cost_curves import QiniCurve, qini_curve
from policytree.evaluation.estimates import (
    DIRECTIONS,
    Estimate,
    blocked_estimate,
    estimate_with_error,
    mean_estimate,
    repeated_estimate,
)
from policytree.evaluation.held_out import cross_val_policy_value
from policytree.evaluation.honest import HonestLeaves, honest_leaf_summary
from policytree.evaluation.least_budget import BudgetEstimate
from policytree.evaluation.leaves import HELD_OUT, TRAINING_ROWS, LeafValue, leaf_summary
from policytree.evaluation.ranking import Ranking, rank_average_treatment_effect
from policytree.evaluation.resampling import HalfSamples
from policytree.evaluation.sample_split import HeldOutRewards, held_out_rewards
from policytree.evaluation.tables import PLUG_IN, POLICY, STATUS_QUO, PolicyValueTable
from policytree.evaluation.values import policy_difference, policy_value
from policytree.evaluation.verdict import Reason, Verdict

__all__ = [
    "DIRECTIONS",
    "HELD_OUT",
    "PLUG_IN",
    "POLICY",
    "STATUS_QUO",
    "TRAINING_ROWS",
    "BestComparison",
    "BudgetEstimate",
    "Estimate",
    "HalfSamples",
    "HeldOutRewards",
    "HonestLeaves",
    "LeafValue",
    "PolicyValueTable",
    "QiniCurve",
    "Ranking",
    "Reason",
    "Verdict",
    "blocked_estimate",
    "compare_with_best",
    "cross_val_policy_value",
    "estimate_with_error",
    "held_out_rewards",
    "honest_leaf_summary",
    "leaf_summary",
    "mean_estimate",
    "policy_difference",
    "policy_value",
    "qini_curve",
    "rank_average_treatment_effect",
    "repeated_estimate",
]
