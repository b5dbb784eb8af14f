"""Constraints of the search as values: what a tree may spend, whom it may treat, and whom it must treat alike.

- ``constraint.py``: :class:`Constraint`, what all kinds share. ``amounts.py``: means over everybody. ``groups.py``:
  comparisons of groups. ``people.py``: what they are about, for every person. ``checks.py``: a list of them.

A new kind is a frozen dataclass with the methods of its base class, a line below and one in ``checks.py::KINDS``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
