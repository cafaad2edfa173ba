"""Checkpointing: where a loop keeps its states, and the pass that turns a pair of loops into sweeps."""
