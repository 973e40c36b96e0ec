"""The command line: one file per command under `commands/`; views and terminal handling are
here."""
