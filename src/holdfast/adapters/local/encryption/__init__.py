"""Encryption at rest, chosen when a store is created; other stores import nothing from here."""
