"""The mirror branch, on which each checkpoint is a commit: objects and references (`engine/git/`
decides when)."""
