"""Deleting checkpoints: by the rules in `domain/retention.py`, for space, or on request, and
collecting their content."""
