"""Fronts that run eagerly: records and tensors. They record into the same graphs, and hold no derivative rule."""
