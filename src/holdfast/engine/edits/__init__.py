"""Edits, attempts and tool calls in progress: saved first, rolled back on failure."""
