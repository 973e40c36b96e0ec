"""Line differences as values: hunks, a choice of hunks, and where lines come from."""
