"""The store on this disk: lock, journal, notes, SQLite connections, SQLite files of the user that
are in use, the file system."""
