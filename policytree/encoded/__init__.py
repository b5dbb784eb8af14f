"""Rows of any number: from files to codes on the disk, and from these to trees.

sources    where rows come from
reading    columns as arrays, or one sentence
tally      what must be known of a column: counts that add up
exact      sums that do not depend on their order
scan       the first readings of a source
coding     values as codes, and what codes mean
plan       what is decided before rows are written; the manifest
store      the files
jobs       a folder that a job writes to, and goes on in
encode     all of it
draws      folds and samples that depend on a row's number and a seed only
study_rows, nuisance_models, reward_job, rewards
           outcomes and treatments to cross-fitted rewards
streams    sums over the files
solve      the best tree from these sums
predict    predictions, a batch at a time
"""
