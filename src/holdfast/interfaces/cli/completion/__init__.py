"""Shell completion, generated from the parsers."""
