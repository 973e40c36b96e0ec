"""The composition root: the only package that names adapters and components."""
