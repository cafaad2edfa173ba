"""Python loops that repeat themselves: a few iterations are traced, the others compared, and all become a loop."""
