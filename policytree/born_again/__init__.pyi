"""The names of ``policytree.born_again``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.born_again.ensembles import EnsembleTree as EnsembleTree
from policytree.born_again.ensembles import TreeEnsemble as TreeEnsemble
from policytree.born_again.faithful import FaithfulnessCheck as FaithfulnessCheck
from policytree.born_again.faithful import check_faithfulness as check_faithfulness
from policytree.born_again.fewer_trees import PrunedEnsemble as PrunedEnsemble
from policytree.born_again.fewer_trees import prune_ensemble as prune_ensemble
from policytree.born_again.pruning import PruningReport as PruningReport
from policytree.born_again.pruning import prune as prune
from policytree.born_again.pruning import with_counts as with_counts
from policytree.born_again.readers import own_codes as own_codes
from policytree.born_again.readers import read_ensemble as read_ensemble
from policytree.born_again.solve import BornAgainSolution as BornAgainSolution
from policytree.born_again.solve import solve_born_again as solve_born_again
