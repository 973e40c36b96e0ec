"""What happened in a session, in order: events in lanes, rounds, rollbacks, undo history."""
