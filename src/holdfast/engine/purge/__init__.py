"""Removing content permanently, and proving it."""
