"""Saving a workspace: scan, make the content durable, then the row that names it."""
