"""Shell commands as data: simple commands, expansion, working directory, changed paths."""
