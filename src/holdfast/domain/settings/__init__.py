"""Every setting, examples of its values, and what holds when one cannot be read."""
