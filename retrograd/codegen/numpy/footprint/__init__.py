"""The most bytes that generated code takes: the emitter writes a second text, which makes no arrays, and runs it."""
