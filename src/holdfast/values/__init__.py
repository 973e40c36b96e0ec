"""Product-independent parts: value types that are cheap to define, and compression.

Every other package may use it.
"""
