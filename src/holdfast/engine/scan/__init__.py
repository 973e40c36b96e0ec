"""Scanning a workspace: walk, apply ignore rules, read changed files, build trees."""
