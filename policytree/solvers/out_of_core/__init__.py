"""Trees from tables over two and three columns, without a row in memory (see ``policytree.encoded``).

table_search.py    the best tree of depth three or less from sums over pairs and triples of features, without a row
"""
