"""A replay of a session at a terminal."""
