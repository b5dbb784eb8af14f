"""Tables become numbers.

combined_treatments.py    several treatments of each person as one, as in factorial trials
feature_encoder.py        from the user's table to numbers: names, kinds and categories of columns, missing values
features.py               one column of the user's table, as the search and the tree see it
sources.py                rows larger than memory: files, Arrow, DuckDB and dask frames, read in batches of any size
views.py                  results as sentences and tables, in consoles as text and in notebooks as a piece of a page
"""
