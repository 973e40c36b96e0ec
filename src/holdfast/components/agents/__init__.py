"""The memory of agents: files named by patterns, and what was given through the library."""
