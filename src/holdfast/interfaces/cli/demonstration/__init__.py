"""What `holdfast demo` shows: a project, its ruin, and the way back, each step checked."""
