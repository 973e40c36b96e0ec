"""Shell commands as data: simple commands, changed paths, and how much they may destroy."""
