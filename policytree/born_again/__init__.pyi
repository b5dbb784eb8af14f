"""The names of ``policytree.born_again``, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.born_again.ensembles import TreeEnsemble as TreeEnsemble
from policytree.born_again.fewer_trees import prune_ensemble as prune_ensemble
