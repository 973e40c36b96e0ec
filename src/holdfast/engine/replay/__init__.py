"""A session's states, one after another, without touching the workspace."""
