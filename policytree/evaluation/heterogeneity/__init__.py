"""Whether treatment effects differ between people, and with what."""
