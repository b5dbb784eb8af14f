"""The values that packages exchange: Problem, Solution, SearchLimits.

split_columns.py    the columns of codes that a feature becomes, one for each way to split it
                    (``types.SplitColumn``)
types.py            the frozen values that packages exchange
"""
