"""What a tree is to be best at: an objective scores the bag of its leaf sums. One objective a file.

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
