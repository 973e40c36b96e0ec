"""Finding a point in history by intent, message or file."""
