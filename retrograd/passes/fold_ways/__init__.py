"""Fold Python loops that decide: one loop of the graph whose body chooses, in place of the steps of recordings."""
