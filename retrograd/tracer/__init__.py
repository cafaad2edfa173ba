"""The tracing engine: traces, traced arrays, writes and views, captures, and replacements of functions."""
