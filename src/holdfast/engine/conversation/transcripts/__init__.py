"""Reads what an agent writes down of a conversation, line by line."""
