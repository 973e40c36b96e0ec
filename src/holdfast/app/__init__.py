"""Use cases that are more than one call of the engine."""
