"""The NumPy target: graphs as NumPy source."""
