"""What every package uses: checks of input, names that load lazily, progress, executors, free memory."""
