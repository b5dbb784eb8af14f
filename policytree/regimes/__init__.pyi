"""The names of ``policytree.regimes``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.evaluation.regimes.cross_val import cross_val_regime_value as cross_val_regime_value
from policytree.regimes.long_tables import stages_from_long as stages_from_long
from policytree.regimes.stages import Stage as Stage
from policytree.regimes.treatment_regime import TreatmentRegime as TreatmentRegime
from policytree.report.regime_report import RegimeReport as RegimeReport
