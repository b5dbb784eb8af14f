"""Guesses about the optimum from a reference model. A new guess is one file and its line in ``registry``.

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
