"""The names of ``policytree.on_dask``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.on_dask.estimators import DaskOptimalTreeClassifier as DaskOptimalTreeClassifier
from policytree.on_dask.estimators import DaskPolicyTree as DaskPolicyTree
