"""Trees for rows that are spread over machines, by dask: what LightGBM's dask estimators are for its models.

parts        what a worker does with its rows
reading      rows of dask frames to codes on the workers
estimators   DaskPolicyTree, DaskOptimalTreeClassifier; sums over the rows, added up in a tree of tasks

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
