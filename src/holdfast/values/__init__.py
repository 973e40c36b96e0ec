"""How values are defined: dataclasses and named tuples that cost next to nothing at import.

Knows no word of the product; everything else may build on it.
"""
