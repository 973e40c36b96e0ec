"""Verifying a store, and repairing what is damaged."""
