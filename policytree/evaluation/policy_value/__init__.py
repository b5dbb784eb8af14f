"""What rules are worth, on the training rows and held out, and the verdict."""
