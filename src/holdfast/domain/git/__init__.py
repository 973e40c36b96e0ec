"""Git as values: positions, branches, commits and the names in an index."""
