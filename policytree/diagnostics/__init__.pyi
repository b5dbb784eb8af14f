"""The names of ``policytree.diagnostics``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.diagnostics.baseline import baseline_table as baseline_table
from policytree.diagnostics.overlap_balance import balance_table as balance_table
from policytree.diagnostics.overlap_balance import crump_trimming as crump_trimming
from policytree.diagnostics.overlap_balance import overlap_table as overlap_table
from policytree.diagnostics.population_overlap import target_overlap as target_overlap
from policytree.study_check import check_rewards as check_rewards
