"""The public names, for type checkers, editors and ``policytree.lazy``."""

from policytree.calibration import calibration_table as calibration_table
from policytree.calibration import outcome_calibration_table as outcome_calibration_table
from policytree.calibration import outcome_fit_table as outcome_fit_table
from policytree.cross_validation import cross_val_policy_value as cross_val_policy_value
from policytree.datasets import load_dataset as load_dataset
from policytree.datasets.rand_hie import load_rand_hie as load_rand_hie
from policytree.diagnostic_displays import CalibrationDisplay as CalibrationDisplay
from policytree.diagnostic_displays import CovariateBalanceDisplay as CovariateBalanceDisplay
from policytree.diagnostic_displays import OutcomeFitDisplay as OutcomeFitDisplay
from policytree.diagnostic_displays import OverlapDisplay as OverlapDisplay
from policytree.diagnostics import balance_table as balance_table
from policytree.diagnostics import crump_trimming as crump_trimming
from policytree.diagnostics import overlap_table as overlap_table
from policytree.effect_regressions import best_linear_projection as best_linear_projection
from policytree.effect_regressions import calibration_test as calibration_test
from policytree.effects import average_effect as average_effect
from policytree.estimators.classifier import OptimalTreeClassifier as OptimalTreeClassifier
from policytree.estimators.cost_sensitive import CostSensitiveTreeClassifier as CostSensitiveTreeClassifier
from policytree.estimators.doubly_robust import DRPolicyTree as DRPolicyTree
from policytree.estimators.path import TreePath as TreePath
from policytree.estimators.path import tree_path as tree_path
from policytree.estimators.policy import PolicyTree as PolicyTree
from policytree.evaluation import leaf_summary as leaf_summary
from policytree.evaluation import policy_difference as policy_difference
from policytree.evaluation import policy_value as policy_value
from policytree.exceptions import BalanceWarning as BalanceWarning
from policytree.exceptions import InputError as InputError
from policytree.exceptions import OverlapWarning as OverlapWarning
from policytree.exceptions import SearchWarning as SearchWarning
from policytree.guesses.reference import ReferenceGuesses as ReferenceGuesses
from policytree.heterogeneity import heterogeneity_test as heterogeneity_test
from policytree.plotting import PolicyTreeDisplay as PolicyTreeDisplay
from policytree.plotting import PolicyValueDisplay as PolicyValueDisplay
from policytree.plotting import plot_tree as plot_tree
from policytree.study_check import check_rewards as check_rewards
from policytree.study_check import check_study as check_study
from policytree.tree import Tree as Tree
from policytree.types import Guesses as Guesses
from policytree.types import Status as Status
from policytree.weighting.cate import cate_effects as cate_effects
from policytree.weighting.cate import from_cate as from_cate
from policytree.weighting.classification import weighted_labels as weighted_labels
from policytree.weighting.matching import MatchingRewards as MatchingRewards
from policytree.weighting.reward_estimator import RewardEstimator as RewardEstimator

__version__: str
