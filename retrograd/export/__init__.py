"""Functions in files: exported as modules that need NumPy alone, and saved as graphs."""
