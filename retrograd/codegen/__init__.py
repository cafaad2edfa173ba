"""From a graph and its plan to source text; one folder per target."""
