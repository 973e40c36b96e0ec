"""The conversation of a session: messages, transcripts, and notices to agents."""
