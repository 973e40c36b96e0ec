"""Deleting checkpoints: by rule, for space, or on request, and collecting their content."""
