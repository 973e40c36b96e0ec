"""Moving sessions and checkpoints to another store, in one file."""
