"""Adapters of the catalog port, and the named migrations of the SQLite one."""
