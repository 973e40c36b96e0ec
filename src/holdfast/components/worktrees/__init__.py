"""Linked worktrees of the repository, saved with a checkpoint and recreated if missing."""
