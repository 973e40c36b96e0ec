"""Automatic work: agent events, triggers, watched workspaces, merges."""
