"""The recorded past: checkpoints by reference, the timeline, annotations and events."""
