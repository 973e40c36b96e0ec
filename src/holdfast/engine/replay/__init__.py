"""Time travel: the states of a session, one after the other, without touching the workspace."""
