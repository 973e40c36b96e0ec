"""Directories as immutable values: entries, encoded trees, changes between two of them."""
