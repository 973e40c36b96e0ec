"""How much a shell command may destroy."""
