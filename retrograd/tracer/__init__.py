"""The engine that records: traces, traced arrays, writes and views, captures, and what stands for functions."""
