"""Finding out what is in a workspace: walk, decide, read what changed, build trees."""
