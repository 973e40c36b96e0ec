"""Putting hooks into the settings of agents, and taking them out again."""
