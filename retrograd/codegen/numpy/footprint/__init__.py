"""How many bytes generated code takes at most: the emitter writes a second text, which makes no arrays, and runs it."""
