"""`holdfast demo`: a project is wrecked and recovered, each step checked."""
