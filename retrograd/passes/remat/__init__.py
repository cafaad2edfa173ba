"""Rematerialisation: which values to compute again instead of keeping them, in what order, and under which budget."""
