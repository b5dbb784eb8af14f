"""The names of ``policytree.estimators``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.estimators.born_again import BornAgainTree as BornAgainTree
from policytree.estimators.classifier import OptimalTreeClassifier as OptimalTreeClassifier
from policytree.estimators.complexity import choose_complexity_weight as choose_complexity_weight
from policytree.estimators.cost_sensitive import CostSensitiveTreeClassifier as CostSensitiveTreeClassifier
from policytree.estimators.doubly_robust import DRPolicyTree as DRPolicyTree
from policytree.estimators.low_cost import LowCostTreeClassifier as LowCostTreeClassifier
from policytree.estimators.path import TreePath as TreePath
from policytree.estimators.path import tree_path as tree_path
from policytree.estimators.policy import PolicyTree as PolicyTree
