"""The mirror of checkpoints: a branch on which each of them is a commit."""
