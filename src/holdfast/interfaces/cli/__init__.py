"""The command line: parse, one call of the engine, render."""
