"""Deletes checkpoints, by the rules in `domain/retention.py`, for space, or on request, and
collects their content."""
