"""One process per user that keeps workspaces open and watched. Everything works without it."""
