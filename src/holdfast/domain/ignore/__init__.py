"""Ignore rules as git understands them, and the built-in ones."""
