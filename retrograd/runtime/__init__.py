"""What runs compiled functions."""
