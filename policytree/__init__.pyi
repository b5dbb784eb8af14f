"""The public names, and the public packages, for type checkers, editors and ``policytree.common.lazy``."""

from policytree import born_again as born_again
from policytree import constraints as constraints
from policytree import diagnostics as diagnostics
from policytree import encoded as encoded
from policytree import evaluation as evaluation
from policytree import exceptions as exceptions
from policytree import guesses as guesses
from policytree import objectives as objectives
from policytree import on_dask as on_dask
from policytree import regimes as regimes
from policytree import study as study
from policytree import weighting as weighting
from policytree.datasets import load_dataset as load_dataset
from policytree.estimators.born_again import BornAgainTree as BornAgainTree
from policytree.estimators.classifier import OptimalTreeClassifier as OptimalTreeClassifier
from policytree.estimators.complexity import choose_complexity_weight as choose_complexity_weight
from policytree.estimators.cost_sensitive import CostSensitiveTreeClassifier as CostSensitiveTreeClassifier
from policytree.estimators.doubly_robust import DRPolicyTree as DRPolicyTree
from policytree.estimators.low_cost import LowCostTreeClassifier as LowCostTreeClassifier
from policytree.estimators.path import tree_path as tree_path
from policytree.estimators.policy import PolicyTree as PolicyTree
from policytree.evaluation.heterogeneity.global_tests import heterogeneity_test as heterogeneity_test
from policytree.evaluation.leaves.honest import honest_leaf_summary as honest_leaf_summary
from policytree.evaluation.leaves.summary import leaf_summary as leaf_summary
from policytree.evaluation.policy_value.cross_val import cross_val_policy_value as cross_val_policy_value
from policytree.evaluation.policy_value.sample_split import held_out_rewards as held_out_rewards
from policytree.evaluation.policy_value.values import policy_value as policy_value
from policytree.report.study_report import StudyReport as StudyReport
from policytree.study.study import Study as Study
from policytree.weighting.reward_estimator import RewardEstimator as RewardEstimator
from policytree.weighting.scores import rewards_from as rewards_from

__version__: str
