"""Any solver within guesses, by the theorems of McTavish et al. (2022)."""
