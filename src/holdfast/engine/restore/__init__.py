"""Restoring a workspace to a checkpoint: completely or not at all, verified, undoable."""
