"""The public names, for type checkers, editors and ``policytree.common.lazy``."""

from policytree.study.assignments import Offered as Offered
from policytree.study.outcomes import Event as Event
from policytree.study.outcomes import Label as Label
from policytree.study.outcomes import MayBeMissing as MayBeMissing
from policytree.study.outcomes import Rewards as Rewards
from policytree.study.outcomes import TimeToEvent as TimeToEvent
from policytree.study.populations import Population as Population
