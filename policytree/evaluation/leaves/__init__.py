"""What is known of each leaf."""
