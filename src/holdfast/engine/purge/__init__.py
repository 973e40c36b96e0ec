"""Removing content for good, and proving it."""
