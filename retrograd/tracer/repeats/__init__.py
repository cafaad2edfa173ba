"""Python loops that repeat themselves: they are recorded a few times, then compared, and end as a loop of the graph."""
