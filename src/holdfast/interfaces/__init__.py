"""Entry points for users and programs; each is a thin package."""
