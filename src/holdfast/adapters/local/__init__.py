"""The store on this disk: lock, journal, notes, SQLite connections; the user's databases in use,
the file system and its watchers."""
