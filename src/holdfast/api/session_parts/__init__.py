"""What a session offers beyond saving and restoring, one concern a module."""
