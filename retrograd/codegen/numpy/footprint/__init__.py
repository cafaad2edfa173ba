"""How many bytes generated code takes at most, found by running a second text of it that makes no arrays."""
