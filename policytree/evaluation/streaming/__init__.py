"""The same estimates from batches of rows."""
