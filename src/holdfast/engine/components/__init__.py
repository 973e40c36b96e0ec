"""Calls components: in a save, in a restore, and when checkpoints are deleted."""
