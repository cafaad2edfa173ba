"""The peak memory of generated code: the emitter writes a second text, which creates no arrays, and runs it."""
