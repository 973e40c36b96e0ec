"""Files outside the workspace that a tool of an agent named."""
