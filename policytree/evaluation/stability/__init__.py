"""How much a tree depends on its sample: resamples, and the Rashomon set."""
