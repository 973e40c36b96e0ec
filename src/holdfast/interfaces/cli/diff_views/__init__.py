"""A difference on a screen: unified, side by side, numbers."""
