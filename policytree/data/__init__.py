"""Tables become numbers: names, kinds and categories of columns."""
