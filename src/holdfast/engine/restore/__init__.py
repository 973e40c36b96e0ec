"""Taking a workspace back to a checkpoint: whole or not at all, verified, undoable."""
