"""Systems beside the benchmark: each file writes the rows that its system can express."""
