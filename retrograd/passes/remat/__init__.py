"""Computing values again instead of keeping them: which ones, in what order, and what a region may keep."""
