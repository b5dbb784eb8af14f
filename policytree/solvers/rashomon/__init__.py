"""The Rashomon set: all trees whose objective is within a slack of the optimum (near-ties)."""
