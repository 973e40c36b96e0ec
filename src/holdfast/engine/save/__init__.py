"""Saving a workspace: scan, make the content durable, then commit its catalog row."""
