"""The state of the git repository that a workspace belongs to."""
