"""Every setting, and the fallback when one cannot be read."""
