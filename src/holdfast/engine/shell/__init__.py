"""Shell commands read with a real grammar."""
