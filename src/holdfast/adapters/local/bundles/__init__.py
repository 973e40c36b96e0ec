"""Bundles: one file that carries sessions and checkpoints to another store."""
