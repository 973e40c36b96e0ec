"""A session's events in order: lanes, rounds, rollbacks, undo history."""
