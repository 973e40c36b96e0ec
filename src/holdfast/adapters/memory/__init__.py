"""Minimal in-memory implementations that satisfy the port contracts. Engine tests run on them."""
