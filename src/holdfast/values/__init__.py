"""Product-independent parts: value types that are cheap to define, and compression.

Everything else may build on it.
"""
