"""Every setting, and what holds when one cannot be read."""
