"""Tool versions and variable names around a workspace: recorded with a checkpoint, not restored."""
