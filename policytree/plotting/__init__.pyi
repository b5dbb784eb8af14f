"""The names of ``policytree.plotting``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.plotting.diagnostics import CalibrationDisplay as CalibrationDisplay
from policytree.plotting.diagnostics import CovariateBalanceDisplay as CovariateBalanceDisplay
from policytree.plotting.diagnostics import OutcomeFitDisplay as OutcomeFitDisplay
from policytree.plotting.diagnostics import OverlapDisplay as OverlapDisplay
from policytree.plotting.partition import PartitionDisplay as PartitionDisplay
from policytree.plotting.roc import ROCHullDisplay as ROCHullDisplay
from policytree.plotting.survival import KaplanMeierDisplay as KaplanMeierDisplay
from policytree.plotting.values import PolicyValueDisplay as PolicyValueDisplay
