"""Agent state: files named by patterns, and memory passed in through the Python API."""
