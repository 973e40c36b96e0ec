"""Undo and redo: which step comes next, what caused the change, and its description."""
