"""From a problem to integer rows, and from splits back to a tree. No search.

    binning.py           numbers as integer codes, with thresholds midway between neighbouring distinct values
    coded_features.py    features with one code per value, and the cuts between codes: for sums by code instead of rows
    columns.py           fewer rows or fewer cuts of binned data; splits of such data as cuts of the original columns
    compilation.py       sets of kernels that belong together, compiled or loaded before a search starts
    constraints.py       constraints on trees: amounts spent on actions and questions, and shares of rows per action
    exact_sums.py        exact sums of float64 numbers: integers and one power of two, rounded once when they are read
                         as floats
    feasibility.py       whether any split leaves enough rows on both sides: one count per column
    fixed_point.py       losses as int64 fixed point: sums are exact, independent of order, and pruning needs no
                         tolerance
    labelled.py          a problem as weighted labelled rows, and integer counts instead of the weights
    leaf_sums.py         class weights as integers, and the leaf statistics of a tree
    limits.py            time and memory limits, and Ctrl-C, for searches that run inside kernels
    merge.py             merging of rows with equal codes: no tree separates them, so their losses are added
    rescore.py           trees found for other losses (rounded, sampled, bounded), scored by the problem's own losses
    rows.py              the merged rows of a search's root, and trees that need no bounds
    scoring.py           from the splits of a search to a Tree with its sums; the objective scored from the losses as
                         given
    search_state.py      what every search has: a clock, an incumbent with a bound, reports, and the solution they end
                         in
    shared_costs.py      shared test costs: a path pays for a test group, a feature or several ones, once
    side_bounds.py       similarity bounds of both sides of a column's cuts, for searches that branch in Python
    work_units.py        estimated seconds of work on a usual machine, by counting it

    Problem -> fixed_point -> merge -> rows ... a search ... -> rows.expand -> scoring -> Solution

Losses become integers by a power of two, so that sums are exact, ties are ties and pruning needs no tolerance. Work is
counted (``work_units.py``) and not timed where parts of a search take turns, so that trees never depend on time.
"""
