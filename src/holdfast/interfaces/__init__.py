"""The ways in from outside; each a thin package."""
