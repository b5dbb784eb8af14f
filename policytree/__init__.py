"""policytree: from data to the provably best small policy tree, and an honest value for it.

Names are imported on first use, so that importing the package (and ``policytree --help``) stays quick; they are listed
in ``__init__.pyi``. Further questions have packages of their own, which are found on first use, too.
"""

from policytree.common.lazy import lazy_names

__version__ = "0.9.0"

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
__all__ += ["__version__"]
