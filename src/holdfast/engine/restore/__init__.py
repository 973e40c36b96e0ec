"""Restoring a workspace to a checkpoint: whole or not at all, verified, undoable."""
