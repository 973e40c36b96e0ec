"""Adapters: objects in packs, the catalog in SQLite, the local file system, the store's lock."""
