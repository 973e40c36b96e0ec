"""One process per user that keeps workspaces open and watched; everything works without it."""
