"""Where each line of a file comes from."""
