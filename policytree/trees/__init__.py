"""The tree, and everything that reads or exports one.

short_thresholds.py    thresholds as short as the data allow: people copy them by hand
source_code.py         trees as source code that others can run without policytree: an SQL expression, a Python
                       function
text.py                trees as text, DOT and a table of rules
to_sklearn.py          trees as scikit-learn's own, for the many tools that draw, explain or convert those
tree.py                a decision tree as parallel arrays, with scikit-learn's array names
unseen_values.py       values that no training row had (categories, gaps), and the side of a split that they take
"""
