"""A difference as data and on a screen: JSON, unified, side by side, numbers."""
