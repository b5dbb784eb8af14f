"""Branch and bound for losses that add up over rows: the driver, its engines and their incumbents."""
