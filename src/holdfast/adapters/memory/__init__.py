"""Adapters that keep everything in memory: the smallest things that keep the contracts."""
