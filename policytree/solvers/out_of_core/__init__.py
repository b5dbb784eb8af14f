"""Trees from tables over two and three columns, without a row in memory."""
