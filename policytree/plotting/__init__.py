"""Pictures of trees, of their partitions and of values, drawn with matplotlib; and what all pictures share.

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
