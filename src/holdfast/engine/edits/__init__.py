"""Edits, attempts and tool calls under way: kept first, put back when they fail."""
