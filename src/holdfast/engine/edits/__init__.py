"""Edits, attempts and tool calls in progress: saved first, put back on failure."""
