"""The search index, in a separate database."""
