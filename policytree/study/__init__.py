"""A study as one value: a table whose columns have their roles, and kinds of outcome, assignment and population.

- ``study.py``: :class:`Study`, which everything downstream takes in place of Y, T, X and the rest.
- ``outcomes.py``: kinds of outcome. ``assignments.py``: kinds of assignment. ``populations.py``: whom a rule is for.
- ``columns.py``: columns by name.

A new kind is a frozen dataclass in the file of its sort, with the methods of its base class and a line below.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
