"""Workflows that combine several engine operations."""
