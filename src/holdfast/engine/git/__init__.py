"""Commits from checkpoints: accepting work into git, and the mirror branch."""
