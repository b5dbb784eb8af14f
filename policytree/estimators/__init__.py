"""The scikit-learn estimators: validate, wire, delegate."""

from policytree.estimators.classifier import OptimalTreeClassifier
from policytree.estimators.cost_sensitive import CostSensitiveTreeClassifier
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.path import TreePath, tree_path
from policytree.estimators.policy import PolicyTree

__all__ = [
    "CostSensitiveTreeClassifier",
    "DRPolicyTree",
    "OptimalTreeClassifier",
    "PolicyTree",
    "TreePath",
    "tree_path",
]
