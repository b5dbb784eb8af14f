"""The names of ``policytree.solvers.born_again``, for type checkers, editors and ``policytree.lazy``."""

from policytree.solvers.born_again.ensembles import EnsembleTree as EnsembleTree
from policytree.solvers.born_again.ensembles import TreeEnsemble as TreeEnsemble
from policytree.solvers.born_again.faithful import FaithfulnessCheck as FaithfulnessCheck
from policytree.solvers.born_again.faithful import check_faithfulness as check_faithfulness
from policytree.solvers.born_again.pruning import PruningReport as PruningReport
from policytree.solvers.born_again.pruning import prune as prune
from policytree.solvers.born_again.pruning import with_counts as with_counts
from policytree.solvers.born_again.readers import own_codes as own_codes
from policytree.solvers.born_again.readers import read_ensemble as read_ensemble
from policytree.solvers.born_again.solve import BornAgainSolution as BornAgainSolution
from policytree.solvers.born_again.solve import solve_born_again as solve_born_again
