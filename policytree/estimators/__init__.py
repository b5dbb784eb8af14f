"""The scikit-learn estimators: validate, wire, delegate."""

from policytree.estimators.classifier import OptimalTreeClassifier
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.estimators.policy import PolicyTree

__all__ = ["DRPolicyTree", "OptimalTreeClassifier", "PolicyTree"]
