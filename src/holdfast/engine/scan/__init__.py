"""Scanning a workspace: walk, apply ignore rules, read what changed, build trees."""
