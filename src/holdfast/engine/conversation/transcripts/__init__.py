"""Readers of agents' transcript files, line by line."""
