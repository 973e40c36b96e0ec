"""The origin of each line of a file."""
