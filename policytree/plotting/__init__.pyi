"""The names of ``policytree.plotting``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.plotting.budget import BudgetPathDisplay as BudgetPathDisplay
from policytree.plotting.compliance import ComplianceDisplay as ComplianceDisplay
from policytree.plotting.curves import QiniCurveDisplay as QiniCurveDisplay
from policytree.plotting.curves import TOCDisplay as TOCDisplay
from policytree.plotting.diagnostics import CalibrationDisplay as CalibrationDisplay
from policytree.plotting.diagnostics import CovariateBalanceDisplay as CovariateBalanceDisplay
from policytree.plotting.diagnostics import OutcomeFitDisplay as OutcomeFitDisplay
from policytree.plotting.diagnostics import OverlapDisplay as OverlapDisplay
from policytree.plotting.diagnostics import TargetOverlapDisplay as TargetOverlapDisplay
from policytree.plotting.pareto import ParetoPathDisplay as ParetoPathDisplay
from policytree.plotting.partition import PartitionDisplay as PartitionDisplay
from policytree.plotting.rashomon import NearTiesDisplay as NearTiesDisplay
from policytree.plotting.regimes import RegimeDisplay as RegimeDisplay
from policytree.plotting.roc import ROCHullDisplay as ROCHullDisplay
from policytree.plotting.sensitivity import MarginalSensitivityDisplay as MarginalSensitivityDisplay
from policytree.plotting.sensitivity import OmittedVariableDisplay as OmittedVariableDisplay
from policytree.plotting.stability import PolicyStabilityDisplay as PolicyStabilityDisplay
from policytree.plotting.survival import KaplanMeierDisplay as KaplanMeierDisplay
from policytree.plotting.trees import PolicyTreeDisplay as PolicyTreeDisplay
from policytree.plotting.values import PolicyValueDisplay as PolicyValueDisplay
