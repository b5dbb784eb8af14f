"""Can the data carry the question? Overlap, balance and calibration."""
