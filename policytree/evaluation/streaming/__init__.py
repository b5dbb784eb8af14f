"""The same estimates from batches of rows.

leaves.py    who is in each leaf and what each treatment is worth there, from rows of any number, read a batch at a
             time
values.py    what trees are worth on rows of any number, read a batch at a time
"""
