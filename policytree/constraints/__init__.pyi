"""The public names, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.constraints.amounts import Budget as Budget
from policytree.constraints.amounts import ExpectedCost as ExpectedCost
from policytree.constraints.amounts import Limit as Limit
from policytree.constraints.amounts import Share as Share
from policytree.constraints.groups import EqualShares as EqualShares
from policytree.constraints.groups import EqualValues as EqualValues
from policytree.constraints.groups import WorstGroup as WorstGroup
