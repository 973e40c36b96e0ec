"""What knows no word of the product: values that are cheap to define, and compression.

Everything else may build on it.
"""
