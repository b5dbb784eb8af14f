"""Data larger than memory: from files to codes on disk, and from these to trees.

    source -> tally, scan -> plan -> encode (files of codes) -> streams (tables) -> table_search -> solve.grown -> Tree
                                        on_dask: the same, a partition per task   (no rows)      (one more reading)

reading    columns as arrays, or one sentence
tally      what must be known of a column: counts that add up
scan       the first readings of a source
coding     values as codes, and what codes mean
plan       what is decided before rows are written; the manifest
store      the files
jobs       a folder that a job writes to, and goes on in
encode     all of it
draws      folds and samples that depend on a row's number and a seed only
study_rows, nuisance_models, hazards, reward_job, rewards
           outcomes and treatments to cross-fitted rewards
streams    sums over the files
solve      the best tree from these sums, with exact sums of its nodes
predict    predictions, a batch at a time

Codes of one or two bytes per column and integer losses stand in files. Sums over rows by the codes of two or three
columns add up over files, threads and machines, and ``solvers/out_of_core/table_search.py`` reads the best tree of
depth three off them. Deeper trees, few rows and ``max_leaf_nodes`` go to the search in memory (``solve``).

Outcomes and treatments become rewards first, from files to files:

    source -> sizes of folds -> sample -> models (+ one reading, if some stream) -> scores, a file per batch -> encode

Of outcomes that are times, the models are hazards first, which complete the outcomes of the sample and of every batch.

Every draw is a hash of the row's number (or its cluster's) and the seed, so that results do not depend on the size of
batches. ``tests/encoded/`` and ``tests/encoded/test_on_dask.py`` compare with the same problems in memory.

Names are imported on first use; they are listed in ``__init__.pyi``.
"""

from policytree.common.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
