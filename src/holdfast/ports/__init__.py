"""Protocols that the engine is written against; their docstrings are the contract."""
