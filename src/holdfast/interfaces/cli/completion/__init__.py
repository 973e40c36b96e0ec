"""What the shells are told about the command line, read from the parsers themselves."""
