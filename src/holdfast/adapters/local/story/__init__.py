"""Messages, annotations, edits and attempts of a store, in SQLite."""
