"""Python's decisions and exceptions, and calls of function values, as graphs."""
