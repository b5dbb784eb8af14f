"""The same estimates from batches of rows.

leaves.py    the people in each leaf and the value of each treatment there, read a batch at a time
values.py    values of trees on rows of any number, read a batch at a time
"""
