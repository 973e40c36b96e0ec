"""Finding a point in the history by intent, message or file."""
