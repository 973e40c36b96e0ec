"""Linked worktrees of the repository, saved with a checkpoint and made again when they are gone."""
