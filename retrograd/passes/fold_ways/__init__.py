"""Fold Python loops that decide: one loop in the graph whose body chooses, in place of the steps of traces."""
