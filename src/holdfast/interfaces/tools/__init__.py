"""Checkpoint tools for function-calling agents; the public name is `holdfast.tools`."""
