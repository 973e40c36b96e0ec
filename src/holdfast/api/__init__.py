"""The public entry point to a workspace, for interfaces and Python programs, by topic."""
