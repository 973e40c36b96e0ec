"""The search index in a database of its own."""
