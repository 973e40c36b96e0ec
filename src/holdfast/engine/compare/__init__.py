"""Comparing two states: which contents differ, and in which lines."""
