"""Programs of users for mypy and pyright, which check them with the package."""
