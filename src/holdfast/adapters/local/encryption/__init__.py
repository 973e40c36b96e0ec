"""Encryption at rest, chosen when a store is made; a store without it imports nothing from here."""
