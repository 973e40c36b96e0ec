"""Searching as pure functions: the query, words and stems, ranking, highlights."""
